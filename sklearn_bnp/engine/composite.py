"""Batches made of parts: their parts are worked on under the same parameters, in any process.

A part is a batch, or a *reference* to one: it has a ``batch_id``, and its ``load()`` gives the batch where
the task runs. A composite batch is visited, remembered and edited as one. The statistics of its parts
are summed in a fixed order, a binary tree over their positions, so that rounding does not depend on which
part was finished first.
"""

from __future__ import annotations

from typing import NamedTuple


class CompositeBatch(NamedTuple):
    """Several batches, or references to them, that are visited as one.

    Attributes
    ----------
    batch_id : object
        Name of the whole.
    parts : tuple
        Batches, or references. Each has a ``batch_id`` that is unique among the parts of all batches,
        since statistics of documents are kept by it.
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

    def batches(self):
        """All groups, one after the other."""
        return (self.batch(i) for i in range(len(self)))

    def shuffled(self, rng):
        """Batches of the source itself: stochastic steps are small."""
        return self._source.shuffled(rng)

    def without_responsibilities(self):
        """A source of these batches without given responsibilities, so that local steps find them."""
        return CompositeSource(self._source.without_responsibilities(), self._n_parts)
