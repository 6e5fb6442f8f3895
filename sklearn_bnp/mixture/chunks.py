"""Rows in chunks that lie elsewhere."""

from __future__ import annotations

from ..estimator.chunks import ChunkReader
from ..estimator.sample_weights import check_weights
from ..estimator.validation import check_rows
from ..inputs.batches import Batch


class RowReader(ChunkReader):
    """Checks rows of a chunk where they lie."""

    def batch(self, estimator, X, sample_weight=None):
        """`Batch` of the rows."""
        rows, _ = check_rows(estimator, X, reset=False)
        return Batch(None, rows, check_weights(sample_weight, rows.shape[0], "row", of_chunk=True))

    def info(self, batch):
        """`ChunkInfo` of a batch."""
        return self.rows_info(batch, batch.n_entries, batch.weight)
