"""Counts with a rate for each column, and Gamma priors.

Design note
-----------
(a) The objective is a bound of the density of the events' times, and not of their number. The times of x
    events in an interval of unit length have the density ``lambda^x exp(-lambda)``; the probability of
    their number has the factor ``1 / x!`` as well, which depends on no component and changes no decision.
    It is in ``log_base``, which `score_samples` adds. So ``s(x) = [x, 1]``, as in `multinomial.py`.
(b) Unless the user gives a prior, its shape a is fixed, and its inverse scale b is found by empirical
    Bayes, column by column: ``b_d = K a_d / sum_k E[lambda_kd]``. The shape is not adapted, because the
    prior of a column in which components agree would become so narrow that further components cost next
    to nothing: of 40 sets of rows from one component, 4 were split.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from .base import Likelihood, ObservationModel
from .counts import (
    ColumnsOfCounts,
    alike_columns,
    checked_counts,
    checked_means,
    digammas,
    distinct_entries,
    log_rise,
    log_rising_factorials,
    nonzeros_of_rows,
    pair_of_priors,
    points_of_counts,
    statistics_as_rows,
    sum_log_factorials,
    sums_over_entries,
)
from .leaving_out import blocks, pairs_with_shares
from .missing import columns_of

_DEFAULT_SHAPE = 1.0
# Limits of inverse scales, in rows: a column of zeros would drive b to infinity.
_SCALE_RANGE = (1e-150, 1e6)


class GammaPrior(NamedTuple):
    """Shapes ``a`` and inverse scales ``b`` of the rates, each (D,)."""

    a: np.ndarray
    b: np.ndarray


class PoissonObservation(ObservationModel):
    """Independent columns of counts; each component has a rate for each column.

    A row holds how many events of ``n_features`` kinds were counted in equal stretches of time,
    space or effort: spikes of neurons, calls at desks, species in traps.

    Rows may be sparse (CSR). They stay sparse, and zeros cost nothing.

    Parameters
    ----------
    prior : tuple of two floats or of two array-likes of shape (n_features,), default=None
        Shape a and inverse scale b > 0 of the Gamma prior of rates, whose mean is a / b. If None, a
        is 1, and b maximises the objective, column by column (empirical Bayes).

    Notes
    -----
    `score_samples` gives the log probability of the counts. The objective (``lower_bound_``) leaves out
    ``-log x!``, which depends on no parameter. Entries that are missing (NaN) are integrated out.

    References
    ----------
    Hughes (2016), Sec. 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import DPMixtureVB
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.poisson(rate, size=(100, 3)) for rate in (1, 8, 30)])
    >>> DPMixtureVB(observation="poisson", random_state=0).fit(X).n_components_
    3
    """

    _parameter_constraints = {"prior": "no_validation"}  # our own message says more

    def __init__(self, prior: Any = None) -> None:
        self.prior = prior

    takes_sparse = allows_missing = True

    def bind(self, moments: Any, *, streaming: bool = False) -> Likelihood:
        """The likelihood for data with these moments; see `ObservationModel.bind`."""
        self._validate_params()
        mean = moments.mean * moments.magnitude
        if self.prior is None:  # a start: rates like the column's mean
            a = np.full(mean.shape, _DEFAULT_SHAPE)
            b = a / np.maximum(mean, 1.0 / moments.n_rows)
            return PoissonLikelihood(GammaPrior(a, b), columns_of(moments), adapts_prior=True)
        prior = GammaPrior(*pair_of_priors(self.prior, len(mean)))
        return PoissonLikelihood(prior, columns_of(moments), adapts_prior=False)


class PoissonLikelihood(ColumnsOfCounts):
    """``s(x) = [x, 1]``; see the module's note."""

    def __init__(self, prior, columns=None, *, adapts_prior):
        super().__init__(prior, columns)
        self.adapts_prior = adapts_prior

    def prepare(self, x):
        x = self.columns.dense(x)
        return checked_counts(x, "poisson", "give raw counts (not rates or frequencies)")

    def prepare_means(self, means):
        return checked_means(means, "rates")

    def _posterior(self, prior, s):
        """Shapes and inverse scales given statistics (K, P); both (K, D)."""
        return prior.a + self.columns.values(s), prior.b + self.columns.counts(s)

    def means(self, prior, s):
        a, b = self._posterior(prior, s)
        return a / b

    def evidence(self, prior, s):
        """``sum_d c(a + s_d, b + n) - c(a, b)``, with ``c(a, b) = lnGamma(a) - a log b``."""
        rows = statistics_as_rows(s)
        out = log_rising_factorials(rows, prior.a)
        # a log b - (a + s) log(b + n), with no cancellation where b is large
        growth = np.log1p(self.columns.counts(rows) / prior.b)
        out -= growth @ prior.a
        out -= np.einsum("kd,kd->k", self.columns.values(rows), growth + np.log(prior.b))
        return out.reshape(s.shape[:-1])

    def coefficients(self, prior, s):
        """``E[log lambda_kd]`` of values, and ``-E[lambda_kd]`` of each observed entry."""
        a, b = self._posterior(prior, s)
        values = np.ascontiguousarray(self.columns.values(statistics_as_rows(s)))
        out = np.zeros(s.shape)
        self.columns.values(out)[...] = digammas(values, prior.a) - np.log(b)
        self.columns.put(out, -(a / b))
        return out

    def update_prior(self, prior, s, n_iter):
        if not self.adapts_prior or len(s) == 0:
            return prior
        for _ in range(n_iter):
            a, b = self._posterior(prior, s)
            best = len(s) * prior.a / np.sum(a / b, axis=0)
            prior = prior._replace(b=np.clip(best, *_SCALE_RANGE))
        return prior

    def prior_distance(self, old, new):
        return np.mean(np.abs(np.log(new.b / old.b)))

    def leaving_out_work(self, z):
        return len(distinct_entries(self.columns.filled(z)).values)

    def log_predictive(self, prior, s, z):
        """Negative binomial probabilities without the factorials of `log_base`; zeros are skipped."""
        a, b = self._posterior(prior, s)
        zero, step = a * np.log1p(1.0 / b), np.broadcast_to(np.log1p(b), a.shape)

        def gains(column, x):
            x = x[:, np.newaxis]
            return log_rise(a[:, column].T, x) - x * step[:, column].T

        return sums_over_entries(self.columns.filled(z), gains) - self.columns.total(zero, z)

    def log_predictive_without(self, prior, s, z, shares):
        """See `Likelihood`; an entry takes r times its value from the shape, and r from the inverse scale."""
        if issparse(z):
            return super().log_predictive_without(prior, s, z, shares)
        out, x = self.log_predictive(prior, s, z), self.columns.filled(z)
        for i, k, r in pairs_with_shares(shares, self.n_statistics):
            counts, r, own = x[i].astype(float), r[:, np.newaxis], s[k]
            a = prior.a + np.maximum(self.columns.values(own) - r * counts, 0.0)
            b = prior.b + np.maximum(self.columns.counts(own) - r, 0.0)
            growth, rises = np.log(b + 1.0), log_rise(a, counts).sum(axis=1)
            if self.has_missing:
                a[np.isnan(z[i])] = 0.0
            rises -= np.einsum("md,md->m", counts, growth)
            out[i, k] = rises - np.einsum("md,md->m", a, growth - np.log(b))
        return out

    def change_without(self, prior, s, k, z, i, r):
        """For sparse rows: the change of a row of zeros, and what is different where there are counts.

        Columns whose rates have the same inverse scale are summed up together.
        """
        if not issparse(z):
            return super().change_without(prior, s, k, z, i, r)
        n, rest = s[:, -1], np.maximum(s[k, -1] - r, 0.0)
        first, group = alike_columns(prior.b)
        scale, change = prior.b[first], np.empty(len(r))
        shapes = np.array([np.bincount(group, prior.a + total) for total in s[:, :-1]])
        for m in blocks(len(r), len(scale)):
            growth = np.log1p(1.0 / (scale + n[k[m], np.newaxis]))
            growth -= np.log1p(1.0 / (scale + rest[m, np.newaxis]))
            change[m] = np.einsum("mg,mg->m", growth, shapes[k[m]])
        pair, column, x = nonzeros_of_rows(z, i)
        total, component, b = s[k[pair], column], k[pair], prior.b[column]
        before = prior.a[column] + total
        after = prior.a[column] + np.maximum(total - r[pair] * x, 0.0)
        terms = log_rise(after, x) - log_rise(before, x)
        terms -= x * (np.log1p(b + rest[pair]) - np.log1p(b + n[component]))
        terms += (before - after) * np.log1p(1.0 / (b + rest[pair]))
        return change + np.bincount(pair, terms, minlength=len(r))

    def log_probability(self, prior, s, z):
        return super().log_probability(prior, s, z) + self.log_base(z)

    def log_base(self, x):
        return -sum_log_factorials(self.columns.filled(x))

    def seeding_points(self, prior, s, z, *, whiten=True):
        """Twice the square roots, whose variance is about 1 at any rate; or Pearson's residuals.

        The divergence of rates, ``x log(x / y) - x + y``, is near ``2 (sqrt(x) - sqrt(y))^2``. In the
        residuals (``whiten`` false), columns that are rare in the component count for more.
        """
        z = self.imputed(prior, s, z)
        if whiten:
            least = np.sqrt(0.375)
            return points_of_counts(
                z, lambda x, column: 2.0 * (np.sqrt(x + 0.375) - least),
                np.full(self.n_features, 2.0 * least),
            )  # fmt: skip
        deviation = np.sqrt(self.means(prior, s[np.newaxis]))[0]
        return points_of_counts(z, lambda x, column: x / deviation[column], -deviation)

    def sample(self, attributes, labels, rng):
        return rng.poisson(attributes["means_"][labels]).astype(float)
