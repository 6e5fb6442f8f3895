"""Columns of so many categories that their one-hot rows are mostly zeros.

Design note
-----------
(a) The family, its statistics and its mathematics are those of `categorical.py`. Only rows differ: a prepared
    row is the codes themselves, one number a column, and NaN for a missing entry. A one-hot row of 60,000
    categories would take 480 kB.
(b) A step turns its rows into sparse one-hot rows, with one entry for each observed code, and goes on as the
    layout `SparseRows` does. These rows live as long as the step.
(c) Codes are no vectors: their differences mean nothing. Who needs vectors takes `of_vectors`.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from .categorical import CategoricalLikelihood
from .counts import log_ratio, points_of_counts
from .leaving_out import pairs_with_shares
from .rows import SparseRows

# Single precision holds all whole numbers up to this one.
_LARGEST_SINGLE = 2**24


class CodedCategories(SparseRows, CategoricalLikelihood):
    """The family of `CategoricalLikelihood`, whose prepared rows are codes (n, D); see the module's note.

    Parameters
    ----------
    prior : CategoryPrior
        Prior of each component's distributions.
    sizes : ndarray of int, shape (D,)
        Number of categories of each column.
    """

    def __init__(self, prior, sizes):
        super().__init__(prior, sizes)
        self.n_features = len(sizes)

    @property
    def n_kernel_columns(self):
        """Columns of one-hot rows."""
        return len(self.prior.lam)

    def of_vectors(self):
        """The same family for dense one-hot rows: these have means and distances, and codes have none."""
        return CategoricalLikelihood(self.prior, self.sizes)

    # ------------------------------------------------------------------ rows

    def prepare(self, x):
        """Rows of codes (n, D), NaN for missing entries."""
        self._check_codes(x)
        single = x.dtype in (np.float32, np.float16) and self.sizes.max() <= _LARGEST_SINGLE
        return np.ascontiguousarray(x, dtype=np.float32 if single else np.float64)

    def one_hot(self, z):
        """Sparse one-hot rows (n, V) of codes, without an entry where a code is missing."""
        seen = z == z
        if seen.all():
            columns = (z.astype(np.int64) + self.starts).reshape(-1)
            ends = np.arange(0, z.size + 1, z.shape[1])
        else:
            columns = (np.where(seen, z, 0.0).astype(np.int64) + self.starts)[seen]
            ends = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
        ones = np.ones(len(columns), dtype=z.dtype)
        return csr_array((ones, columns, ends), shape=(len(z), self.n_kernel_columns))

    def kernel_rows(self, z):
        """Dense one-hot rows, of which `features` are made; the steps take sparse ones."""
        return self.one_hot(z).toarray()

    def log_table(self, coef, z):
        table = self.one_hot(z) @ coef[:, :-1].T.astype(z.dtype, copy=False)
        table += coef[:, -1].astype(z.dtype, copy=False)
        return table

    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        super().summarise(self.one_hot(z), shares, s, coef=coef, sparse=sparse)

    def _share(self, coef, z, how):
        super()._share(coef, self.one_hot(z), how)

    # ------------------------------------------------------------------ components

    def log_predictive(self, prior, s, z):
        return super().log_predictive(prior, s, self.one_hot(z))

    def log_predictive_without(self, prior, s, z, shares):
        """See `Likelihood`; each pair takes a few numbers for each column, however many categories."""
        out = self.log_predictive(prior, s, z)
        of_columns = np.add.reduceat(s[:, :-1], self.starts, axis=1)
        pseudo = np.add.reduceat(prior.lam, self.starts)
        for i, k, r in pairs_with_shares(shares, len(self.sizes)):
            codes, less = z[i], r[:, np.newaxis]
            seen = codes == codes
            place = np.where(seen, codes, 0.0).astype(np.intp) + self.starts
            change = log_ratio(s[k[:, np.newaxis], place], prior.lam[place], less)
            change -= log_ratio(of_columns[k], pseudo, less)
            out[i, k] += np.sum(change, axis=1, where=seen)
        return out

    def change_without(self, prior, s, k, z, i, r):
        return super().change_without(prior, s, k, self.one_hot(z), i, r)

    def seeding_points(self, prior, s, z, *, whiten=True):
        """The points of dense one-hot rows; of many rows, projections whose distances are nearly the same."""
        rows, V = self.one_hot(z), self.n_kernel_columns
        if not whiten:
            return points_of_counts(rows, lambda x, column: x, np.zeros(V))
        root = np.sqrt(self._means(prior, s))
        ends = np.append(self.starts, V)
        of_columns = csr_array((-root, np.arange(V), ends), shape=(len(self.sizes), V))
        return points_of_counts(
            rows,
            lambda x, column: x / root[column],
            of_columns,
            row_base=(z == z).astype(np.float64),
        )
