"""The seam between the data and the engine: sources of batches, as a protocol."""

from __future__ import annotations

from typing import Protocol


class Source(Protocol):
    """All data of a fit, in batches that are visited again and again.

    `inputs.batches.ArraySource` cuts an array, and `inputs.groups.GroupSource` documents or sequences.
    `engine.composite.CompositeSource` visits several batches of another source as one.

    Attributes
    ----------
    rows_in_memory : int
        Rows that are in memory at a time, from which the sizes of samples are found.
    values_per_row : int or None
        Numbers that a sparse row is held in, on average; None if rows are dense.
    total_weight : float
        Sum of the weights of all rows, or of the tokens of all documents.
    mean_weight : float or None
        Mean weight of rows, documents or sequences; None if they have no weights.
    resp : ndarray, shape (n, K), or None
        Responsibilities to begin with.
    """

    rows_in_memory: int
    values_per_row: int | None
    total_weight: float
    mean_weight: float | None
    resp: object

    def __len__(self):
        """Number of batches."""

    def batch(self, i):
        """The i-th batch.

        It has a ``batch_id``, which is the same whenever it is asked for, and ``parts``: values with a
        ``batch_id`` each, whose ``load()`` gives the rows where they are worked on.
        """

    def batches(self):
        """All batches one after the other."""

    def shuffled(self, rng):
        """Batches for stochastic steps, drawn anew from all data without replacement."""

    def without_responsibilities(self):
        """The same batches, without the responsibilities that were given: local steps compute new ones."""
