"""Batches made of parts: their parts are worked on under the same parameters, in any process.

A part is a batch, or a *reference* to one: it has a ``batch_id``, and its ``load()`` gives the batch where
the task runs. A composite batch is visited, remembered and edited as one. What its parts leave behind
is added up over a tree that depends on their numbers alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class CompositeBatch(NamedTuple):
    """Several batches, or references to them, that are visited as one.

    Attributes
    ----------
    batch_id : object
        Name of the whole.
    parts : tuple
        Each has a ``batch_id`` of its own, which no other part of any batch has.
    """

    batch_id: object
    parts: tuple


class CompositeSource:
    """The batches of a source, several of them at a time as one.

    Parameters
    ----------
    source : Source
    n_parts : int
        Batches of the source that make one of this.
    """

    def __init__(self, source, n_parts):
        self._source, self._n_parts = source, n_parts

    @property
    def rows_in_memory(self):
        return self._source.rows_in_memory

    @property
    def values_per_row(self):
        return self._source.values_per_row

    @property
    def total_weight(self):
        return self._source.total_weight

    @property
    def mean_weight(self):
        return self._source.mean_weight

    @property
    def resp(self):
        return self._source.resp

    def __len__(self):
        return -(-len(self._source) // self._n_parts)

    def batch(self, i):
        """The i-th group of batches."""
        first = i * self._n_parts
        last = min(first + self._n_parts, len(self._source))
        return CompositeBatch(i, tuple(self._source.batch(j) for j in range(first, last)))

    def batches(self, rng=None):
        """All groups, in random order if an rng is given."""
        order = np.arange(len(self)) if rng is None else rng.permutation(len(self))
        return (self.batch(i) for i in order)

    def shuffled(self, rng):
        """Batches of the source itself: stochastic steps are small."""
        return self._source.shuffled(rng)

    def without_responsibilities(self):
        """The same batches, to be given responsibilities by local steps."""
        return CompositeSource(self._source.without_responsibilities(), self._n_parts)
