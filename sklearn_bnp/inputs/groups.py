"""Data whose rows belong to groups, such as documents or sequences, in batches of whole groups."""

from __future__ import annotations

import numpy as np


def group_cuts(indptr, n_entries):
    """Cuts between groups (of rows ``indptr[i]:indptr[i + 1]``) into blocks of about ``n_entries`` rows."""
    block = (indptr[1:] - 1) // max(1, n_entries)
    edges = np.flatnonzero(np.diff(block)) + 1
    return [0, *edges.tolist(), len(indptr) - 1]


def even_cuts(indptr, n):
    """Cuts (at most n + 1,) between groups into ``n`` parts with the same number of groups that have rows.

    Groups without rows stay with those before them. They make no parts, and do not shift the cuts.
    """
    ends = np.flatnonzero(np.diff(indptr)) + 1
    chosen = np.linspace(0, len(ends), min(n, max(1, len(ends))) + 1).astype(int)
    return np.concatenate([[0], ends[chosen[1:-1] - 1], [len(indptr) - 1]])


def drawn(n_units, n, rng, weight=None):
    """Indices of ``n`` of ``n_units``, drawn without replacement, in proportion to weights if given."""
    if weight is None:
        return rng.permutation(n_units)[:n]
    keys = np.log(weight) + rng.gumbel(size=n_units)  # the n greatest keys are such a draw
    return np.argsort(-keys, kind="stable")[:n]


class GroupSource:
    """Batches of consecutive groups of rows, visited in random order.

    Parameters
    ----------
    everything : object
        All groups as one batch. It has ``indptr``, ``resp``, ``total_weight``, ``mean_weight`` and
        ``part(batch_id, first, last)``, which returns the batch of some of the groups.
    n_batches : int
        Number of batches; there are no more batches than groups with rows.
    """

    def __init__(self, everything, n_batches):
        self.everything = everything
        self.edges = even_cuts(everything.indptr, n_batches)

    def __len__(self):
        return len(self.edges) - 1

    @property
    def n_rows(self):
        """Number of groups."""
        return len(self.everything.indptr) - 1

    @property
    def rows_in_memory(self):
        """Number of rows that are in memory at a time: all of them."""
        return self.everything.n_entries

    @property
    def values_per_row(self):
        """How many numbers a sparse row is stored in on average; None for dense rows."""
        return self.everything.values_per_row

    @property
    def total_weight(self):
        """Sum of the weights of entries."""
        return self.everything.total_weight

    @property
    def mean_weight(self):
        """Mean weight of the groups; None if they have none."""
        return self.everything.mean_weight

    @property
    def resp(self):
        """Responsibilities to begin with, or None."""
        return self.everything.resp

    def batch(self, i):
        """Batch number i."""
        return self.everything.part(i, self.edges[i], self.edges[i + 1])

    def batches(self):
        """Iterator over all batches."""
        return (self.batch(i) for i in range(len(self)))

    def shuffled(self, rng):
        """Iterator over the batches in random order; groups stay in their batches."""
        return (self.batch(i) for i in rng.permutation(len(self)))

    def without_responsibilities(self):
        """The same batches, without the responsibilities that were given: local steps compute new ones."""
        if self.resp is None:
            return self
        source = GroupSource(self.everything._replace(resp=None), len(self))
        source.edges = self.edges
        return source
