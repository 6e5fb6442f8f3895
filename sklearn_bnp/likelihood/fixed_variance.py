"""Gaussians whose variances are known or shared: components differ in their means alone.

Design note
-----------
(a) Given the variances, rows in units of their deviations have variance 1 in every column, and the part
    of the density that is the same for all components needs ``|z|^2`` alone of the row: one column
    more than ``[z, 1]``, with which the objective is that of the data to the last row of a stream.
(b) Variances that are not given maximise the objective as the scale of other priors does: for fixed
    posteriors of the means ``v_d = sum_k E[scatter_kd] / N``. That takes the squares of each column.
    They are values of the prior, in units of the data's variance.
(c) Nothing keeps a shared variance from vanishing on values that return, so rows are blurred by a
    ridge where variances are not given, as in `gaussian.py`; it is their least value.

Source: Hughes (2016), (2.22)-(2.24), (2.49).
"""

from __future__ import annotations

from numbers import Real
from typing import NamedTuple

import numpy as np

from .._kernels._responsibilities import Quadratic
from .base import Likelihood, ObservationModel
from .limits import points_within, variances_within
from .missing import entry_constants, log_base_of_seen, masked, with_counts
from .scaling import Scaling, find_scaling

# Share of a column's variance by which every row is blurred, as `GaussianObservation.reg_covar`.
_FLOOR = 1e-6
# Mass of rows; a column that fewer show is taken to have no variance of its own.
_LEAST_SEEN = 1e-6


class NormalPrior(NamedTuple):
    """In internal units: means' prior mean ``m`` and variance ``spread``, (D,); rows' ``variance``.

    ``variance`` is (D,), or (1,) if it was given, where it is 1.
    """

    m: np.ndarray
    spread: np.ndarray
    variance: np.ndarray


