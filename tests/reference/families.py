"""Conjugate families, from rows and weights: evidence, expectations, divergences, predictions.

A twin knows its prior, the ridge (variance by which each row is blurred, in the rows' units), the variances
(n, D) by which rows are blurred beside it, as a function of the rows, and
``log_volume``, the log of the volume element between the rows' units and the data's. Its posterior
is computed from the rows themselves, centred on their own mean, never from running statistics.

Sources: K. P. Murphy, Conjugate Bayesian analysis of the Gaussian distribution (2007), Sec. 2 (known
variance), 3 (Normal-Gamma) and 8 (Normal-Wishart); C. M. Bishop, Pattern Recognition and Machine Learning
(2006), Sec. 10.2 and App. B.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.special import betaln, digamma, gammaln, multigammaln

LOG_2PI = np.log(2.0 * np.pi)


def no_blur(z):
    """Variances of rows that are blurred by the ridge alone."""
    return np.zeros(z.shape)


def weighted_moments(z, weight):
    """Mass, mean and centred scatter matrix of rows."""
    n = weight.sum()
    mean = weight @ z / n if n > 0 else np.zeros(z.shape[1])
    centred = z - mean
    return n, mean, (weight[:, np.newaxis] * centred).T @ centred


class NormalWishartPosterior(NamedTuple):
    """``Lambda ~ W(nu, inv(b))`` and ``mu ~ N(m, inv(kappa Lambda))``; m is None for mean zero."""

    m: np.ndarray | None
    kappa: float
    nu: float
    b: np.ndarray


class NormalWishart:
    """Full covariances: Normal-Wishart prior, or Wishart prior if ``m`` is None."""

    def __init__(self, m, kappa, nu, b, ridge, log_volume=0.0, blur=no_blur):
        self.prior, self.blur = (
            NormalWishartPosterior(m, kappa, nu, np.asarray(b, dtype=float)),
            blur,
        )
        self.D = len(b)
        self.ridge = np.broadcast_to(ridge, self.D)
        self.log_volume = log_volume

    def posterior(self, z, weight):
        """(10.59)-(10.63) of Bishop, with the ridge once a row."""
        m0, kappa, nu, b = self.prior
        n, mean, scatter = weighted_moments(z, weight)
        b = b + n * np.diag(self.ridge) + np.diag(weight @ self.blur(z))
        if m0 is None:
            return NormalWishartPosterior(None, kappa, nu + n, b + (z.T * weight) @ z)
        offset = mean - m0
        b = b + scatter + kappa * n / (kappa + n) * np.outer(offset, offset)
        return NormalWishartPosterior((kappa * m0 + n * mean) / (kappa + n), kappa + n, nu + n, b)

    def _log_det(self, b):
        return 2.0 * np.log(np.diagonal(linalg.cholesky(b, lower=True))).sum()

    def _log_z(self, params):
        """Log normaliser of the Wishart density in Lambda."""
        return (
            0.5 * params.nu * self.D * np.log(2.0)
            + multigammaln(0.5 * params.nu, self.D)
            - 0.5 * params.nu * self._log_det(params.b)
        )

    def evidence(self, z, weight):
        """Log marginal likelihood of the rows."""
        q, n = self.posterior(z, weight), weight.sum()
        out = self._log_z(q) - self._log_z(self.prior)
        out += n * (self.log_volume - 0.5 * self.D * LOG_2PI)
        if q.m is not None:
            out += 0.5 * self.D * np.log(self.prior.kappa / q.kappa)
        return out

    def expected_precision(self, q):
        return q.nu * linalg.cho_solve(linalg.cho_factor(q.b, lower=True), np.eye(self.D))

    def expected_log_det(self, q):
        terms = [digamma(0.5 * (q.nu - d)) for d in range(self.D)]
        return sum(terms) + self.D * np.log(2.0) - self._log_det(q.b)

    def expected_log_lik(self, q, z):
        """``E_q[log N(x | mu, inv(Lambda))] - tr(E[Lambda] R) / 2`` of each row.

        (10.64) and (10.65) of Bishop.
        """
        root = linalg.cholesky(q.b, lower=True)
        out = np.empty(len(z))
        for i, row in enumerate(z):
            y = linalg.solve_triangular(root, row if q.m is None else row - q.m, lower=True)
            out[i] = q.nu * (y @ y)
        if q.m is not None:
            out += self.D / q.kappa
        out += (self.ridge + self.blur(z)) @ np.diagonal(self.expected_precision(q))
        return self.log_volume + 0.5 * (self.expected_log_det(q) - self.D * LOG_2PI - out)

    def divergence(self, q):
        """KL(q || prior): the Wishart part, and the Normal part averaged over Lambda."""
        p = self.prior
        precision = self.expected_precision(q)
        out = self._log_z(p) - self._log_z(q) + 0.5 * (q.nu - p.nu) * self.expected_log_det(q)
        out -= 0.5 * np.trace((q.b - p.b) @ precision)
        if q.m is not None:
            ratio, offset = p.kappa / q.kappa, q.m - p.m
            out += 0.5 * (self.D * (ratio - 1.0 - np.log(ratio)))
            out += 0.5 * p.kappa * offset @ precision @ offset
        return out

    def student(self, q):
        """Degrees of freedom, location and shape of the predictive Student density."""
        dof = q.nu - self.D + 1.0
        if q.m is None:
            return dof, np.zeros(self.D), q.b / dof
        return dof, q.m, q.b * (q.kappa + 1.0) / (q.kappa * dof)

    def log_predictive(self, q, z):
        """Student density of rows, without ridge."""
        dof, location, shape = self.student(q)
        root = linalg.cholesky(shape, lower=True)
        out = np.empty(len(z))
        for i, row in enumerate(z):
            y = linalg.solve_triangular(root, row - location, lower=True)
            out[i] = -0.5 * (dof + self.D) * np.log1p(y @ y / dof)
        constant = gammaln(0.5 * (dof + self.D)) - gammaln(0.5 * dof)
        constant -= 0.5 * self.D * np.log(dof * np.pi) + np.log(np.diagonal(root)).sum()
        return out + constant + self.log_volume


class NormalGammaPosterior(NamedTuple):
    """One precision ``~ Gamma(shape, rate)`` for each group of columns; means as above."""

    m: np.ndarray | None
    kappa: float
    shape: float
    rate: np.ndarray


class NormalGamma:
    """Columns in groups of ``size`` that share a Gamma precision of shape nu/2 and rate b/2.

    Groups of one column are diagonal covariances, one group of all columns spherical ones.
    """

    def __init__(self, m, kappa, nu, b, ridge, n_features, size, log_volume=0.0, blur=no_blur):
        n_groups = n_features // size
        rate = 0.5 * np.broadcast_to(np.asarray(b, dtype=float), n_groups)
        self.prior = NormalGammaPosterior(m, kappa, 0.5 * nu, rate)
        self.D, self.size, self.blur = n_features, size, blur
        self.ridge = np.broadcast_to(ridge, n_features)
        self.log_volume = log_volume

    def _group(self, columns):
        """Sums over the columns of each group, on the last axis."""
        return columns.reshape(*columns.shape[:-1], self.D // self.size, self.size).sum(axis=-1)

    def posterior(self, z, weight):
        """Conjugate update, with the ridge once a row."""
        m0, kappa, shape, rate = self.prior
        n, mean, scatter = weighted_moments(z, weight)
        shape = shape + 0.5 * n * self.size
        rate = rate + 0.5 * self._group(n * self.ridge + weight @ self.blur(z))
        if m0 is None:
            return NormalGammaPosterior(None, kappa, shape, rate + 0.5 * self._group(weight @ z**2))
        spread = np.diagonal(scatter) + kappa * n / (kappa + n) * (mean - m0) ** 2
        mean = (kappa * m0 + n * mean) / (kappa + n)
        return NormalGammaPosterior(mean, kappa + n, shape, rate + 0.5 * self._group(spread))

    @staticmethod
    def _log_z(params):
        return np.sum(gammaln(params.shape) - params.shape * np.log(params.rate))

    def evidence(self, z, weight):
        """Log marginal likelihood of the rows, group by group."""
        q, n = self.posterior(z, weight), weight.sum()
        out = self._log_z(q) - self._log_z(self.prior)
        out += n * (self.log_volume - 0.5 * self.D * LOG_2PI)
        if q.m is not None:
            out += 0.5 * self.D * np.log(self.prior.kappa / q.kappa)
        return out

    def expected_log_lik(self, q, z):
        """``E_q[log N(x | mu, 1 / lambda)] - E[lambda] ridge / 2`` of each row."""
        precision = q.shape / q.rate
        log_precision = digamma(q.shape) - np.log(q.rate)
        constant = 0.5 * self.size * log_precision.sum() - 0.5 * self.D * LOG_2PI
        constant = constant - 0.5 * self._group(self.ridge + self.blur(z)) @ precision
        if q.m is not None:
            constant = constant - 0.5 * self.D / q.kappa
        offset = z if q.m is None else z - q.m
        return constant - 0.5 * self._group(offset**2) @ precision + self.log_volume

    def divergence(self, q):
        """KL(q || prior) of the Gamma parts, and of the Normal parts averaged over them."""
        p = self.prior
        precision, log_precision = q.shape / q.rate, digamma(q.shape) - np.log(q.rate)
        out = self._log_z(p) - self._log_z(q)
        out += np.sum((q.shape - p.shape) * log_precision - (q.rate - p.rate) * precision)
        if q.m is not None:
            ratio = p.kappa / q.kappa
            out += 0.5 * self.D * (ratio - 1.0 - np.log(ratio))
            out += 0.5 * p.kappa * precision @ self._group((q.m - p.m) ** 2)
        return out

    def student(self, q):
        """Degrees of freedom, location (D,) and squared scale (groups,) of each group's density."""
        factor = 1.0 if q.m is None else (q.kappa + 1.0) / q.kappa
        location = np.zeros(self.D) if q.m is None else q.m
        return 2.0 * q.shape, location, factor * q.rate / q.shape

    def log_predictive(self, q, z):
        """Density of rows without ridge: a Student density of dimension ``size`` for each group."""
        dof, location, square = self.student(q)
        distance = self._group((z - location) ** 2) / square
        each = gammaln(0.5 * (dof + self.size)) - gammaln(0.5 * dof)
        each = each - 0.5 * self.size * np.log(dof * np.pi * square)
        each = each - 0.5 * (dof + self.size) * np.log1p(distance / dof)
        return each.sum(axis=1) + self.log_volume


