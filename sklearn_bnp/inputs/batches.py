"""Rows of data in batches, and batches in blocks that fit into the cache."""

from __future__ import annotations

import hashlib
from copy import copy
from functools import reduce
from itertools import pairwise
from mmap import mmap
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.random import sample_without_replacement

from .category_codes import CodesOfColumns
from .content_hashes import add_rows, unless_ones
from .moments import column_moments
from .rows import at_hand, block_rows, mean_weight, part, stacked, values_per_row

# Number of rows that the kernels are given at a time. More would only take more memory.
BLOCK_ROWS = 4096
# Number of row numbers that are permuted at a time. If there are more rows, runs of at least so many rows
# stay near each other in random order, so that a page of a memory map is read for several of its rows.
_PERMUTED_ROWS, _RUN_ROWS = 2**17, 64
# A sample of a memory map may hold so many numbers, however few rows a batch has.
_SAMPLE_NUMBERS = 200_000


def even_slices(n_rows, most=BLOCK_ROWS):
    """Slices of nearly equal size, of at most ``most`` rows each."""
    if n_rows <= most:
        return [slice(0, n_rows)]
    n_blocks = -(-n_rows // most)
    edges = np.linspace(0, n_rows, n_blocks + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(edges)]


class Batch(NamedTuple):
    """Some rows of data, with a name.

    Rows ``x`` may be a slice of a memory map, of which no more than a block is copied at a time.
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
        """Number of rows."""
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
        """The weight of each row (n,) in sums over rows."""
        return np.ones(self.n_entries) if self.weight is None else self.weight

    def content_hash(self):
        """Hash of the content of the batch, which identifies it."""
        digest = hashlib.blake2b(digest_size=16)
        add_rows(digest, self.x)
        weight = unless_ones(self.weight)
        if weight is not None:
            digest.update(weight)
        return digest.hexdigest()

    @property
    def n_units(self):
        """Number of rows: a batch may be cut between any two."""
        return self.n_entries

    def even_cuts(self, n):
        """Cuts (at most n + 1,) between rows into ``n`` parts of about the same size."""
        return np.linspace(0, self.n_entries, min(n, self.n_entries) + 1).astype(int)

    def n_values(self, n_features):
        """Numbers that the rows are stored in; a row that is not sparse has ``n_features``."""
        return self.n_entries * (self.values_per_row or n_features)

    def part(self, batch_id, first, last):
        """The rows from ``first`` to before ``last``, under a name."""
        rows = slice(first, last)
        weight = None if self.weight is None else self.weight[rows]
        return Batch(batch_id, part(self.x, rows), weight)

    def joined(self, others):
        """All rows of this batch and of ``others``, without responsibilities."""
        batches = [self, *others]
        weight = None
        if any(batch.weight is not None for batch in batches):
            weight = np.concatenate([batch.entry_weight for batch in batches])
        return Batch(None, stacked([at_hand(batch.x) for batch in batches]), weight)

    def kept(self):
        """The batch with rows of its own, which do not change with the user's; without responsibilities."""
        x = self.x.copy() if issparse(self.x) else np.array(self.x)
        weight = None if self.weight is None else np.array(self.weight)
        return self._replace(x=x, weight=weight, resp=None)

    def weighing(self, factor):
        """The batch with all weights multiplied by ``factor``."""
        return self._replace(weight=factor * self.entry_weight)

    def slices(self):
        """Slices of at most `BLOCK_ROWS` rows, of nearly equal size; see `block_rows`."""
        return even_slices(self.n_entries, block_rows(self.x, BLOCK_ROWS))

    @property
    def values_per_row(self):
        """How many numbers a sparse row is stored in on average; None for dense rows."""
        return values_per_row(self.x)


def is_mapped(x):
    """Whether an array is a memory map, or a part of one. Copies have the class of one, but are none."""
    while x is not None:
        if isinstance(x, mmap):
            return True
        x = getattr(x, "base", None)
    return False


def _shuffled_rows(n_rows, rng):
    """Parts of a random order of ``n_rows`` row numbers, of which few are in memory at a time.

    Runs of rows are permuted, and then the rows of many runs from all over the data.
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
    """Batches that are consecutive slices of an array, visited in random order.

    Parameters
    ----------
    x : ndarray, shape (n, D)
        Rows.
    weight : ndarray, shape (n,), or None
        Sample weights.
    n_batches : int
        Number of slices, of nearly equal size; there are no more slices than rows.
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
        """Number of rows in memory at a time: all, or a batch of a memory map, but no more than a block."""
        if not is_mapped(self.x):
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
    def n_features(self):
        """Number of columns."""
        return self.x.shape[1]

    def moments(self, *, covariance):
        """`Moments` of the columns of all rows; with covariances, or else variances."""
        return column_moments(list(self.batches()), covariance=covariance)

    def codes(self):
        """`CodesOfColumns` of all rows."""
        return reduce(lambda a, b: a.added(b), map(CodesOfColumns.of, self.batches()))

    def check(self, check):
        """Let ``check(batch)`` raise if rows of a batch are not as they should be."""
        for batch in self.batches():
            check(batch)

    @property
    def everything(self):
        """All rows as one batch."""
        return Batch(None, self.x, self.weight, self.resp)

    def in_double(self):
        """Return a source with the rows in double precision."""
        return ArraySource(self.x.astype(np.float64), self.weight, len(self), self.resp)

    def batch(self, i):
        """Batch number i."""
        rows = slice(self.edges[i], self.edges[i + 1])
        return Batch(
            i,
            part(self.x, rows),
            None if self.weight is None else self.weight[rows],
            None if self.resp is None else self.resp[rows],
        )

    def batches(self):
        """Iterator over all batches."""
        return (self.batch(i) for i in range(len(self)))

    def shuffled(self, rng):
        """Iterator over batches of rows from all over the data, drawn without replacement."""
        parts, held = _shuffled_rows(self.n_rows, rng), np.empty(0, dtype=np.intp)
        for size in np.diff(self.edges):
            while len(held) < size:
                held = np.concatenate([held, next(parts)])
            yield self.rows(np.sort(held[:size]))
            held = held[size:]

    def without_responsibilities(self):
        """Return a source without given responsibilities: local steps will find them."""
        if self.resp is None:
            return self
        source = copy(self)
        source.resp = None
        return source

    def rows(self, rows):
        """Rows of any batches, as a batch of their own without a name."""
        return Batch(
            None,
            self.x[rows],
            None if self.weight is None else self.weight[rows],
            None if self.resp is None else self.resp[rows],
        )

    def sample(self, n_rows, rng, *, least=1000):
        """Up to ``n_rows`` rows, drawn without replacement, with their weights.

        If not all rows are taken, rows of weight 0 are never drawn. Of a memory map no more rows are drawn
        than two batches have, unless these are fewer than ``least`` rows or hold few numbers.
        """
        if self.rows_in_memory < self.n_rows:
            most = max(least, 2 * self.rows_in_memory, _SAMPLE_NUMBERS // max(1, self.x.shape[1]))
            n_rows = min(n_rows, most)
        rows = slice(None)
        if n_rows < self.n_rows:
            some = None if self.weight is None else np.flatnonzero(self.weight)
            n = self.n_rows if some is None else len(some)
            # rng.choice would permute all row numbers
            rows = np.sort(sample_without_replacement(n, min(n, n_rows), random_state=rng))
            rows = rows if some is None else some[rows]
        return self.x[rows], None if self.weight is None else self.weight[rows]
