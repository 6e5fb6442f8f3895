"""What a model remembers of batches beside sums over rows: the protocol, and nothing at all.

Statistics of a mixture are sums over rows. Rows of a document, or of a sequence, leave more behind: how
often each document uses each component, or how often sequences go from one to another. The engine adds
up, cuts and edits this *extra* without knowing what it is; the models bring it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Extra(Protocol):
    """What rows that belong together leave behind. Never changed in place; components have uids."""

    def joined(self, other):
        """That of these rows and of others."""

    def without(self, other):
        """This, less that of ``other`` rows."""

    def only(self, uids):
        """What there is of the components ``uids`` alone."""

    def replaced(self, removed, other):
        """Without the components ``removed``, with what ``other`` says of those that take their place."""

    def as_past(self):
        """The same of rows that will not be seen again, whose batches no later batch is a name of."""

    def averaged(self, before, keep, rate, times):
        """That of a stochastic step: each row stands for ``times``, and ``keep`` of ``before`` stays."""


class NoExtra:
    """Where rows do not belong together: there is nothing to keep beside their sums.

    A singleton: copies of it, and what is read from a file, are `NO_EXTRA` itself.
    """

    _one = None

    def __new__(cls):
        if cls._one is None:
            cls._one = super().__new__(cls)
        return cls._one

    def joined(self, other):
        return other

    def without(self, other):
        return self

    only = without

    def replaced(self, removed, other):
        return other

    def union(self, removed, created):
        return self

    def as_past(self):
        return self

    def averaged(self, before, keep, rate, times):
        return self

    def put_into(self, whole, removed):
        gone = set(removed)
        return whole.only(uid for uid in whole.uids if uid not in gone)

    def listed(self, uids):
        return np.zeros((len(uids) + 1, len(uids)))

    parts = {}
    uids = ()
    entropy = 0.0


NO_EXTRA = NoExtra()
