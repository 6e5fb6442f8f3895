"""The extra: the part of a batch's statistics that is not a sum over rows.

The statistics of a mixture are sums over rows. Documents and sequences have more: how often each document
uses each component, or how often sequences go from one component to another. The engine adds this *extra*
up, and edits it, without knowing what it is. Each model has a class for it, with the methods of `Extra`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Extra(Protocol):
    """The methods of an extra. It is a value that nothing changes, and names components by uid."""

    def joined(self, *others):
        """The extra of these rows and of ``others`` together; each of these may be `NO_EXTRA`."""

    def without(self, other):
        """The extra of these rows without ``other`` rows, which are part of them."""

    def only(self, uids):
        """The extra of the components ``uids`` alone."""

    def replaced(self, removed, other):
        """The extra after the components ``removed`` were replaced by those of ``other``."""

    def scaled(self, factor):
        """The extra of the same rows, with weights multiplied by ``factor``; not needed of documents."""

    def union(self, removed, created, seen=None):
        """The extra of the union ``created`` of the components ``removed``.

        ``seen`` is what `seen_of_union` gave of all rows; if it is None, the extra makes do with what it has.
        """

    def seen_of_union(self, removed):
        """Find, from the rows at hand, what a union's members do not tell of it; None if they tell all."""

    def left(self, leave):
        """The extra without what stays where the rows are; ``leave(value)`` gives a `Left` in its place."""

    def at_hand(self):
        """The extra with what has stayed where the rows are; itself if nothing has."""

    def summed(self):
        """The extra without what does not add up over rows."""

    def as_past(self):
        """The extra of rows that will not be seen again: no batch that comes later has their name."""

    def renamed(self, names):
        """The extra with components under other names: ``names`` is old uid -> new uid, one to one."""

    def owned(self, owner):
        """The extra of the part number ``owner`` of several: no batch of another part has their name."""

    def averaged(self, before, keep, rate, times):
        """The extra after a stochastic step of this ``rate``, on rows that stand for ``times`` as many.

        ``keep`` is the factor of the extra ``before``.
        """


class NoExtra:
    """The extra of mixtures, whose statistics are sums over rows: it is empty.

    It is a singleton. Copies of it, and unpickled ones, are `NO_EXTRA` itself.
    """

    _one = None

    def __new__(cls):
        if cls._one is None:
            cls._one = super().__new__(cls)
        return cls._one

    def joined(self, *others):
        some = [other for other in others if other is not self]
        return some[0].joined(*some[1:]) if some else self

    def without(self, other):
        return self

    only = without

    def replaced(self, removed, other):
        return other

    def union(self, removed, created, seen=None):
        return self

    def seen_of_union(self, removed):
        return None

    def scaled(self, factor):
        return self

    def left(self, leave):
        return self

    def at_hand(self):
        return self

    def summed(self):
        return self

    def as_past(self):
        return self

    renamed = owned = only

    def averaged(self, before, keep, rate, times):
        return self

    # What is asked of transitions of sequences alone, or of counts of documents alone: here there are none.

    def put_into(self, whole, removed):
        gone = set(removed)
        return whole.only(uid for uid in whole.uids if uid not in gone)

    def listed(self, uids):
        return np.zeros((len(uids) + 1, len(uids)))

    parts = {}
    uids = ()
    entropy = 0.0


NO_EXTRA = NoExtra()
