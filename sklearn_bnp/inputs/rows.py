"""Operations on rows of data, for code that need not know whether they are dense or sparse.

Sparse rows are a `csr_array` in the form that `canonical` makes: entries are sorted, and none is zero or
stored twice. Slices and choices of rows keep this form.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

# It stands for a missing entry where rows are compared.
_MISSING = 0.6180339887498949


def at_hand(x):
    """Dense rows, or a part of a memory map, as a plain array; sparse rows as they are."""
    return x if sparse.issparse(x) else np.asarray(x)


def part(x, rows):
    """The rows of a slice, which share memory with ``x``; SciPy would copy sparse ones."""
    if not sparse.issparse(x):
        return x[rows]
    first, last, _ = rows.indices(x.shape[0])
    last = max(first, last)
    lo, hi = x.indptr[first], x.indptr[last]
    arrays = x.data[lo:hi], x.indices[lo:hi], x.indptr[first : last + 1] - lo
    return sparse.csr_array(arrays, shape=(last - first, x.shape[1]))


def stacked(parts):
    """Rows of several blocks, one block after another; they are sparse if any block is."""
    if any(sparse.issparse(part) for part in parts):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return np.concatenate(parts)


def none_of(parts):
    """No rows, but of the kind of several blocks: sparse if any block is."""
    return next((part[:0] for part in parts if sparse.issparse(part)), parts[0][:0])


def canonical(x):
    """Sparse rows whose entries are sorted, none zero or stored twice; the user's ``x`` is not changed."""
    out = sparse.csr_array((x.data, x.indices, x.indptr), shape=x.shape)
    if not out.has_canonical_format:
        # sums of duplicates of small integer types would overflow; `astype` of older SciPy sums first
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


def with_equal_entries_apart(x):
    """Sparse rows of whole numbers as CSR, without adding up entries that are stored several times.

    SciPy adds them up in their own type when it converts COO and BSR matrices, and small types overflow.
    `canonical` adds them up in doubles. Anything else is returned as it is.
    """
    if not sparse.issparse(x) or x.format not in ("coo", "bsr") or x.ndim != 2:
        return x
    if x.dtype.kind not in "iub":
        return x
    x = x.tocoo(copy=False)
    order = np.argsort(x.row, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(x.row, minlength=x.shape[0]))])
    return sparse.csr_array((x.data[order], x.col[order], indptr), shape=x.shape)


def joined_numbers(parts, sizes):
    """Numbers of several batches as one array, where None stands for ones; None if all are.

    ``sizes`` are the lengths of the parts.
    """
    if all(part is None for part in parts):
        return None
    pairs = zip(parts, sizes, strict=True)
    return np.concatenate([np.ones(n) if part is None else part for part, n in pairs])


def values_per_row(x):
    """How many numbers, indices included, a sparse row is stored in on average; None for dense rows."""
    return 1 + 2 * x.nnz // max(1, x.shape[0]) if sparse.issparse(x) else None


def mean_weight(weight):
    """The mean of weights, or 1 if all are 0 or there are none."""
    return (float(np.mean(weight)) if len(weight) else 0.0) or 1.0


def block_rows(x, n_rows):
    """How many rows to work on at a time: ``n_rows`` if they are dense.

    If they are sparse, at least as many as there are columns. Tables of rows then take no more memory than
    the statistics, and transposing the statistics takes less time than the rows.
    """
    return max(n_rows, x.shape[1]) if sparse.issparse(x) else n_rows


def equal_rows(z):
    """Which of the rows ``z`` (n, D) are equal; NaN is equal to NaN.

    Returns
    -------
    first : ndarray of int, shape (m,)
        The first one of each group of equal rows.
    number : ndarray of int, shape (n,)
        The group of each row.
    """
    factors = key_factors(z.shape[1])
    if sparse.issparse(z):
        row = np.repeat(np.arange(z.shape[0]), np.diff(z.indptr))
        key = np.bincount(row, factors[z.indices] * z.data, minlength=z.shape[0])
    else:
        key = np.zeros(len(z))
        missing = np.isnan(z)
        z = np.where(missing, _MISSING, z) if missing.any() else z
        for factor, column in zip(factors, z.T, strict=True):
            key += factor * column  # equal rows have equal keys, to the last bit
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return first, number.reshape(-1)


def key_factors(n):
    """Random factors (n,) of columns, with which different rows have different sums of products."""
    return 1.0 + np.random.RandomState(0).random_sample(n)


class RowBuffer:
    """Buffer for ``n_rows`` rows like those of a block, which is filled from the first row to the last."""

    def __init__(self, n_rows, like, dtype):
        self._parts = [] if sparse.issparse(like) else None
        self._rows = np.empty((n_rows, *like.shape[1:]), dtype) if self._parts is None else None
        self._filled = 0

    def put(self, rows):
        """Add rows."""
        if self._parts is not None:
            self._parts.append(rows)
            return
        there = slice(self._filled, self._filled + rows.shape[0])
        self._rows[there] = rows
        self._filled = there.stop

    def rows(self, like):
        """All rows that were added; if there are none, no rows of the kind of ``like``."""
        if self._parts is None:
            return self._rows
        return stacked(self._parts) if self._parts else like[:0]
