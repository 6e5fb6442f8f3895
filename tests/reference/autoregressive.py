"""Bayesian multivariate regression, from rows and weights: the twin of the autoregressive family.

``y = M x + e`` with ``Lambda ~ W(nu, inv(b))`` for the precision of e and a matrix-normal M of mean
``coef``, row covariance ``inv(Lambda)`` and column covariance ``inv(gram)``. The posterior comes from the
normal equations and from residuals, never from the scatter of x and y together.

Source: P. E. Rossi, G. M. Allenby and R. McCulloch, Bayesian Statistics and Marketing (2005), Sec. 2.8.5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.special import digamma, gammaln, multigammaln

LOG_2PI = np.log(2.0 * np.pi)


class MatrixNormalWishartPosterior(NamedTuple):
    """Coefficients ``coef`` (D, X), their precision ``gram`` (X, X), and the Wishart's nu and b."""

    coef: np.ndarray
    gram: np.ndarray
    nu: float
    b: np.ndarray


class MatrixNormalWishart:
    """Rows are x, then y; the last column of ``coef`` is the intercept's.

    ``gram`` (X, X) is the precision of the prior's coefficients, ``ridge`` (D,) the variance by which
    each y is blurred.
    """

    def __init__(self, coef, gram, nu, b, ridge, log_volume=0.0):
        self.prior = MatrixNormalWishartPosterior(coef, gram, nu, b)
        self.D = len(b)
        self.ridge = np.broadcast_to(ridge, self.D)
        self.log_volume = log_volume

    def split(self, z):
        """Regressors with an intercept, and responses."""
        return np.column_stack([z[:, : -self.D], np.ones(len(z))]), z[:, -self.D :]

    def posterior(self, z, weight):
        """Normal equations, and the squares of what is left."""
        m0, v0, nu, b = self.prior
        x, y = self.split(z)
        gram = v0 + (x.T * weight) @ x
        coef = linalg.solve(gram, v0 @ m0.T + (x.T * weight) @ y, assume_a="pos").T
        residual, shift = y - x @ coef.T, coef - m0
        b = b + (residual.T * weight) @ residual + shift @ v0 @ shift.T
        return MatrixNormalWishartPosterior(
            coef, gram, nu + weight.sum(), b + weight.sum() * np.diag(self.ridge)
        )

    def _log_z(self, q):
        """Log normaliser of the matrix-normal and the Wishart density."""
        D = self.D
        out = 0.5 * q.nu * D * np.log(2.0) + multigammaln(0.5 * q.nu, D)
        return out - 0.5 * q.nu * np.linalg.slogdet(q.b)[1] - 0.5 * D * np.linalg.slogdet(q.gram)[1]

    def evidence(self, z, weight):
        """Log marginal likelihood of the responses."""
        out = self._log_z(self.posterior(z, weight)) - self._log_z(self.prior)
        return out + weight.sum() * (self.log_volume - 0.5 * self.D * LOG_2PI)

    def expected_precision(self, q):
        return q.nu * np.linalg.inv(q.b)

    def expected_log_det(self, q):
        terms = [digamma(0.5 * (q.nu - d)) for d in range(self.D)]
        return sum(terms) + self.D * np.log(2.0) - np.linalg.slogdet(q.b)[1]

    def expected_log_lik(self, q, z):
        """``E_q[log N(y | M x, inv(Lambda))] - tr(E[Lambda] R) / 2`` of each row."""
        precision, out = self.expected_precision(q), np.empty(len(z))
        constant = self.expected_log_det(q) - self.D * LOG_2PI - np.diagonal(precision) @ self.ridge
        for i, (x, y) in enumerate(zip(*self.split(z), strict=True)):
            residual = y - q.coef @ x
            square = residual @ precision @ residual + self.D * x @ linalg.solve(q.gram, x)
            out[i] = 0.5 * (constant - square)
        return out + self.log_volume

    def divergence(self, q):
        """KL(q || prior): the Wishart part, and the matrix-normal part averaged over Lambda."""
        p, precision, X = self.prior, self.expected_precision(q), len(q.gram)
        wishart = [posterior._replace(gram=np.eye(X)) for posterior in (p, q)]
        out = self._log_z(wishart[0]) - self._log_z(wishart[1])
        out += 0.5 * (q.nu - p.nu) * self.expected_log_det(q)
        out -= 0.5 * np.trace((q.b - p.b) @ precision)
        ratio, shift = np.linalg.solve(q.gram, p.gram), q.coef - p.coef
        out += 0.5 * self.D * (np.trace(ratio) - X - np.linalg.slogdet(ratio)[1])
        return out + 0.5 * np.trace(shift.T @ precision @ shift @ p.gram)

    def student(self, q, x):
        """Degrees of freedom, location and shape of the density of y given one x."""
        dof = q.nu - self.D + 1.0
        return dof, q.coef @ x, q.b * (1.0 + x @ linalg.solve(q.gram, x)) / dof

    def log_predictive(self, q, z):
        """Student density of each y given its x, without ridge."""
        out = np.empty(len(z))
        for i, (x, y) in enumerate(zip(*self.split(z), strict=True)):
            dof, location, shape = self.student(q, x)
            square = (y - location) @ linalg.solve(shape, y - location)
            out[i] = gammaln(0.5 * (dof + self.D)) - gammaln(0.5 * dof)
            out[i] -= 0.5 * (dof + self.D) * np.log1p(square / dof)
            out[i] -= 0.5 * (self.D * np.log(dof * np.pi) + np.linalg.slogdet(shape)[1])
        return out + self.log_volume


class CorrelatedNormalWishart(MatrixNormalWishart):
    """Gaussians whose rows are correlated with the row before, as regressions on a constant.

    Rows are ``x_t``, then ``x_{t-1}``. Given the latter, ``y = (x_t - phi x_{t-1}) / sqrt(1 - phi^2)`` has
    the component's covariance, and its mean is a share of the component's. ``ridge`` is that of x_t.
    """

    def __init__(self, m, kappa, nu, b, phi, ridge, log_volume=0.0):
        D, rest = len(b), 1.0 - phi**2
        log_volume -= 0.5 * D * np.log(rest)
        super().__init__(m[:, np.newaxis], np.array([[kappa]]), nu, b, ridge / rest, log_volume)
        self.phi = phi

    def split(self, z):
        """The share of the mean, and y."""
        x, before, rest = z[:, : self.D], z[:, self.D :], 1.0 - self.phi**2
        share = (1.0 - self.phi) / np.sqrt(rest)
        return np.full((len(z), 1), share), (x - self.phi * before) / np.sqrt(rest)
