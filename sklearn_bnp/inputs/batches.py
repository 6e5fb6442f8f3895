"""Rows of data in batches, and batches in blocks that fit in the cache."""

from __future__ import annotations

import hashlib
from copy import copy
from itertools import pairwise
from mmap import mmap
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.random import sample_without_replacement

from .moments import Moments
from .observed_moments import observed_moments
from .rows import arrays_of, block_rows, mean_weight, part, values_per_row

# Rows that go through the kernels at a time. More would only add memory.
BLOCK_ROWS = 4096
# Row numbers that are permuted at a time. Of more rows, runs of at least so many stay near each other
# in random order: a page of a memory map is then read for more than one of its rows.
_PERMUTED_ROWS, _RUN_ROWS = 2**17, 64
# Numbers that a sample of a memory map may hold however few rows a batch has.
_SAMPLE_NUMBERS = 200_000


def even_slices(n_rows, most=BLOCK_ROWS):
    """Slices of at most so many rows, of nearly equal size."""
    n_blocks = max(1, -(-n_rows // most))
    edges = np.linspace(0, n_rows, n_blocks + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(edges)]


class Batch(NamedTuple):
    """Some rows of data under a name.

    ``x`` may be a slice of a memory map; only a block of it is ever copied.
    """

    batch_id: object
    x: np.ndarray
    weight: np.ndarray | None = None
    resp: np.ndarray | None = None

    @property
    def parts(self):
        """The batch itself is its only part."""
        return (self,)

    def load(self):
        """The batch, which is here."""
        return self

    @property
    def n_entries(self):
        """Rows."""
        return self.x.shape[0]

    @property
    def total_weight(self):
        """Sum of the rows' weights."""
        return float(self.x.shape[0] if self.weight is None else self.weight.sum())

    @property
    def mean_weight(self):
        """Mean weight of the rows; None if they have none."""
        return None if self.weight is None else mean_weight(self.weight)

    @property
    def entry_weight(self):
        """How often each row (n,) counts in sums over rows."""
        return np.ones(self.n_entries) if self.weight is None else self.weight

    def content_hash(self):
        """Identity of the batch by its content."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"{self.x.shape} {self.x.dtype}".encode())
        for rows in self.slices():
            for array in arrays_of(part(self.x, rows)):
                digest.update(array)
        if self.weight is not None:
            digest.update(self.weight)
        return digest.hexdigest()

    def slices(self):
        """Slices of at most `BLOCK_ROWS` rows, of nearly equal size; see `block_rows`."""
        return even_slices(self.n_entries, block_rows(self.x, BLOCK_ROWS))

    @property
    def values_per_row(self):
        """Of sparse rows, how many numbers each is held in on average; None of dense ones."""
        return values_per_row(self.x)


def _is_mapped(x):
    """Whether an array's numbers lie in a file."""
    while x is not None:
        if isinstance(x, (np.memmap, mmap)):
            return True
        x = getattr(x, "base", None)
    return False


def _shuffled_rows(n_rows, rng):
    """Parts of a random order of ``n_rows`` row numbers, of which few are held at a time.

    Runs of rows are permuted, then the rows of many runs from all over the data.
    """
    if n_rows <= _PERMUTED_ROWS:
        yield rng.permutation(n_rows)
        return
    length = max(_RUN_ROWS, -(-n_rows // _PERMUTED_ROWS))
    runs = rng.permutation(-(-n_rows // length))
    for some in np.array_split(runs, -(-n_rows // _PERMUTED_ROWS)):
        rows = np.add.outer(some * length, np.arange(length)).ravel()
        yield rng.permutation(rows[rows < n_rows])


class ArraySource:
    """Consecutive slices of an array, visited in random order.

    Parameters
    ----------
    x : ndarray, shape (n, D)
    weight : ndarray, shape (n,), or None
    n_batches : int
        As many slices, of nearly equal size; one a row if that is more than there are rows.
    resp : ndarray, shape (n, K), or None
        Responsibilities to begin with.
    """

    def __init__(self, x, weight, n_batches=1, resp=None):
        self.x, self.weight, self.resp = x, weight, resp
        n_batches = max(1, min(n_batches, self.n_rows))
        self.edges = np.arange(n_batches + 1) * self.n_rows // n_batches

    def __len__(self):
        return len(self.edges) - 1

    @property
    def n_rows(self):
        return self.x.shape[0]

    @property
    def values_per_row(self):
        return values_per_row(self.x)

    @property
    def rows_in_memory(self):
        """Rows that are in memory at a time: all, or a batch of a memory map (a block at most)."""
        if not _is_mapped(self.x):
            return self.n_rows
        return min(int(np.diff(self.edges).max()), BLOCK_ROWS)

    @property
    def total_weight(self):
        return float(self.x.shape[0] if self.weight is None else self.weight.sum())

    @property
    def mean_weight(self):
        """Mean weight of the rows; None if they have none."""
        return None if self.weight is None else mean_weight(self.weight)

    @property
    def everything(self):
        """All rows as one batch."""
        return Batch(None, self.x, self.weight, self.resp)

    def in_double(self):
        """The same with rows in double precision."""
        return ArraySource(self.x.astype(np.float64), self.weight, len(self), self.resp)

    def batch(self, i):
        rows = slice(self.edges[i], self.edges[i + 1])
        return Batch(
            i,
            part(self.x, rows),
            None if self.weight is None else self.weight[rows],
            None if self.resp is None else self.resp[rows],
        )

    def batches(self, rng=None):
        """All batches, in random order if an rng is given."""
        order = np.arange(len(self)) if rng is None else rng.permutation(len(self))
        return (self.batch(i) for i in order)

    def shuffled(self, rng):
        """Batches of rows from all over the data, which are drawn without replacement."""
        parts, held = _shuffled_rows(self.n_rows, rng), np.empty(0, dtype=np.intp)
        for size in np.diff(self.edges):
            while len(held) < size:
                held = np.concatenate([held, next(parts)])
            yield self.rows(np.sort(held[:size]))
            held = held[size:]

    def without_responsibilities(self):
        """The same batches, to be given responsibilities by local steps."""
        if self.resp is None:
            return self
        source = copy(self)
        source.resp = None
        return source

    def rows(self, rows):
        """Rows of any batches, as a batch of their own."""
        return Batch(
            None,
            self.x[rows],
            None if self.weight is None else self.weight[rows],
            None if self.resp is None else self.resp[rows],
        )

    def sample(self, n_rows, rng, *, least=1000):
        """Up to ``n_rows`` rows without replacement, with their weights.

        If not all rows are taken, those of weight 0 are never drawn.

        Of a memory map no more than two batches have, unless these are fewer than ``least`` rows or
        hold few numbers.
        """
        if self.rows_in_memory < self.n_rows:
            most = max(least, 2 * self.rows_in_memory, _SAMPLE_NUMBERS // max(1, self.x.shape[1]))
            n_rows = min(n_rows, most)
        rows = slice(None)
        if n_rows < self.n_rows:
            some = None if self.weight is None else np.flatnonzero(self.weight)
            n = self.n_rows if some is None else len(some)
            # rng.choice would permute the numbers of all rows
            rows = np.sort(sample_without_replacement(n, min(n, n_rows), random_state=rng))
            rows = rows if some is None else some[rows]
        return self.x[rows], None if self.weight is None else self.weight[rows]


def column_moments(batches, *, covariance):
    """`Moments` of the rows of ``batches`` (a list, gone through twice), weighted."""
    if issparse(batches[0].x):
        return _sparse_moments(batches)
    n_rows, largest, magnitude, precision = 0, 0.0, 0.0, np.finfo(np.float64).eps
    for batch in batches:
        for rows in batch.slices():
            x = np.asarray(batch.x[rows])
            n_rows += len(x)
            largest = np.maximum(largest, _largest_by_column(x))
            if batch.weight is not None:
                x = x[batch.weight[rows] > 0]
            magnitude = np.maximum(magnitude, _largest_by_column(x))
            if x.dtype in (np.float32, np.float16):
                precision = np.finfo(x.dtype).eps
    if np.isnan(largest).any():
        return observed_moments(batches, covariance=covariance)
    magnitude = np.where(magnitude == 0, 1.0, magnitude)
    shift = None
    mass, first, second = 0.0, 0.0, 0.0
    for batch in batches:
        for rows in batch.slices():
            z = np.asarray(batch.x[rows]) / magnitude
            w = np.ones(len(z)) if batch.weight is None else batch.weight[rows]
            if shift is None:
                shift = np.average(z, axis=0, weights=w) if w.sum() > 0 else z.mean(axis=0)
            z -= shift
            mass += w.sum()
            weighted = z * w[:, np.newaxis]
            first = first + weighted.sum(axis=0)
            second = second + (weighted.T @ z if covariance else np.einsum("nd,nd->d", weighted, z))
    offset = first / mass
    second = second / mass - (np.multiply.outer(offset, offset) if covariance else offset**2)
    return Moments(n_rows, magnitude, shift + offset, second, precision, largest=largest)


def _largest_by_column(x):
    """Largest absolute value of each column (D,) in float64; nan where an entry is."""
    highest, lowest = x.max(axis=0, initial=0), x.min(axis=0, initial=0)
    return np.maximum(highest, -lowest.astype(float)).astype(float)


def _sparse_moments(batches):
    """`Moments` of sparse rows, for families that ask for no covariances."""
    n_rows, n_columns, mass = 0, batches[0].x.shape[1], 0.0
    magnitude, precision = np.zeros(n_columns), np.finfo(np.float64).eps
    for batch in batches:
        n_rows += batch.n_entries
        mass += batch.total_weight
        np.maximum.at(magnitude, batch.x.indices, np.abs(batch.x.data))
        if batch.x.dtype == np.float32:
            precision = np.finfo(np.float32).eps
    magnitude = np.where(magnitude > 0, magnitude, 1.0)
    first, second = np.zeros(n_columns), np.zeros(n_columns)
    for batch in batches:
        x = batch.x.data / magnitude[batch.x.indices]
        weight = 1.0 if batch.weight is None else np.repeat(batch.weight, np.diff(batch.x.indptr))
        first += np.bincount(batch.x.indices, x * weight, minlength=n_columns)
        second += np.bincount(batch.x.indices, x * x * weight, minlength=n_columns)
    mean = first / mass
    return Moments(n_rows, magnitude, mean, second / mass - mean**2, precision)