class BetaPosterior(NamedTuple):
    """Each column's probability ``~ Beta(a, b)``."""

    a: np.ndarray
    b: np.ndarray


class BetaBernoulli:
    """Binary columns; Hughes (2016), (2.43)-(2.47) for two symbols."""

    def __init__(self, a, b):
        self.prior = BetaPosterior(np.asarray(a, dtype=float), np.asarray(b, dtype=float))

    def posterior(self, z, weight):
        return BetaPosterior(self.prior.a + weight @ z, self.prior.b + weight @ (1.0 - z))

    def evidence(self, z, weight):
        """Log marginal likelihood of the rows: a ratio of Beta functions for each column."""
        q = self.posterior(z, weight)
        columns = zip(q.a, q.b, self.prior.a, self.prior.b, strict=True)
        return sum(betaln(a, b) - betaln(a0, b0) for a, b, a0, b0 in columns)

    def expected_log_lik(self, q, z):
        on = digamma(q.a) - digamma(q.a + q.b)
        off = digamma(q.b) - digamma(q.a + q.b)
        return np.array([np.sum(np.where(row == 1, on, off)) for row in z])

    def divergence(self, q):
        """KL between Beta densities, summed over columns."""
        p = self.prior
        out = betaln(p.a, p.b) - betaln(q.a, q.b)
        out += (q.a - p.a) * digamma(q.a) + (q.b - p.b) * digamma(q.b)
        out += (p.a - q.a + p.b - q.b) * digamma(q.a + q.b)
        return out.sum()

    def log_predictive(self, q, z):
        p = q.a / (q.a + q.b)
        return np.array([np.sum(np.log(np.where(row == 1, p, 1.0 - p))) for row in z])


