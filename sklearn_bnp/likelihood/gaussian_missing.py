"""Gaussians for rows with missing entries: the choice of the likelihood, and independent columns.

Columns that are independent given the component keep an exact evidence: counts, degrees of freedom and
precisions of means are those of the observed entries, column by column (`missing.py`). Full
covariances are in `full_gaussian_missing.py`.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from .._kernels._responsibilities import Quadratic
from .cells import CellRows
from .full_gaussian_missing import IncompleteFullGaussian
from .missing import (
    IncompleteLikelihood,
    check_axes,
    entry_constants,
    log_base_of_observed,
    masked,
    with_counts,
)

_LOG_2, _LOG_2PI = np.log(2.0), np.log(2.0 * np.pi)
# The Gaussian of all the data has at least this share of the average variance in any direction, because
# covariances of columns that are seldom observed together need not make a positive definite matrix.
_LEAST_SHARE = 1e-2


def incomplete_gaussian(complete, moments=None):
    """The likelihood for rows with missing entries, with the scaling and the prior of one for complete rows.

    Parameters
    ----------
    complete : GaussianLikelihood
        The likelihood for complete rows.
    moments : Moments or None
        Moments of the data with missing entries; None if all data so far were complete.
    """
    check_axes(complete.scaling)
    D = len(complete.scaling.shift)
    observed = np.ones(D) if moments is None else moments.observed
    if complete.quadratic != Quadratic.FULL:
        if complete.blur is not None:
            return IncompleteColumnsInCells(complete, observed)
        return IncompleteColumnsGaussian(complete, observed)
    covariance = np.eye(complete.n_features)
    if moments is not None:
        covariance = _whole_covariance(complete, moments)
    if complete.blur is not None:
        return IncompleteFullInCells(complete, observed, covariance)
    return IncompleteFullGaussian(complete, observed, covariance)


def _whole_covariance(complete, moments):
    """Positive definite covariance (D', D') of all the data in internal units."""
    scaling, second = complete.scaling, moments.covariance
    if not complete.linear:
        second = second + np.multiply.outer(moments.mean, moments.mean)
    ratio = moments.magnitude / scaling.scale
    second = second * np.multiply.outer(ratio, ratio)
    if scaling.kept is not None:
        second = second[np.ix_(scaling.kept, scaling.kept)]
    values, vectors = np.linalg.eigh(second)
    least = _LEAST_SHARE * max(values.mean(), 1.0)
    return (vectors * np.maximum(values, least)) @ vectors.T


class IncompleteColumnsGaussian(IncompleteLikelihood):
    """Diagonal and spherical covariances: ``s(x) = [x^2 or |x|^2, x, observed, 1]``.

    Parameters
    ----------
    complete : GaussianLikelihood
        The likelihood for complete rows.
    observed : ndarray, shape (D,)
        Share of the data's rows that shows each column.
    """

    def __init__(self, complete, observed):
        super().__init__(complete)
        self.scaling, self.shape, self.ridge = complete.scaling, complete.shape, complete.ridge
        self.n_added, self.has_mean = self.n_features, complete.linear
        self.pools = self.shape.rows_a_point > 1
        self.n_squares = 1 if self.pools else self.n_features
        self.constants = entry_constants(self.scaling, observed)

    @property
    def n_kernel_columns(self):
        return self.n_squares + (2 if self.has_mean else 1) * self.n_features

    def kernel_rows(self, z):
        rows = masked(z, lambda x: self._pool(x * x))
        if self.has_mean:
            return rows
        D = self.n_features
        return np.concatenate([rows[:, : self.n_squares], rows[:, -D:]], axis=1)

    def from_complete(self, s):
        """Statistics of complete rows as those of rows with missing entries; see `Likelihood`."""
        return with_counts(s, self.n_features)

    def _pool(self, columns):
        """Sums of (..., D) over the columns that share a precision."""
        return columns.sum(axis=-1, keepdims=True) if self.pools else columns

    def log_base(self, x):
        return log_base_of_observed(self.scaling, self.constants, x)

    def _split(self, s):
        """Sums of squares, sums of entries (None without means) and counts of entries, from (..., P)."""
        seen = s[..., -1 - self.n_features : -1]
        sums = s[..., self.n_squares : -1 - self.n_features] if self.has_mean else None
        return s[..., : self.n_squares], sums, seen

    def _posterior(self, prior, s):
        """Inverse scales b and degrees of freedom (..., G), means and their pseudo-counts (..., D)."""
        squares, sums, seen = self._split(s)
        b = prior.b + squares + self._pool(seen * self.ridge)
        nu = prior.nu + self._pool(seen)
        if not self.has_mean:
            return b, nu, None, None
        kappa = prior.kappa + seen
        mean = (prior.kappa * prior.m + sums) / kappa
        b = b + self._pool(prior.kappa * prior.m**2 - kappa * mean**2)
        # smaller only by rounding, where columns that share a precision have very different scales
        return np.maximum(b, prior.b), nu, mean, kappa

    def _log_norm(self, b, nu, kappa):
        out = np.sum(gammaln(0.5 * nu) + 0.5 * nu * (_LOG_2 - np.log(b)), axis=-1)
        return out if kappa is None else out - 0.5 * np.sum(np.log(kappa), axis=-1)

    def evidence(self, prior, s):
        s = np.asarray(s)
        b, nu, _, kappa = self._posterior(prior, s)
        b0, nu0, _, kappa0 = self._posterior(prior, np.zeros(s.shape[-1]))
        out = self._log_norm(b, nu, kappa) - self._log_norm(b0, nu0, kappa0)
        each = self.constants.each - 0.5 * _LOG_2PI
        return out + self._split(s)[2] @ each + s[..., -1] * self.constants.row

    def coefficients(self, prior, s):
        b, nu, mean, kappa = self._posterior(prior, s)
        precision = nu / b
        out = np.empty(s.shape)
        squares, linear, seen = self._split(out)
        squares[...] = -0.5 * precision
        log_precision = digamma(0.5 * nu) + _LOG_2 - np.log(b)
        seen[...] = self.constants.each + 0.5 * (log_precision - _LOG_2PI - precision * self.ridge)
        if self.has_mean:
            linear[...] = precision * mean
            seen[...] -= 0.5 * (1.0 / kappa + precision * mean**2)
        out[:, -1] = self.constants.row
        return out

    def _precision(self, prior, s):
        """``E[Lambda]`` in the form of the shape, and posterior means (K, D) or None."""
        b, nu, mean, _ = self._posterior(prior, s)
        precision = nu / b
        return precision[:, 0] if self.pools else precision, mean

    def update_prior(self, prior, s, n_iter):
        if not self.adapts_prior or len(s) == 0:
            return prior
        for _ in range(n_iter):
            kappa = self._posterior(prior, s)[3]
            prior = self.complete.next_prior(prior, *self._precision(prior, s), kappa)
        return prior

    def imputed(self, prior, s, z):
        """Rows with means for missing entries; see `Likelihood`."""
        mean = self._posterior(prior, s)[2] if self.has_mean else np.zeros(self.n_features)
        return np.where(np.isnan(z), mean.astype(z.dtype), z)

    def seeding_points(self, prior, s, z, *, whiten=True):
        """Points of rows whose missing entries are imputed."""
        precision, mean = self._precision(prior, s[np.newaxis])
        z = self.imputed(prior, s, z)
        return self.complete.points_under(
            z, precision[0], None if mean is None else mean[0], whiten
        )

    def log_predictive(self, prior, s, z):
        """Student densities of observed entries, for each column or for all that share a precision."""
        b, nu, mean, kappa = self._posterior(prior, s)
        missing = np.isnan(z)
        seen = 1.0 - missing
        n = self._pool(seen)
        out = np.empty((len(z), len(s)))
        for k in range(len(s)):
            shrink = kappa[k] / (kappa[k] + 1.0) if self.has_mean else np.ones(self.n_features)
            square = np.where(missing, 0.0, z - mean[k] if self.has_mean else z) ** 2
            ends = gammaln(0.5 * (nu[k] + n)) - gammaln(0.5 * nu[k])
            ends -= 0.5 * n * np.log(np.pi * b[k])
            ends -= 0.5 * (nu[k] + n) * np.log1p(self._pool(shrink * square) / b[k])
            out[:, k] = ends.sum(axis=1) + seen @ (self.constants.each + 0.5 * np.log(shrink))
        return out

    def attributes(self, prior, s):
        return self.complete.attributes_of(*self._precision(prior, s))


class IncompleteColumnsInCells(CellRows, IncompleteColumnsGaussian):
    """`IncompleteColumnsGaussian` for rows of which some columns have cells; see `cells.py`.

    ``complete`` is a `GaussianInCells`.
    """

    def __init__(self, complete, observed):
        super().__init__(complete.without_cells(), observed)
        self.blur = complete.blur


class IncompleteFullInCells(CellRows, IncompleteFullGaussian):
    """`IncompleteFullGaussian` for rows of which some columns have cells; see `cells.py`.

    ``complete`` is a `GaussianInCells`.
    """

    def __init__(self, complete, observed, covariance):
        super().__init__(complete.without_cells(), observed, covariance)
        self.blur = complete.blur

    def _log_table(self, coef, z, variances):
        table = IncompleteFullGaussian.log_table(self, coef, z)
        table += self.blur.log_weights(coef, variances).astype(table.dtype, copy=False)
        return table
