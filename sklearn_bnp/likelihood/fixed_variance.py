"""Gaussians whose variances are known or shared: components differ only in their means.

Design note
-----------
(a) If variances are given, rows are scaled to variance 1 in every column. The part of the density that is the
    same for all components then depends on the row only by ``|z|^2``. This is one statistic more than
    ``[z, 1]``, and with it the objective is that of the data, also for later rows of a stream.
(b) Variances that are not given maximise the objective, as the scales of other priors do: for fixed
    posteriors of the means, ``v_d = sum_k E[scatter_kd] / N``. This takes the squares of each column.
    Variances are part of the prior, as multiples of the data's variance. The spread of the means is learned
    in the same step, ``mean_k((m_kd - m_d)^2 + 1 / precision_kd)``, but is no less than its default. It is
    greater if a stream goes on far away from its first batch.
(c) Nothing keeps a shared variance from vanishing on values that occur repeatedly. So where variances are
    not given, rows are blurred by a ridge, as in `gaussian.py`, which is the least variance. Where they are
    given, the step of the data only tells rounded rows, which may be equal by chance, from copies.

Source: Hughes (2016), (2.22)-(2.24), (2.49).
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._kernels._responsibilities import Quadratic
from .base import Likelihood, ObservationModel
from .limits import as_numbers, points_within, variances_within
from .missing import entry_constants, log_base_of_observed, masked, with_counts
from .scaling import ScaledLikelihood, Scaling, find_scaling

# Share of a column's variance by which every row is blurred, like `GaussianObservation.reg_covar`.
_FLOOR = 1e-6
# A column that is observed in fewer rows (their mass) is taken to have no variance of its own.
_LEAST_SEEN = 1e-6


class NormalPrior(NamedTuple):
    """Prior in internal units: mean ``m`` (D,) and variance ``spread`` (D,) of means; variance of rows.

    The ``variance`` is (D,); if the user gave it, it is 1, of shape (1,).
    """

    m: np.ndarray
    spread: np.ndarray
    variance: np.ndarray


class FixedVarianceGaussianObservation(ObservationModel):
    """Gaussian observations whose components differ only in their means.

    Columns are independent given the component, and have the same variance in all components, such as
    that of an instrument's error.

    Parameters
    ----------
    variance : float or array-like of shape (n_features,), default=None
        Variance of each column within components, in squared units of the data. It determines the
        number of components, because rows that are more than a few standard deviations apart belong to
        different ones. If None, the variances maximise the objective (empirical Bayes).
    mean_prior : array-like of shape (n_features,), default=None
        Prior of the means, in the data's units; the mean of the data if None.
    mean_variance_prior : float or array-like of shape (n_features,), default=None
        Variance of the means about ``mean_prior``, in squared units of the data. If None, it begins with
        the variance of the data, or ``variance`` where this is greater, and maximises the objective at or
        above that (empirical Bayes).

    Notes
    -----
    Entries that are missing (NaN) are integrated out.

    References
    ----------
    Hughes (2016), Sec. 2.2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import DPMixtureVB, FixedVarianceGaussianObservation
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.5, size=(100, 2)) for c in (-4, 0, 4)])
    >>> known = FixedVarianceGaussianObservation(variance=0.25)
    >>> DPMixtureVB(observation=known, random_state=0).fit(X).n_components_
    3
    """

    _parameter_constraints = {
        "variance": [Real, "array-like", None],
        "mean_prior": ["array-like", None],
        "mean_variance_prior": [Real, "array-like", None],
    }

    def __init__(
        self,
        variance: ArrayLike | None = None,
        *,
        mean_prior: ArrayLike | None = None,
        mean_variance_prior: float | None = None,
    ) -> None:
        self.variance = variance
        self.mean_prior = mean_prior
        self.mean_variance_prior = mean_variance_prior

    allows_missing = needs_step = True

    @property
    def scales_rows(self) -> bool:
        """Whether rows are modelled in standard deviations of the data, and not in those that are given."""
        return self.variance is None

    def bind(self, moments: Any, *, streaming: bool = False) -> Likelihood:
        """The likelihood for data with these moments; see `ObservationModel.bind`."""
        D = len(moments.mean)
        if self.variance is None:
            scaling = find_scaling(
                moments, step=moments.step * moments.magnitude, floor=_FLOOR, streaming=streaming
            )
            variance, least = np.ones(scaling.n_features), 0.0
        else:
            given = _positive(self.variance, "variance", D)
            of_data = np.where(moments.variance > 0, moments.variance, 1.0) * moments.magnitude**2
            variances_within(given, of_data, "variance")
            mean = moments.mean * moments.magnitude
            step = moments.step * moments.magnitude
            # a constant column neither tells rows apart nor shows that they are copies
            cell = np.where(moments.variance > 0, step**2 / given, 1.0) / 12.0
            scaling = Scaling(mean, np.sqrt(given), None, 1.0, 0.0, np.zeros(D), cell=cell)
            variance, least = np.ones(1), 1.0
        prior = NormalPrior(
            self._prior_mean(scaling), self._spread(moments, scaling, least), variance
        )
        complete = FixedVarianceLikelihood(
            scaling, prior,
            adapts_variance=self.variance is None, adapts_spread=self.mean_variance_prior is None,
        )  # fmt: skip
        return complete if moments.observed is None else complete.with_missing(moments.observed)

    def _prior_mean(self, scaling):
        """Prior mean (D',) in internal units."""
        if self.mean_prior is None:
            return np.zeros(scaling.n_features)
        D = len(scaling.shift)
        m = as_numbers(self.mean_prior, D)
        if not np.isfinite(m).all() or np.shape(self.mean_prior) != (D,):
            raise ValueError(
                f"mean_prior={self.mean_prior!r} must be {D} finite numbers, one for each column."
            )
        return points_within(scaling, m, "mean_prior")

    def _spread(self, moments, scaling, least):
        """Prior variance of the means (D',) in internal units."""
        ratio = moments.magnitude / scaling.scale
        spread = np.maximum(moments.variance * ratio**2, least)
        if self.mean_variance_prior is not None:
            given = _positive(self.mean_variance_prior, "mean_variance_prior", len(ratio))
            spread = variances_within(given, scaling.scale**2, "mean_variance_prior")
        if scaling.basis is not None:  # a selection of columns
            spread = scaling.basis.T @ spread
        return np.where(spread > 0, spread, 1.0)


def _positive(value, name, size):
    """A positive number for each column (D,), in the data's units."""
    out = as_numbers(value, size)
    valid = np.all((out > 0) & np.isfinite(out))
    if not valid or np.shape(value) not in ((), (size,)):
        raise ValueError(
            f"{name}={value!r} must be a positive number, or {size} of them, one for each column."
        )
    return out


class FixedVarianceLikelihood(ScaledLikelihood):
    """``s(x) = [|z|^2, z, 1]``, or ``[z^2, z, 1]`` if variances are adapted; see the module's note."""

    # of models that were saved before the spread was learned
    adapts_spread = variance_is_given = False

    def __init__(self, scaling, prior, *, adapts_variance, adapts_spread=False):
        self.scaling, self.prior = scaling, prior
        self.adapts_prior = adapts_variance or adapts_spread
        self.variance_is_given, self.adapts_spread = not adapts_variance, adapts_spread
        self.may_be_far_out = not adapts_variance  # in units of the deviations that were given
        self.quadratic = Quadratic.DIAG if adapts_variance else Quadratic.SPHERICAL
        self.n_features = scaling.n_features
        self.ridge = scaling.ridge
        self.row_constant = scaling.row_constant

    @property
    def adapts_variance(self):
        """Whether empirical Bayes sets the variances of rows."""
        return self.adapts_prior and not self.variance_is_given

    @property
    def spread_of_means(self):
        return np.inf if self.adapts_spread else np.maximum(np.sqrt(self.prior.spread), 1.0)

    def with_missing(self, observed=None):
        """The family for rows with missing entries; see `Likelihood`.

        ``observed`` (D,) is the share of the data's rows that shows each column; 1 if None.
        """
        observed = np.ones(len(self.scaling.shift)) if observed is None else observed
        return IncompleteFixedVariance(
            self.scaling, self.prior, observed,
            adapts_variance=self.adapts_variance, adapts_spread=self.adapts_spread,
        )  # fmt: skip

    def _split(self, s):
        """Sums of squares, sums of rows and counts, from statistics (..., P)."""
        return s[..., : -1 - self.n_features], s[..., -1 - self.n_features : -1], s[..., -1:]

    def _posterior(self, prior, s):
        """Precisions and means of the posterior of the means given statistics (..., P); both (..., D)."""
        _, total, n = self._split(s)
        precision = 1.0 / prior.spread + n / prior.variance
        return precision, (prior.m / prior.spread + total / prior.variance) / precision

    def _constant(self, prior):
        """What units and variances add to the log density of each row: a float, in nats, the same for all."""
        log_det = np.sum(np.log(prior.variance))  # 0 for variances that are given
        return self.row_constant - 0.5 * log_det - 0.5 * np.sum(self.ridge / prior.variance)

    def _constants(self, prior, s):
        """`_constant` summed over the rows of components with statistics ``s`` (..., P)."""
        return s[..., -1] * self._constant(prior)

    def evidence(self, prior, s):
        squares, _, _ = self._split(s)
        precision, mean = self._posterior(prior, s)
        out = self._constants(prior, s) - 0.5 * np.sum(squares / prior.variance, axis=-1)
        out = out + 0.5 * np.sum(precision * mean**2 - prior.m**2 / prior.spread, axis=-1)
        return out - 0.5 * np.sum(np.log(precision * prior.spread), axis=-1)

    def coefficients(self, prior, s):
        """Half the inverse variance, negative, of squares; mean times it of z; the rest of 1."""
        precision, mean = self._posterior(prior, s)
        out = np.empty(s.shape)
        squares, linear, constant = self._split(out)
        squares[...] = -0.5 / prior.variance
        linear[...] = mean / prior.variance
        cost = np.sum((mean**2 + 1.0 / precision) / prior.variance, axis=1, keepdims=True)
        constant[...] = self._constant(prior) - 0.5 * cost
        return out

    def update_prior(self, prior, s, n_iter):
        """The objective's maximum for fixed posteriors: see (b) in the module's note."""
        squares, total, n = self._split(s)
        n_rows, is_seen = self._total_seen(n), n.sum(axis=0) > 0
        if not self.adapts_prior or not is_seen.any():
            return prior
        for _ in range(n_iter):
            precision, mean = self._posterior(prior, s)
            changes = {}
            if self.adapts_variance:
                scatter = squares - 2.0 * mean * total + n * (mean**2 + 1.0 / precision)
                variance = np.maximum(scatter.sum(axis=0) / n_rows, 0.0) + self.ridge
                changes["variance"] = np.where(is_seen, variance, prior.variance)
            if self.adapts_spread:
                spread = np.mean((mean - prior.m) ** 2 + 1.0 / precision, axis=0)
                changes["spread"] = np.maximum(spread, self.prior.spread)
            prior = prior._replace(**changes)
        return prior

    def _total_seen(self, n):
        """How many entries of each column are observed, given counts (K, 1) or (K, D)."""
        return n.sum()

    def prior_distance(self, old, new):
        # each mean has one term of its spread's logarithm, by half; of the variance's, each row has
        return max(
            np.mean(np.abs(np.log(new.variance / old.variance))),
            0.5 * np.mean(np.abs(np.log(new.spread / old.spread))),
        )

    def log_predictive(self, prior, s, z):
        """Normal density whose variance is the sum of those of rows and of the mean."""
        precision, mean = self._posterior(prior, s)
        variance = prior.variance + 1.0 / precision
        constant = self.scaling.log_density_constant - 0.5 * self.n_features * np.log(2 * np.pi)
        out = np.empty((len(z), len(s)))
        for k, (m, v) in enumerate(zip(mean, variance, strict=True)):
            out[:, k] = constant - 0.5 * np.log(v).sum() - 0.5 * (z - m) ** 2 @ (1.0 / v)
        return out

    def change_without(self, prior, s, k, z, i, r):
        """The mean moves away from the row, and its precision is less by that of r rows."""
        s, z = s[k], z[i].astype(float)
        _, _, n = self._split(s)
        precision, mean = self._posterior(prior, s)
        spread = 1.0 / prior.spread + np.maximum(n - r[:, np.newaxis], 0.0) / prior.variance
        square = (z - mean) ** 2
        change = _log_normal(square * (precision / spread) ** 2, prior.variance + 1.0 / spread)
        change -= _log_normal(square, prior.variance + 1.0 / precision)
        return np.where(np.isnan(z), 0.0, change).sum(axis=1)

    def seeding_points(self, prior, s, z, *, whiten=True):
        """Rows in standard deviations (2.39); or in those of the component's own columns, if adapted."""
        variance = prior.variance
        if not whiten and self.adapts_variance:
            squares, total, n = self._split(s)
            n = np.maximum(n, _LEAST_SEEN)  # perhaps no row of the component shows a column
            variance = np.maximum(squares / n - (total / n) ** 2, 0.0) + prior.variance
        return np.ascontiguousarray(z / np.sqrt(variance).astype(z.dtype))

    def attributes(self, prior, s):
        scaling = self.scaling
        variance = np.full(len(scaling.shift), scaling.floor)
        kept = slice(None) if scaling.basis is None else scaling.basis.any(axis=1)
        variance[kept] = prior.variance
        return {
            "means_": scaling.points_back(self._posterior(prior, s)[1]),
            "covariances_": np.tile(variance * scaling.scale**2, (len(s), 1)),
        }

    def sample(self, attributes, labels, rng):
        noise = rng.standard_normal((len(labels), len(self.scaling.shift)))
        return attributes["means_"][labels] + noise * np.sqrt(attributes["covariances_"])[labels]


def _log_normal(square, variance):
    """Log normal densities, but for a constant, at squared distances from the mean."""
    return -0.5 * (np.log(variance) + square / variance)


class IncompleteFixedVariance(FixedVarianceLikelihood):
    """The family for rows with missing entries: ``s(x)`` with a count for each column before the last.

    Parameters
    ----------
    scaling, prior, adapts_variance, adapts_spread
        As for `FixedVarianceLikelihood`.
    observed : ndarray, shape (D,)
        Share of the data's rows that shows each column.
    """

    has_missing = True

    def __init__(self, scaling, prior, observed, *, adapts_variance, adapts_spread=False):
        super().__init__(
            scaling, prior, adapts_variance=adapts_variance, adapts_spread=adapts_spread
        )
        self.n_squares = self.n_features if adapts_variance else 1
        self.quadratic = Quadratic.NONE
        self.constants = entry_constants(scaling, observed)

    @property
    def n_kernel_columns(self):
        return self.n_squares + 2 * self.n_features

    def kernel_rows(self, z):
        return masked(z, self._squares)

    def _squares(self, x):
        square = x * x
        return square if self.adapts_variance else square.sum(axis=1, keepdims=True)

    def from_complete(self, s):
        """Statistics of complete rows as those of rows with missing entries; see `Likelihood`."""
        return with_counts(s, self.n_features)

    def log_base(self, x):
        return log_base_of_observed(self.scaling, self.constants, x)

    def _split(self, s):
        """Sums of squares, sums of entries and counts of entries, from statistics (..., P)."""
        sums = self.n_squares + self.n_features
        return s[..., : self.n_squares], s[..., self.n_squares : sums], s[..., sums:-1]

    def _each(self, prior):
        """The part of an observed entry's log density (D,) that does not depend on its value."""
        log_norm = np.log(2 * np.pi * prior.variance) + self.ridge / prior.variance
        return self.constants.each - 0.5 * log_norm

    def _constants(self, prior, s):
        return self._split(s)[2] @ self._each(prior) + s[..., -1] * self.constants.row

    def coefficients(self, prior, s):
        """Half the inverse variance, negative, of squares; mean times it of z; the rest of counts."""
        precision, mean = self._posterior(prior, s)
        out = np.empty(s.shape)
        squares, linear, seen = self._split(out)
        squares[...] = -0.5 / prior.variance
        linear[...] = mean / prior.variance
        seen[...] = self._each(prior) - 0.5 * (mean**2 + 1.0 / precision) / prior.variance
        out[:, -1] = self.constants.row
        return out

    def _total_seen(self, n):
        return np.maximum(n.sum(axis=0), np.finfo(float).tiny)

    def log_predictive(self, prior, s, z):
        """Normal density of observed entries, whose variance is the sum of those of rows and of the mean."""
        precision, mean = self._posterior(prior, s)
        variance = prior.variance + 1.0 / precision
        each = self.constants.each - 0.5 * np.log(2 * np.pi * variance)
        missing = np.isnan(z)
        out = ~missing @ each.T
        for k, (m, v) in enumerate(zip(mean, variance, strict=True)):
            out[:, k] -= 0.5 * np.where(missing, 0.0, z - m) ** 2 @ (1.0 / v)
        return out

    def imputed(self, prior, s, z):
        """Rows with means for missing entries; see `Likelihood`."""
        return np.where(np.isnan(z), self._posterior(prior, s)[1].astype(z.dtype), z)

    def seeding_points(self, prior, s, z, *, whiten=True):
        """Points of rows whose missing entries are imputed."""
        return super().seeding_points(prior, s, self.imputed(prior, s, z), whiten=whiten)
