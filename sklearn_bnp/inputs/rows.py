"""Rows of data, dense or sparse, for code that need not know which. A leaf module.

Sparse rows are a `csr_array` without zeros, duplicates and disorder, see `canonical`; slices and
choices of rows keep this.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse


def at_hand(x):
    """Dense rows as a plain array (of a memory map, those that are wanted), sparse ones as they are."""
    return x if sparse.issparse(x) else np.asarray(x)


def part(x, rows):
    """The rows of a slice, which share memory with ``x``; scipy would copy them, entry by entry."""
    if not sparse.issparse(x):
        return x[rows]
    first, last, _ = rows.indices(x.shape[0])
    last = max(first, last)
    lo, hi = x.indptr[first], x.indptr[last]
    arrays = x.data[lo:hi], x.indices[lo:hi], x.indptr[first : last + 1] - lo
    return sparse.csr_array(arrays, shape=(last - first, x.shape[1]))


def stacked(parts):
    """Rows of several blocks, one block after another: sparse ones if any is."""
    if any(sparse.issparse(part) for part in parts):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return np.concatenate(parts)


def arrays_of(x):
    """The arrays that rows are held in."""
    if not sparse.issparse(x):
        return (np.ascontiguousarray(x),)
    # scipy chooses the type of indices by how many there are
    return x.indptr.astype(np.int64), x.indices.astype(np.int64), x.data


def canonical(x):
    """Sparse rows with sorted entries, none of them zero or twice; the user's ``x`` stays as it is."""
    out = sparse.csr_array((x.data, x.indices, x.indptr), shape=x.shape)
    if not out.has_canonical_format:
        # small whole numbers would overflow in the sums of duplicates; `astype` of older releases sums first
        data = x.data.astype(np.float64 if x.dtype.kind in "iub" else x.dtype)
        out = sparse.csr_array((data, x.indices.copy(), x.indptr.copy()), shape=x.shape)
        out.sum_duplicates()
        if np.array_equal(out.data.astype(x.dtype), out.data):
            out = out.astype(x.dtype)
    if not np.all(out.data):
        if np.shares_memory(out.data, x.data) or np.shares_memory(out.indices, x.indices):
            out = out.copy()
        out.eliminate_zeros()
    return out


def values_per_row(x):
    """How many numbers (indices too) a sparse row is held in, on average; None for dense rows."""
    return 1 + 2 * x.nnz // max(1, x.shape[0]) if sparse.issparse(x) else None


def mean_weight(weight):
    """The mean of weights, 1 where all are 0."""
    return float(np.mean(weight)) or 1.0


def block_rows(x, n_rows):
    """Rows to be worked on at a time, ``n_rows`` if dense.

    Of sparse rows as many as there are columns: what is found for them takes no more room then than
    the statistics, and to turn these round takes less time than the rows.
    """
    return max(n_rows, x.shape[1]) if sparse.issparse(x) else n_rows


class RowBuffer:
    """Room for ``n_rows`` rows like those of a block, filled from the first to the last."""

    def __init__(self, n_rows, like, dtype):
        self._parts = [] if sparse.issparse(like) else None
        self._rows = np.empty((n_rows, *like.shape[1:]), dtype) if self._parts is None else None
        self._filled = 0

    def put(self, rows):
        if self._parts is not None:
            self._parts.append(rows)
            return
        there = slice(self._filled, self._filled + rows.shape[0])
        self._rows[there] = rows
        self._filled = there.stop

    def rows(self, like):
        """What was put in; no rows like those of ``like`` if nothing was."""
        if self._parts is None:
            return self._rows
        return stacked(self._parts) if self._parts else like[:0]
