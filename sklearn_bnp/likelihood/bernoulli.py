"""Binary columns with Beta priors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from .base import Likelihood, ObservationModel
from .counts import (
    ColumnsOfCounts,
    alike_columns,
    checked_bits,
    digammas,
    log_ratio,
    log_rising_factorials,
    nonzeros_of_rows,
    pair_of_priors,
    points_of_counts,
    statistics_as_rows,
)
from .leaving_out import blocks
from .missing import columns_of

# Variance of a column in which all rows of a component are equal, where the prior adds next to none.
_LEAST_VARIANCE = 1e-12


class BetaPrior(NamedTuple):
    """Pseudo-counts of ones ``a`` and of zeros ``b``, each (D,)."""

    a: np.ndarray
    b: np.ndarray


class BernoulliObservation(ObservationModel):
    """Independent binary columns; each component has a probability for each column.

    Rows may be sparse (CSR). They stay sparse, and zeros cost nothing.

    Parameters
    ----------
    prior : tuple of two floats or of two array-likes of shape (n_features,), default=None
        Pseudo-counts (a, b) > 0 of ones and zeros in the Beta prior; (1, 1) if None.

    Notes
    -----
    Entries that are missing (NaN) are integrated out.

    References
    ----------
    Hughes (2016), Sec. 2.2.

    Examples
    --------
    >>> from sklearn_bnp import BernoulliObservation, DPMixtureVB
    >>> model = DPMixtureVB(observation=BernoulliObservation(prior=(0.5, 0.5)))
    """

    _parameter_constraints = {"prior": "no_validation"}  # our own message says more

    def __init__(self, prior: Any = None) -> None:
        self.prior = prior

    takes_sparse = allows_missing = True

    def bind(self, moments: Any, *, streaming: bool = False) -> Likelihood:
        """The likelihood for data with these moments; see `ObservationModel.bind`."""
        self._validate_params()
        pair = (1.0, 1.0) if self.prior is None else self.prior
        prior = BetaPrior(*pair_of_priors(pair, len(moments.mean)))
        return BernoulliLikelihood(prior, columns_of(moments))


class BernoulliLikelihood(ColumnsOfCounts):
    """``s(x) = [x, 1]``; the evidence of a column is a ratio of Beta functions."""

    def prepare(self, x):
        return checked_bits(self.columns.dense(x))

    def prepare_means(self, means):
        wrong = means[~((means >= 0) & (means <= 1))]
        if len(wrong):
            raise ValueError(
                f"means_init holds {wrong[0]:g}, but must hold probabilities, which are from 0 to 1."
            )
        return np.ascontiguousarray(means, dtype=np.float64)

    def _counts(self, prior, s):
        ones = self.columns.values(s)
        zeros = np.maximum(self.columns.counts(s) - ones, 0.0)
        # zeros come first: a tiny prior.b would be lost in the counts
        return prior.a + ones, prior.b + zeros

    def means(self, prior, s):
        a, b = self._counts(prior, s)
        return a / (a + b)

    def _ones_zeros_all(self, s):
        """How many ones, zeros and observed entries there are in each column, each (K, D)."""
        rows = statistics_as_rows(s)
        ones = np.ascontiguousarray(self.columns.values(rows))
        both = np.array(np.broadcast_to(self.columns.counts(rows), ones.shape))
        return ones, both - ones, both

    def evidence(self, prior, s):
        """Ratios of Beta functions, made of rising factorials of ones, of zeros and of all entries."""
        parts = zip(self._ones_zeros_all(s), _pseudo_counts(prior), strict=True)
        ones, zeros, both = (log_rising_factorials(counts, pseudo) for counts, pseudo in parts)
        return (ones + zeros - both).reshape(s.shape[:-1])

    def coefficients(self, prior, s):
        """``E[log p_kd] - E[log (1 - p_kd)]`` of values; ``E[log (1 - p_kd)]`` of each observed entry."""
        parts = zip(self._ones_zeros_all(s), _pseudo_counts(prior), strict=True)
        ones, zeros, both = (digammas(counts, pseudo) for counts, pseudo in parts)
        out = np.zeros(s.shape)
        self.columns.values(out)[...] = ones - zeros
        self.columns.put(out, zeros - both)
        return out

    def log_predictive(self, prior, s, z):
        a, b = self._counts(prior, s)
        on, off = np.log(a / (a + b)), np.log(b / (a + b))
        return self.columns.filled(z) @ (on - off).T + self.columns.total(off, z)

    def change_without(self, prior, s, k, z, i, r):
        """Of each observed entry, a count and the total of counts are smaller by r."""
        if issparse(z):
            return self._change_of_sparse(prior, s, k, z, i, r)
        s, z, r = s[k], z[i].astype(float), r[:, np.newaxis]
        ones, both = self.columns.values(s), self.columns.counts(s)
        on = z == 1
        alike = np.where(on, ones, both - ones)
        pseudo = np.where(on, prior.a, prior.b)
        change = log_ratio(alike, pseudo, r) - log_ratio(both, prior.a + prior.b, r)
        return np.where(np.isnan(z), 0.0, change).sum(axis=1)

    def _change_of_sparse(self, prior, s, k, z, i, r):
        """`change_without` of a row of zeros, and what is different where there are ones.

        Columns in which a component has no ones are summed up together if they have the same prior.
        """
        n, both = s[:, -1], prior.a + prior.b
        pair, column, _ = nonzeros_of_rows(z, i)
        less, ones = r[pair], s[k[pair], column]
        terms = log_ratio(ones, prior.a[column], less)
        terms -= log_ratio(n[k[pair]] - ones, prior.b[column], less)
        change = np.bincount(pair, terms, minlength=len(r))
        first, group = alike_columns(prior.a, prior.b)
        for j in np.unique(k):
            shown = np.flatnonzero(s[j, :-1])
            number = np.bincount(group, minlength=len(first))
            number -= np.bincount(group[shown], minlength=len(first))
            left = np.flatnonzero(number)
            columns = np.concatenate([shown, first[left]])
            ones = np.concatenate([s[j, shown], np.zeros(len(left))])
            times = np.concatenate([np.ones(len(shown)), number[left]])
            own = np.flatnonzero(k == j)
            for block in blocks(len(own), len(columns)):
                m = own[block]
                less = r[m, np.newaxis]
                zeros = log_ratio(n[j] - ones, prior.b[columns], less)
                zeros -= log_ratio(n[j], both[columns], less)
                change[m] += zeros @ times
        return change

    def seeding_points(self, prior, s, z, *, whiten=True):
        """Columns in units of their standard deviations in the component."""
        p = self.means(prior, s)
        deviation = np.sqrt(np.maximum(p * (1.0 - p), _LEAST_VARIANCE))
        z = self.columns.imputed(z, p)
        return points_of_counts(z, lambda x, column: x / deviation[column], -p / deviation)

    def sample(self, attributes, labels, rng):
        p = attributes["means_"][labels]
        return (rng.random(p.shape) < p).astype(float)


def _pseudo_counts(prior):
    """Pseudo-counts of ones, of zeros and of both, each (D,)."""
    return prior.a, prior.b, prior.a + prior.b
