"""Rows of counts whose statistics hold sums over their entries, beside the counts themselves.

Design note
-----------
(a) ``s(x) = [f_1(x_1), ..., f_D(x_D), x, 1]``, where each f has several numbers and is zero for a count of
    zero.
(b) Columns of f would make rows tens of times longer. But counts repeat: many rows share the same count of
    the same column. The shares of rows are first added up for each distinct pair of a column and a count,
    and f is found once for each pair.
(c) The coefficients of f are the same for all components, unless these are compared under several priors.
    Then they have no part in the shares, and only add to the log weights that are asked for.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise

import numpy as np
from scipy.sparse import issparse

from ..inputs.batches import even_slices
from ..inputs.rows import part
from .counts import DistinctEntries, distinct_entries
from .row_kernels import SparseRows, share_table, weighted_shares

# A table of numbers of distinct pairs has no more of them.
_MOST_NUMBERS = 2**20


class EntrySums(SparseRows):
    """The layout of rows that the module's note describes.

    A family defines ``entry_sums``, and has the methods of `ColumnsOfCounts` for the other statistics.

    Attributes
    ----------
    n_sums : int
        How many numbers f has for each column.
    """

    n_sums: int

    @abstractmethod
    def entry_sums(self, column, x):
        """Numbers f (m, n_sums) of counts x (m,) of columns (m,)."""

    @property
    def n_statistics(self):
        """Length P of s(x)."""
        return self.n_entry_sums + self.n_kernel_columns + 1

    @property
    def n_entry_sums(self):
        """How many statistics are sums over entries."""
        return self.n_features * self.n_sums

    def plain(self, s):
        """Statistics or coefficients (..., P) without those of entries: of counts, and of 1."""
        return s[..., self.n_entry_sums :]

    def sums(self, s):
        """Statistics or coefficients of entries, (..., D, n_sums), of all (..., P)."""
        return s[..., : self.n_entry_sums].reshape(*s.shape[:-1], self.n_features, self.n_sums)

    def _blocks(self, z):
        """Pairs of a slice of rows and their `DistinctEntries`, few enough for a table."""
        counts = self.columns.filled(z)
        entries, n = distinct_entries(counts), counts.shape[0]
        if len(entries.values) * self.n_sums <= _MOST_NUMBERS or n == 1:
            return [(slice(0, n), entries)]
        most = max(1, _MOST_NUMBERS // self.n_sums * n // entries.occurrences.nnz)
        blocks = even_slices(n, most)
        return ((rows, DistinctEntries.of(part(counts, rows))) for rows in blocks)

    def features(self, z):
        out = np.zeros((z.shape[0], self.n_statistics))
        self.plain(out)[...] = self._plain_features(z)
        sums = self.sums(out)
        for rows, entries in self._blocks(z):
            f, own = self.entry_sums(entries.column, entries.values), entries.occurrences.tocoo()
            sums[rows][own.row, entries.column[own.col]] = f[own.col]
        return out

    def _plain_features(self, z):
        """Rows [x, 1] (n, P'), where P' is the length of ``plain(s)``."""
        rows = self.kernel_rows(z.toarray() if issparse(z) else z)
        return np.concatenate([rows, np.ones((len(rows), 1))], axis=1)

    def entry_table(self, coef, z):
        """The part (n, K) of log weights that is due to sums over entries."""
        own, out = self.sums(coef), np.empty((z.shape[0], len(coef)))
        for rows, entries in self._blocks(z):
            f = self.entry_sums(entries.column, entries.values)
            gains = np.empty((len(f), len(coef)))
            for d, pairs in _pairs_by_column(entries.column):
                gains[pairs] = f[pairs] @ own[:, d].T
            out[rows] = entries.occurrences @ gains
        return out

    def log_table(self, coef, z):
        return self._plain_features(z) @ self.plain(coef).T + self.entry_table(coef, z)

    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        plain = np.empty(self.plain(s).shape)
        super().summarise(z, shares, plain, coef=coef, sparse=sparse)
        self.plain(s)[...] = plain
        self._sum_entries(z, shares, s)

    def _sum_entries(self, z, shares, s):
        sums = self.sums(s)
        sums[...] = 0.0
        for rows, entries in self._blocks(z):
            f = self.entry_sums(entries.column, entries.values)
            mass = entries.occurrences.T @ np.ascontiguousarray(shares[rows], dtype=np.float64)
            for d, pairs in _pairs_by_column(entries.column):
                sums[:, d] += mass[pairs].T @ f[pairs]

    def _share(self, coef, z, how):
        own = coef[:, : self.n_entry_sums]
        if not (own == own[:1]).all():  # components are compared under several priors
            share_table(self.log_table(coef, z), how)
            if how.s is not None:
                self.summarise(z, weighted_shares(how.resp, how.mass, how.weight), how.s)
            return
        plain = None if how.s is None else np.empty(self.plain(how.s).shape)
        super()._share(np.ascontiguousarray(self.plain(coef)), z, how._replace(s=plain))
        if how.log_norm is not None:
            how.log_norm[...] += self.entry_table(coef[:1], z)[:, 0]
        if how.s is not None:
            self.plain(how.s)[...] = plain
            self._sum_entries(z, weighted_shares(how.resp, how.mass, how.weight), how.s)


def _pairs_by_column(column):
    """Yield each column that occurs in sorted columns (m,), and the slice of its pairs."""
    ends = np.concatenate([[0], np.flatnonzero(np.diff(column)) + 1, [len(column)]])
    for lo, hi in pairwise(ends.tolist()):
        if hi > lo:
            yield column[lo], slice(lo, hi)
