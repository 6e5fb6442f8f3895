"""Autoregression in sequences that have gaps.

Design note
-----------
(a) A row has no density if an entry of it, or of one of the p rows before it, is missing. The chain goes
    through it without an observation. So a gap of one row costs the p rows after it as well: like the
    first p rows of a sequence, they are given and not explained.
(b) Statistics are those of rows without missing entries, and one more, which counts all rows and has no part
    in the evidence. A row in a gap has ``s(x) = [0, ..., 0, 1]``.
(c) Prepared rows keep their NaN, by which rows in gaps are known.
"""

from __future__ import annotations

import numpy as np

from .missing import IncompleteLikelihood
from .row_kernels import TableRows

# Rows whose statistics are in memory at a time.
_BLOCK_ROWS = 4096


def are_whole(rows):
    """Which rows (n, D) have no missing entry, (n,)."""
    return ~np.isnan(rows).any(axis=1)


def blanked(rows):
    """Lagged rows, with NaN in all columns of those that have NaN in any."""
    whole = are_whole(rows)
    if whole.all():
        return rows
    return np.where(whole[:, np.newaxis], rows, rows.dtype.type(np.nan))


class GappedRegression(TableRows, IncompleteLikelihood):
    """Regressions for lagged rows with missing entries; see the module's note.

    Parameters
    ----------
    complete : Likelihood
        The family for complete lagged rows.
    """

    n_added = 1

    @property
    def imputes(self):
        """Whether statistics of a row depend on the component that explains it."""
        return self.complete.imputes

    @property
    def scaling(self):
        """Units of the rows."""
        return self.complete.scaling

    def from_complete(self, s):
        """Statistics of complete rows as those of rows with gaps; see `Likelihood`."""
        return np.concatenate([s, s[..., -1:]], axis=-1)

    def log_base(self, x):
        out, whole = np.zeros(len(x)), are_whole(x)
        out[whole] = self.complete.log_base(x[whole])
        return out

    # ------------------------------------------------------------------ statistics to parameters

    def evidence(self, prior, s):
        return self.complete.evidence(prior, self.own(s))

    def coefficients(self, prior, s):
        out = np.zeros(s.shape)
        out[:, :-1] = self.complete.coefficients(prior, self.own(s))
        return out

    # ------------------------------------------------------------------ rows

    def log_table(self, coef, z):
        own, whole = coef[:, :-1], np.flatnonzero(are_whole(z))
        out = np.empty((len(z), len(coef)), dtype=z.dtype)
        out[:] = coef[:, -1]
        for lo in range(0, len(whole), _BLOCK_ROWS):
            rows = whole[lo : lo + _BLOCK_ROWS]
            out[rows] += self.complete.log_table(own, z[rows])
        return out

    def features(self, z):
        out, whole = np.zeros((len(z), self.n_statistics), dtype=z.dtype), are_whole(z)
        out[whole, :-1] = self.complete.features(z[whole])
        out[:, -1] = 1.0
        return out

    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        whole, own = are_whole(z), np.empty((len(s), s.shape[1] - 1))
        coef = None if coef is None else coef[:, :-1]
        self.complete.summarise(z[whole], shares[whole], own, coef=coef, sparse=sparse)
        s[:, :-1], s[:, -1] = own, shares.sum(axis=0, dtype=float)

    def imputed(self, prior, s, z):
        """Rows in which those with missing entries are the mean of the component; see `Likelihood`."""
        mean = self.complete.mean(prior, s[:-1]).astype(z.dtype)
        return np.where(are_whole(z)[:, np.newaxis], z, mean)

    def log_predictive(self, prior, s, z):
        out, whole = np.zeros((len(z), len(s))), are_whole(z)
        out[whole] = self.complete.log_predictive(prior, self.own(s), z[whole])
        return out
