"""Autoregression in sequences that have gaps.

Design note
-----------
(a) A row that lacks an entry, its own or one of the rows before it, has no density: it is left to the
    chain, as if it were not there, while time goes on. So a gap of one row costs the p rows after it as
    well; these are given and not explained, as the first p rows of a sequence are.
(b) Statistics are those of rows that lack nothing, and one more counts all rows. It has no part in the
    evidence. A row in a gap is ``s(x) = [0, ..., 0, 1]``.
(c) Prepared rows keep their nan, and are told by it.
"""

from __future__ import annotations

import numpy as np

from .tables import TableLikelihood

# Rows of which statistics are written out at a time.
_BLOCK_ROWS = 4096


def are_whole(rows):
    """Which rows (n, D) lack nothing, (n,)."""
    return ~np.isnan(rows).any(axis=1)


def blanked(rows):
    """Lagged rows with nan in all columns where there is one in any."""
    whole = are_whole(rows)
    if whole.all():
        return rows
    return np.where(whole[:, np.newaxis], rows, rows.dtype.type(np.nan))


class GappedRegression(TableLikelihood):
    """Regressions for lagged rows of which some lack entries; see the module's note.

    Parameters
    ----------
    complete : AutoregressiveLikelihood
        Its statistics are all but the last one.
    """

    has_missing = True

    def __init__(self, complete):
        self.complete, self.prior, self.lags = complete, complete.prior, complete.lags
        self.may_be_far_out = complete.may_be_far_out
        self.n_features = complete.n_features

    @property
    def n_statistics(self):
        return self.complete.n_statistics + 1

    def from_complete(self, s):
        """Statistics of complete rows as those of rows with gaps."""
        return np.concatenate([s, s[..., -1:]], axis=-1)

    def prepare(self, x):
        return self.complete.prepare(x)

    def farthest(self, z):
        return self.complete.farthest(z)

    def log_base(self, x):
        out, whole = np.zeros(len(x)), are_whole(x)
        out[whole] = self.complete.log_base(x[whole])
        return out

    # ------------------------------------------------------------------ statistics to parameters

    def evidence(self, prior, s):
        return self.complete.evidence(prior, s[..., :-1])

    def coefficients(self, prior, s):
        out = np.zeros(s.shape)
        out[:, :-1] = self.complete.coefficients(prior, np.ascontiguousarray(s[:, :-1]))
        return out

    def attributes(self, prior, s):
        return self.complete.attributes(prior, np.ascontiguousarray(s[:, :-1]))

    def sample(self, attributes, labels, rng):
        return self.complete.sample(attributes, labels, rng)

    # ------------------------------------------------------------------ rows

    def log_table(self, coef, z):
        own, whole = coef[:, :-1].astype(z.dtype), np.flatnonzero(are_whole(z))
        out = np.empty((len(z), len(coef)), dtype=z.dtype)
        out[:] = coef[:, -1]
        for lo in range(0, len(whole), _BLOCK_ROWS):
            rows = whole[lo : lo + _BLOCK_ROWS]
            out[rows] += self.complete.features(z[rows]) @ own.T
        return out

    def features(self, z):
        out, whole = np.zeros((len(z), self.n_statistics), dtype=z.dtype), are_whole(z)
        out[whole, :-1] = self.complete.features(z[whole])
        out[:, -1] = 1.0
        return out

    def summarise(self, z, shares, s, *, coef=None, sparse=False):
        """Fill ``s`` (J, P) with statistics of rows; see `Likelihood.summarise`."""
        whole, own = are_whole(z), np.empty((len(s), s.shape[1] - 1))
        self.complete.summarise(z[whole], shares[whole], own, sparse=sparse)
        s[:, :-1], s[:, -1] = own, shares.sum(axis=0, dtype=float)

    def imputed(self, prior, s, z):
        """Rows in which all is as on average in place of those that lack something."""
        mean = self.complete.mean(prior, s[:-1]).astype(z.dtype)
        return np.where(are_whole(z)[:, np.newaxis], z, mean)

    def seeding_points(self, prior, s, z, *, whiten=True):
        points = self.imputed(prior, s, z)
        return self.complete.seeding_points(prior, s[:-1], points, whiten=whiten)

    def log_predictive(self, prior, s, z):
        out, whole = np.zeros((len(z), len(s))), are_whole(z)
        own = np.ascontiguousarray(s[:, :-1])
        out[whole] = self.complete.log_predictive(prior, own, z[whole])
        return out