class DirichletMultinomial:
    """Tokens of types in a given order; Hughes (2016), (2.43)-(2.47).

    The posterior is the vector of pseudo-counts.
    """

    def __init__(self, lam):
        self.prior = np.asarray(lam, dtype=float)

    def posterior(self, z, weight):
        return self.prior + weight @ z

    @staticmethod
    def _log_beta(lam):
        """Log normaliser of the Dirichlet density."""
        return gammaln(lam).sum() - gammaln(lam.sum())

    def evidence(self, z, weight):
        """Log marginal likelihood of the rows' tokens: a ratio of multivariate Beta functions."""
        return self._log_beta(self.posterior(z, weight)) - self._log_beta(self.prior)

    def expected_log_lik(self, q, z):
        log_phi = digamma(q) - digamma(q.sum())
        return np.array([row @ log_phi for row in z])

    def divergence(self, q):
        """KL between Dirichlet densities."""
        log_phi = digamma(q) - digamma(q.sum())
        return self._log_beta(self.prior) - self._log_beta(q) + (q - self.prior) @ log_phi

    def log_predictive(self, q, z):
        """Token by token: each is drawn in proportion to its pseudo-count and those seen before."""
        out = []
        for row in z:
            tokens = np.repeat(np.arange(len(q)), row.astype(int))
            lam, value = q.copy(), 0.0
            for v in tokens:
                value += np.log(lam[v] / lam.sum())
                lam[v] += 1.0
            out.append(value)
        return np.array(out)
