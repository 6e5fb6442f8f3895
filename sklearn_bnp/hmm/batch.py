"""Sequences in batches, whole or in parts."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from ..inputs.batches import even_slices
from ..inputs.content_hashes import add_numbers, add_rows, unless_ones
from ..inputs.groups import even_cuts
from ..inputs.rows import at_hand, joined_numbers, mean_weight, stacked, values_per_row
from ..inputs.rows import part as rows_of
from ..likelihood.lags import lagged


class SequenceBatch(NamedTuple):
    """Whole sequences under a name.

    Attributes
    ----------
    batch_id : object
    x : ndarray, shape (n, D)
        Rows of all sequences, one after another.
    indptr : ndarray of int64, shape (n_sequences + 1,)
        Sequence d has the rows ``indptr[d]:indptr[d + 1]``.
    lags : int
        Rows at the beginning of each sequence that are given and not modelled.
    resp : ndarray, shape (n, K), or None
        Responsibilities to summarise instead of a local step.
    weight : ndarray of float64, shape (n_sequences,), or None
        How many equal sequences each stands for; one if None.
    """

    batch_id: object
    x: np.ndarray
    indptr: np.ndarray
    lags: int = 0
    resp: np.ndarray | None = None
    weight: np.ndarray | None = None

    @property
    def lengths(self):
        """Rows of each sequence that are modelled."""
        return np.maximum(np.diff(self.indptr) - self.lags, 0)

    @property
    def parts(self):
        """The batch itself is its only part."""
        return (self,)

    def load(self):
        """The batch, which is here."""
        return self

    @property
    def n_entries(self):
        """Rows that are modelled."""
        return int(np.sum(self.lengths))

    @property
    def n_sequences(self):
        """Sequences that all of them stand for."""
        return float(len(self.indptr) - 1 if self.weight is None else self.weight.sum())

    @property
    def total_weight(self):
        """Rows that those which are modelled stand for."""
        return float(self.n_entries if self.weight is None else self.lengths @ self.weight)

    @property
    def mean_weight(self):
        """Mean weight of the sequences; None if they have none."""
        return None if self.weight is None else mean_weight(self.weight)

    @property
    def values_per_row(self):
        return values_per_row(self.x)

    def n_values(self, n_features):
        """Numbers that the rows are stored in; a row that is not sparse has ``n_features``."""
        return self.n_entries * (self.values_per_row or n_features)

    def joined(self, others):
        """All sequences of this batch and of ``others``, without responsibilities."""
        batches = [self, *others]
        shift = np.cumsum([0] + [batch.x.shape[0] for batch in batches])
        indptr = [batch.indptr[1:] + n for batch, n in zip(batches, shift[:-1], strict=True)]
        weight = joined_numbers([b.weight for b in batches], [b.n_units for b in batches])
        x = stacked([at_hand(batch.x) for batch in batches])
        return SequenceBatch(None, x, np.concatenate([[0], *indptr]), self.lags, None, weight)

    @property
    def n_units(self):
        """Number of sequences: a batch may be cut between any two."""
        return len(self.indptr) - 1

    def even_cuts(self, n):
        """Cuts (at most n + 1,) into ``n`` parts with the same number of sequences."""
        return even_cuts(self.indptr, n)

    def kept(self):
        """The batch with rows of its own, which do not change with the user's; without responsibilities."""
        x = self.x.copy() if issparse(self.x) else np.array(self.x)
        return self._replace(x=x, resp=None)

    def weighing(self, factor):
        """The batch with all weights multiplied by ``factor``."""
        weight = np.ones(self.n_units) if self.weight is None else self.weight
        return self._replace(weight=factor * weight)

    def content_hash(self):
        """Identity of the batch by its content."""
        digest = hashlib.blake2b(digest_size=16)
        add_numbers(digest, self.indptr)
        add_rows(digest, self.x)
        add_numbers(digest, unless_ones(self.weight))
        return digest.hexdigest()

    def slices(self):
        """Slices of at most `BLOCK_ROWS` rows."""
        return even_slices(self.x.shape[0])

    def part(self, batch_id, first, last):
        """The sequences from ``first`` to before ``last``, under a name."""
        indptr = self.indptr[first : last + 1]
        rows = slice(int(indptr[0]), int(indptr[-1]))
        resp = None if self.resp is None else self.resp[rows]
        weight = None if self.weight is None else self.weight[first:last]
        x = rows_of(self.x, rows)
        return SequenceBatch(batch_id, x, indptr - indptr[0], self.lags, resp, weight)

    def prepared(self, prepare):
        """Modelled rows (T, D') after ``prepare``, and where sequences begin among them."""
        x, indptr = lagged(at_hand(self.x), self.indptr, self.lags)
        return prepare(x), indptr

    @property
    def edges(self):
        """Where sequences begin (n_sequences + 1,) among the rows that are modelled."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    def cut(self, part):
        """The rows of a `SequencePart`, with those that they look back to, as a batch."""
        if part.is_whole:
            return self.part(None, part.first, part.last)
        begin = self.indptr[part.first] + part.offset
        rows = slice(begin, begin + part.end - part.begin + self.lags)
        resp = None if self.resp is None else self.resp[rows]
        indptr = np.array([0, rows.stop - rows.start], dtype=np.int64)
        weight = None if self.weight is None else self.weight[part.first : part.last]
        return SequenceBatch(None, rows_of(self.x, rows), indptr, self.lags, resp, weight)

    def gathered(self, edges):
        """Pieces of sequences, rows ``edges[i, 0]:edges[i, 1]`` with those that they look back to."""
        lengths = edges[:, 1] - edges[:, 0] + self.lags
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        offset = np.repeat(edges[:, 0] - self.lags - indptr[:-1], lengths)
        x = self.x[offset + np.arange(indptr[-1])]
        return SequenceBatch(None, x, indptr, self.lags)


class SequencePart(NamedTuple):
    """Whole sequences, or consecutive rows of one.

    Attributes
    ----------
    first, last : int
        Sequences from ``first`` to before ``last``.
    begin, end : int
        Their rows among all that are modelled.
    offset : int
        Rows of the sequence ``first`` before ``begin``; 0 if there are several sequences.
    goes_on : bool
        Whether the sequence has rows after ``end``.
    """

    first: int
    last: int
    begin: int
    end: int
    offset: int = 0
    goes_on: bool = False

    @property
    def is_whole(self):
        """Whether these are whole sequences."""
        return self.offset == 0 and not self.goes_on


def parts(edges, n_rows):
    """Lists of `SequencePart` objects of about ``n_rows`` rows: of one long sequence each, or a single one.

    Parameters
    ----------
    edges : ndarray, shape (n_sequences + 1,)
        Where sequences begin among the rows that are modelled.
    n_rows : int
        A longer sequence is cut into equal parts; shorter ones are bundled.
    """
    lengths = np.diff(edges)
    long = lengths > n_rows
    block = (edges[1:] - 1) // n_rows
    cuts = np.flatnonzero(np.diff(block).astype(bool) | long[1:] | long[:-1]) + 1
    for first, last in pairwise([0, *cuts.tolist(), len(lengths)]):
        begin, end = int(edges[first]), int(edges[last])
        n_parts = -(-(end - begin) // n_rows) if long[first] else 1
        places = [begin + i * (end - begin) // n_parts for i in range(n_parts + 1)]
        yield [SequencePart(first, last, a, b, a - begin, b < end) for a, b in pairwise(places)]


class PreparedRows:
    """The modelled rows of a batch as the likelihood sees them, at hand or made when they are wanted.

    Parameters
    ----------
    batch : SequenceBatch
    prepare : callable
        Rows -> prepared rows.
    keep : bool
        Prepare all rows now, and keep them.
    """

    def __init__(self, batch, prepare, *, keep):
        self.batch, self._prepare = batch, prepare
        self.indptr = batch.edges
        self._z = batch.prepared(prepare)[0] if keep else None

    @property
    def n_rows(self):
        return int(self.indptr[-1])

    def of(self, part):
        """Rows of a `SequencePart`, and where sequences begin among them."""
        if self._z is None:
            return self.batch.cut(part).prepared(self._prepare)
        z = rows_of(self._z, slice(part.begin, part.end))
        if part.is_whole:
            return z, self.indptr[part.first : part.last + 1] - part.begin
        return z, np.array([0, z.shape[0]], dtype=np.int64)

    def weight(self, part):
        """Weights of the sequences of a `SequencePart`, or None."""
        weight = self.batch.weight
        return None if weight is None else weight[part.first : part.last]

    def runs(self, first, last):
        """Rows ``first[i]:last[i]`` of some runs (within sequences), one run after the other."""
        sequence = np.searchsorted(self.indptr, first, side="right") - 1
        shift = self.batch.indptr[sequence] + self.batch.lags - self.indptr[sequence]
        edges = np.column_stack([first + shift, last + shift])
        return self.batch.gathered(edges).prepared(self._prepare)[0]
