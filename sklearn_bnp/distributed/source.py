"""Chunks as a source of batches for the engine: what it tells of the data are maps over chunks and sums."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.random import sample_without_replacement

from ..inputs.category_codes import CodesOfColumns
from ..inputs.moment_sums import ColumnSizes, ColumnSums
from ..inputs.rows import at_hand, stacked


class ChunkInfo(NamedTuple):
    """Figures of a chunk that the driver keeps; sums over chunks are those of all data.

    Attributes
    ----------
    n_entries : int
        Rows, or entries of documents.
    total_weight : float
    n_units : int
        Rows, documents or sequences, those of weight 0 included if they are in the batch.
    unit_weight : float or None
        Sum of the units' weights; None if they have none.
    n_values : int or None
        Numbers that sparse rows are stored in; None for dense rows.
    largest : ndarray, shape (D,), or None
        Largest absolute value of each column; None where it does not matter.
    more : Any
        What only one kind of model wants to know.
    """

    n_entries: int
    total_weight: float
    n_units: int
    unit_weight: float | None
    n_values: int | None
    largest: np.ndarray | None = None
    more: Any = None


class ChunkBatch:
    """Some chunks that are visited, remembered and edited as one; their place works on them.

    Parameters
    ----------
    batch_id : object
    source : ChunkSource
    first, last : int
        Positions of the first chunk and of the one after the last.
    """

    def __init__(self, batch_id, source, first, last):
        self.batch_id, self._source, self._chunks = batch_id, source, (first, last)

    def _replace(self, batch_id=None, resp=None):
        """Return a copy under another name; there are no responsibilities to replace."""
        name = self.batch_id if batch_id is None else batch_id
        return ChunkBatch(name, self._source, *self._chunks)

    @property
    def parts(self):
        """A part for each chunk; those without rows do nothing."""
        return tuple(ChunkPart((self.batch_id, ("chunk", j)), j) for j in range(*self._chunks))

    def run_tasks(self, run, tasks):
        """Results of the tasks of the parts, those of neighbours added up: see `Learner`."""
        return self._source.place.run_tasks(run, tasks)

    # ------------------------------------------------------------------ a batch of a stream, of all chunks

    resp = None

    @property
    def n_entries(self):
        return self._source.n_entries

    @property
    def total_weight(self):
        return self._source.total_weight

    @property
    def mean_weight(self):
        return self._source.mean_weight

    @property
    def values_per_row(self):
        return self._source.values_per_row

    @property
    def n_documents(self):
        """Documents, or sequences, that all of them stand for."""
        return self._source.total_unit_weight

    n_sequences = n_documents

    def as_source(self):
        """This batch alone, as a `Source`."""
        return _Alone(self)

    def each(self, function):
        """``function(batch)`` of each chunk that has rows."""
        return [value for value in self._source.place.each(function) if value is not None]

    def go_through(self, function):
        """From now on, let chunks be what ``function(batch)`` returns."""
        self._source.place.go_through(function)

    def content_hash(self):
        """Hash of the content of all chunks, which identifies the batch."""
        digest = hashlib.blake2b(digest_size=16)
        for own in self.each(_content_hash):
            digest.update(str(own).encode())
        return digest.hexdigest()


class _Alone:
    """A batch of a stream as a `Source`, for laps over it alone."""

    resp = None

    def __init__(self, batch):
        self._batch, self.rows_in_memory = batch, batch.n_entries
        self.values_per_row, self.total_weight = batch.values_per_row, batch.total_weight
        self.mean_weight = batch.mean_weight

    def __len__(self):
        return 1

    def batch(self, i):
        """The batch."""
        return self._batch

    def without_responsibilities(self):
        """The source itself: chunks bring no responsibilities."""
        return self


def _content_hash(batch):
    return batch.content_hash()


class ChunkPart(NamedTuple):
    """A chunk as part of a batch.

    Attributes
    ----------
    batch_id : object
        Name under which what documents leave behind is kept.
    position : int
        Among all chunks.
    """

    batch_id: object
    position: int


class RowsOf(NamedTuple):
    """A function of rows, made a function of batches of another kind by ``rows_of(batch)``."""

    rows_of: Callable
    function: Callable

    def __call__(self, batch, *args):
        return self.function(self.rows_of(batch), *args)


def _itself(batch):
    return batch


class ChunkSource:
    """All data of a fit, in chunks that are not here.

    Parameters
    ----------
    place : Here or OnClient
        Where chunks are worked on.
    infos : list of ChunkInfo or None
        One for each chunk; None for chunks without rows.
    n_features : int
    rows_of : callable
        ``rows_of(batch)`` are the rows of a batch that the likelihood is of, as a `Batch`. It can be pickled.
    """

    resp = None

    def __init__(self, place, infos, n_features, rows_of=_itself):
        self.place, self.infos, self.n_features = place, infos, n_features
        self._rows_of = rows_of
        self.known = [info for info in infos if info is not None]
        self._groups = [(a, b) for a, b in place.groups if any(i is not None for i in infos[a:b])]

    # ------------------------------------------------------------------ what the engine asks for

    def __len__(self):
        return len(self._groups)

    def batch(self, i):
        """The i-th batch, of neighbouring chunks."""
        return ChunkBatch(i, self, *self._groups[i])

    @property
    def everything(self):
        """All chunks as one batch of a stream."""
        return ChunkBatch(None, self, 0, len(self.infos))

    def batches(self):
        """All batches, one after the other."""
        return (self.batch(i) for i in range(len(self)))

    def without_responsibilities(self):
        """The source itself: chunks bring no responsibilities."""
        return self

    @property
    def leaves_behind(self):
        """Whether what only the next visit to a chunk needs stays beside it, and is gone after the fit."""
        return self.place.leaves

    @property
    def n_entries(self):
        return sum(info.n_entries for info in self.known)

    @property
    def rows_in_memory(self):
        """Number of rows, by which samples are limited as if all of them were in memory."""
        return self.n_entries

    @property
    def n_rows(self):
        """Number of rows, documents or sequences."""
        return self.n_units

    @property
    def n_units(self):
        """Number of rows, documents or sequences."""
        return sum(info.n_units for info in self.known)

    @property
    def total_weight(self):
        return float(sum(info.total_weight for info in self.known))

    @property
    def mean_weight(self):
        """Mean weight of rows, documents or sequences; None if they have none."""
        if all(info.unit_weight is None for info in self.known):
            return None
        return self.total_unit_weight / self.n_units or 1.0

    @property
    def total_unit_weight(self):
        """Sum of the weights of rows, documents or sequences."""
        weights = (i.n_units if i.unit_weight is None else i.unit_weight for i in self.known)
        return float(sum(weights))

    @property
    def values_per_row(self):
        """Numbers that a row is held in, on average; None if all rows are dense."""
        if all(info.n_values is None for info in self.known):
            return None
        values = sum(
            info.n_entries * self.n_features
            if info.n_values is None
            else info.n_entries + 2 * info.n_values
            for info in self.known
        )
        return values // max(1, self.n_entries)

    # ------------------------------------------------------------------ rows

    def with_rows_of(self, rows_of):
        """Return a source of these chunks whose rows are found in another way."""
        return ChunkSource(self.place, self.infos, self.n_features, rows_of)

    def each(self, function, args=None, or_else=None):
        """``function(rows)`` of each chunk, or ``function(rows, arg)`` with one arg a chunk.

        It is ``or_else`` for chunks without rows.
        """
        found = self.place.each(RowsOf(self._rows_of, function), args)
        return [or_else if i is None else v for v, i in zip(found, self.infos, strict=True)]

    def added(self, function):
        """Sum of ``function(rows)`` over all chunks."""
        found = [value for value in self.each(function) if value is not None]
        return reduce(lambda a, b: a.added(b), found)

    def moments(self, *, covariance):
        """`Moments` of the columns of all rows."""
        sizes = self.added(ColumnSizes.of)
        shift = np.zeros(len(sizes.units)) if sizes.center is None else sizes.center / sizes.units
        how = {"missing": sizes.missing, "covariance": covariance}
        sums = self.added(partial(ColumnSums.of, units=sizes.units, shift=shift, **how))
        return sums.moments(sizes, shift)

    def codes(self):
        """`CodesOfColumns` of all rows."""
        return self.added(CodesOfColumns.of)

    def check(self, check):
        """Let ``check(rows)`` raise if rows of a chunk are not as they should be."""
        self.each(partial(_checked, check))

    def sample(self, n_rows, rng, *, least=1000):
        """Up to ``n_rows`` rows, drawn without replacement, with their weights.

        If not all rows are taken, rows of weight 0 are never drawn. They are the rows that
        `ArraySource.sample` draws from the same rows in one array, with the same ``rng``.
        """
        counts = np.array(self.each(_n_rows, or_else=0), dtype=np.int64)
        positive = n_rows < counts.sum()
        if positive and self.mean_weight is not None:
            counts = np.array(self.each(_n_positive, or_else=0), dtype=np.int64)
        chosen = np.arange(counts.sum())
        if positive:
            n = int(counts.sum())
            chosen = np.sort(sample_without_replacement(n, min(n, n_rows), random_state=rng))
        ends = np.cumsum(counts)
        cuts = np.searchsorted(chosen, ends[:-1])
        own = [
            some - start for some, start in zip(np.split(chosen, cuts), ends - counts, strict=True)
        ]
        found = self.each(_drawn if positive else _all_drawn, own)
        found = [
            rows for rows, some in zip(found, own, strict=True) if rows is not None and len(some)
        ]
        x = stacked([rows for rows, _ in found])
        if self.mean_weight is None:
            return x, None
        weights = [np.ones(r.shape[0]) if w is None else w for r, w in found]
        return x, np.concatenate(weights)


def _checked(check, rows):
    check(rows)


def _n_rows(rows):
    return rows.x.shape[0]


def _n_positive(rows):
    return rows.x.shape[0] if rows.weight is None else int(np.count_nonzero(rows.weight))


def _drawn(rows, some):
    """Rows ``some`` (n,) of those of positive weight, and their weights."""
    some = some if rows.weight is None else np.flatnonzero(rows.weight)[some]
    return _all_drawn(rows, some)


def _all_drawn(rows, some):
    x = at_hand(rows.x)[some]
    return x if issparse(x) else np.array(x), None if rows.weight is None else rows.weight[some]