class FixedVarianceGaussianObservation(ObservationModel):
    """Gaussian observations of which components differ in their means alone.

    Columns are independent given the component, and have the same variance in all components: that
    of an instrument's error, for instance.

    Parameters
    ----------
    variance : float or array-like of shape (n_features,), default=None
        Variance of each column within components, in squared units of the data. It sets the number
        of components: what is further apart than a few deviations is told apart. If None the
        variances maximise the objective (empirical Bayes).
    mean_prior : array-like of shape (n_features,), default=None
        Prior of the means, in the data's units; the mean of the data if None.
    mean_variance_prior : float or array-like of shape (n_features,), default=None
        Variance of the means about ``mean_prior``, in squared units of the data. If None it is that of
        the data, or ``variance`` where this is greater.

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

    def __init__(self, variance=None, *, mean_prior=None, mean_variance_prior=None):
        self.variance = variance
        self.mean_prior = mean_prior
        self.mean_variance_prior = mean_variance_prior

    takes_missing = True

    @property
    def needs_step(self):
        """Whether the steps are wanted to which columns were recorded."""
        return self.variance is None

    def bind(self, moments, *, streaming=False):
        """The likelihood for data with these moments; see `ObservationModel.bind`."""
        D = len(moments.mean)
        if self.variance is None:
            scaling = find_scaling(
                moments,
                step=moments.step * moments.magnitude,
                zero_mean=False,
                common_scale=False,
                rotate=False,
                floor=_FLOOR,
                streaming=streaming,
            )
            variance, least = np.ones(scaling.n_features), 0.0
        else:
            given = _positive(self.variance, "variance", D)
            of_data = np.where(moments.variance > 0, moments.variance, 1.0) * moments.magnitude**2
            variances_within(given, of_data, "variance")
            scaling = Scaling(
                moments.mean * moments.magnitude, np.sqrt(given), None, 1.0, 0.0, np.zeros(D)
            )
            variance, least = np.ones(1), 1.0
        prior = NormalPrior(
            self._prior_mean(scaling), self._spread(moments, scaling, least), variance
        )
        complete = FixedVarianceLikelihood(scaling, prior, adapts_prior=self.variance is None)
        return complete if moments.observed is None else complete.with_missing(moments.observed)

    def _prior_mean(self, scaling):
        """Prior mean (D',) in internal units."""
        if self.mean_prior is None:
            return np.zeros(scaling.n_features)
        m, D = _as_numbers(self.mean_prior), len(scaling.shift)
        if m.shape != (D,) or not np.isfinite(m).all():
            raise ValueError(
                f"mean_prior={self.mean_prior!r} must be {D} finite numbers, one a column."
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


def _as_numbers(value):
    """An array of floats, of nan where that cannot be made."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return np.array(np.nan)


def _positive(value, name, size):
    """A positive number for each column (D,), in the data's units."""
    out = _as_numbers(value)
    if out.shape not in ((), (size,)) or not np.all((out > 0) & np.isfinite(out)):
        raise ValueError(
            f"{name}={value!r} must be a positive number, or {size} of them, one a column."
        )
    return np.broadcast_to(out, size).copy()


class FixedVarianceLikelihood(Likelihood):
    """``s(x) = [|z|^2, z, 1]``, or ``[z^2, z, 1]`` if variances are adapted; see the module's note."""

    def __init__(self, scaling, prior, *, adapts_prior):
        self.scaling, self.prior, self.adapts_prior = scaling, prior, adapts_prior
        self.may_be_far_out = not adapts_prior  # but of the variances that were given
        self.quadratic = Quadratic.DIAG if adapts_prior else Quadratic.SPHERICAL
        self.n_features = scaling.n_features
        self.ridge = scaling.ridge
        self.row_constant = (
            scaling.log_density_constant
            + scaling.mean_log_null_density
            - 0.5 * self.n_features * np.log(2 * np.pi)
        )

    def with_missing(self, observed=None):
        """The family for rows in which entries are missing; see `Likelihood.with_holes`.

        ``observed`` (D,) is the share of the data's rows that shows each column; all if None.
        """
        observed = np.ones(len(self.scaling.shift)) if observed is None else observed
        return IncompleteFixedVariance(
            self.scaling, self.prior, observed, adapts_prior=self.adapts_prior
        )

    def prepare(self, x):
        return self.scaling.apply(x)

    def log_base(self, x):
        return self.scaling.log_null_density(x)

    def _split(self, s):
        """Sums of squares, of rows and of ones, of statistics (..., P)."""
        return s[..., : -1 - self.n_features], s[..., -1 - self.n_features : -1], s[..., -1:]

    def _posterior(self, prior, s):
        """Precisions and means of the means given statistics (..., P); both (..., D)."""
        _, total, n = self._split(s)
        precision = 1.0 / prior.spread + n / prior.variance
        return precision, (prior.m / prior.spread + total / prior.variance) / precision

    def _constant(self, prior):
        """What each row has as its log density whatever its values."""
        log_det = np.sum(np.log(prior.variance))  # 0 for variances that are given
        return self.row_constant - 0.5 * log_det - 0.5 * np.sum(self.ridge / prior.variance)

    def _constants(self, prior, s):
        """The same of all rows of components with statistics ``s`` (..., P)."""
        return s[..., -1] * self._constant(prior)

    def evidence(self, prior, s):
        squares, _, _ = self._split(s)
        precision, mean = self._posterior(prior, s)
        out = self._constants(prior, s) - 0.5 * np.sum(squares / prior.variance, axis=-1)
        out = out + 0.5 * np.sum(precision * mean**2 - prior.m**2 / prior.spread, axis=-1)
        return out - 0.5 * np.sum(np.log(precision * prior.spread), axis=-1)

    def coefficients(self, prior, s):
        """Minus half an inverse variance on squares, mean times it on z, the rest on 1."""
        precision, mean = self._posterior(prior, s)
        out = np.empty(s.shape)
        squares, linear, constant = self._split(out)
        squares[...] = -0.5 / prior.variance
        linear[...] = mean / prior.variance
        cost = np.sum((mean**2 + 1.0 / precision) / prior.variance, axis=1, keepdims=True)
        constant[...] = self._constant(prior) - 0.5 * cost
        return out

    def update_prior(self, prior, s, n_iter):
        """``v_d <- sum_k E[scatter_kd] / N``: the objective's maximum for fixed posteriors."""
        squares, total, n = self._split(s)
        n_rows = self._total_seen(n)
        if not self.adapts_prior or not np.any(n_rows > 0):
            return prior
        for _ in range(n_iter):
            precision, mean = self._posterior(prior, s)
            scatter = squares - 2.0 * mean * total + n * (mean**2 + 1.0 / precision)
            variance = np.maximum(scatter.sum(axis=0) / n_rows, 0.0) + self.ridge
            prior = prior._replace(variance=variance)
        return prior

    def _total_seen(self, n):
        """How many entries the variance of each column is of, given counts (K, 1) or (K, D)."""
        return n.sum()

    def prior_distance(self, old, new):
        return np.mean(np.abs(np.log(new.variance / old.variance)))

    def log_predictive(self, prior, s, z):
        """Normal density whose variance is that of rows and of the mean."""
        precision, mean = self._posterior(prior, s)
        variance = prior.variance + 1.0 / precision
        constant = self.scaling.log_density_constant - 0.5 * self.n_features * np.log(2 * np.pi)
        out = np.empty((len(z), len(s)))
        for k, (m, v) in enumerate(zip(mean, variance, strict=True)):
            out[:, k] = constant - 0.5 * np.log(v).sum() - 0.5 * (z - m) ** 2 @ (1.0 / v)
        return out

    def seeding_points(self, prior, s, z, *, whiten=True):
        """Rows in deviations (2.39); or in those of the target's own columns, where these are known."""
        variance = prior.variance
        if not whiten and self.adapts_prior:
            squares, total, n = self._split(s)
            n = np.maximum(n, _LEAST_SEEN)  # no row of the target may show a column
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


class IncompleteFixedVariance(FixedVarianceLikelihood):
    """``s(x)`` with a count for each column before the last; see `observation.holes`.

    Parameters
    ----------
    scaling, prior, adapts_prior
        As of the family for complete rows.
    observed : ndarray, shape (D,)
        Share of the data's rows that shows each column.
    """

    has_missing = True

    def __init__(self, scaling, prior, observed, *, adapts_prior):
        super().__init__(scaling, prior, adapts_prior=adapts_prior)
        self.n_squares = self.n_features if adapts_prior else 1
        self.quadratic = Quadratic.NONE
        self.constants = entry_constants(scaling, observed)

    @property
    def n_kernel_columns(self):
        return self.n_squares + 2 * self.n_features

    def kernel_rows(self, z):
        return masked(z, self._squares)

    def _squares(self, x):
        square = x * x
        return square if self.adapts_prior else square.sum(axis=1, keepdims=True)

    def from_complete(self, s):
        """Statistics of complete rows as those of rows with holes."""
        return with_counts(s, self.n_features)

    def log_base(self, x):
        return log_base_of_seen(self.scaling, self.constants, x)

    def _split(self, s):
        """Sums of squares, of entries and of how many are seen, of statistics (..., P)."""
        sums = self.n_squares + self.n_features
        return s[..., : self.n_squares], s[..., self.n_squares : sums], s[..., sums:-1]

    def _each(self, prior):
        """What each entry (D,) that is seen has as its log density whatever its value."""
        log_norm = np.log(2 * np.pi * prior.variance) + self.ridge / prior.variance
        return self.constants.each - 0.5 * log_norm

    def _constants(self, prior, s):
        return self._split(s)[2] @ self._each(prior) + s[..., -1] * self.constants.row

    def coefficients(self, prior, s):
        """Minus half an inverse variance on squares, mean times it on z, the rest on what is seen."""
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
        """Normal density of what is seen, whose variance is that of rows and of the mean."""
        precision, mean = self._posterior(prior, s)
        variance = prior.variance + 1.0 / precision
        each = self.constants.each - 0.5 * np.log(2 * np.pi * variance)
        hole = np.isnan(z)
        out = ~hole @ each.T
        for k, (m, v) in enumerate(zip(mean, variance, strict=True)):
            out[:, k] -= 0.5 * np.where(hole, 0.0, z - m) ** 2 @ (1.0 / v)
        return out

    def imputed(self, prior, s, z):
        return np.where(np.isnan(z), self._posterior(prior, s)[1].astype(z.dtype), z)

    def seeding_points(self, prior, s, z, *, whiten=True):
        """As of complete rows, with what is missing as expected."""
        return super().seeding_points(prior, s, self.imputed(prior, s, z), whiten=whiten)
