"""The content of rows as bytes: by their hash, batches that come again are known.

Design note
-----------
(a) The bytes depend on the values alone, and not on how they are stored: on the type of numbers, the order in
    memory, or whether rows are sparse. Numbers are hashed as doubles, blocks of rows one after another.
(b) A block is hashed as the table that it is, or as a list of the numbers that are not zero if that is
    shorter. Sparse rows are therefore never made dense unless that takes less memory. Names of dense rows
    that are mostly not zero are those of their bytes, by which saved streams know their batches.
(c) All zeros are the same number, and so are all NaN.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, issparse

from .rows import part

# Rows of a block. A name depends on it if blocks are mostly zeros.
_BLOCK_ROWS = 4096


def add_rows(digest, x):
    """Add the shape and the values of rows (n, D) to a digest of `hashlib`; sparse rows are `canonical`."""
    digest.update(f"{x.shape} float64".encode())
    for first in range(0, x.shape[0], _BLOCK_ROWS):
        for array in _arrays_of_values(part(x, slice(first, min(first + _BLOCK_ROWS, x.shape[0])))):
            digest.update(array)


def add_numbers(digest, values):
    """Add an array that always has the same type, with its shape; nothing if it is None."""
    if values is not None:
        digest.update(f"{values.shape} {values.dtype}".encode())
        digest.update(np.ascontiguousarray(values))


def unless_ones(weight):
    """Weights, or None, which means the same, if all of them are 1."""
    return None if weight is None or np.all(weight == 1.0) else weight


def _arrays_of_values(x):
    """Arrays that tell the values of a block of rows, in the form that takes fewer numbers."""
    n, D = x.shape
    sparse = issparse(x)
    n_values = x.nnz if sparse else np.count_nonzero(x)
    if n + 1 + 2 * n_values < n * D:
        x = x if sparse else csr_array(_as_doubles(x))  # SciPy does not take all types of NumPy
        return x.indptr.astype(np.int64), x.indices.astype(np.int64), _as_doubles(x.data)
    return (_as_doubles(x.toarray() if sparse else x),)


def _as_doubles(values):
    """A copy of values as contiguous doubles, in which a zero has no sign, and there is one NaN."""
    values = np.array(values, dtype=np.float64, order="C")
    values += 0.0
    values[np.isnan(values)] = np.nan
    return values
