"""Families of one parameter a column: Gaussians of known variance, and Poisson counts.

As in `families.py`: a posterior is computed from the rows themselves, never from running statistics.

Sources: K. P. Murphy, Conjugate Bayesian analysis of the Gaussian distribution (2007), Sec. 2; A. Gelman
et al., Bayesian Data Analysis (3rd ed., 2013), Sec. 2.6 (Gamma priors of Poisson rates).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln
from scipy.stats import norm


class NormalPosterior(NamedTuple):
    """Each column's mean ``~ N(m, spread)``."""

    m: np.ndarray
    spread: np.ndarray


class KnownVariance:
    """Independent Gaussian columns of known variances; rows are blurred by the ridge."""

    def __init__(self, m, spread, variance, ridge, log_volume=0.0):
        self.prior = NormalPosterior(np.asarray(m, dtype=float), np.asarray(spread, dtype=float))
        self.variance = np.broadcast_to(variance, self.prior.m.shape)
        self.ridge = np.broadcast_to(ridge, self.prior.m.shape)
        self.log_volume = log_volume

    def posterior(self, z, weight):
        """(20)-(24) of Murphy: precisions add, and means are averages with these as weights."""
        precision = 1.0 / self.prior.spread + weight.sum() / self.variance
        total = self.prior.m / self.prior.spread + weight @ z / self.variance
        return NormalPosterior(total / precision, 1.0 / precision)

    def evidence(self, z, weight):
        """By Bayes' theorem at the posterior's mean: likelihood times prior over posterior."""
        q = self.posterior(z, weight)
        like = weight @ self.expected_log_lik(NormalPosterior(q.m, 0.0 * q.m), z)
        return like + sum(
            norm.logpdf(q.m, mean, np.sqrt(spread)).sum() * sign
            for mean, spread, sign in ((*self.prior, 1.0), (*q, -1.0))
        )

    def expected_log_lik(self, q, z):
        """``E_q[log N(x | mu, variance)] - ridge / (2 variance)`` of each row."""
        density = norm.logpdf(z, q.m, np.sqrt(self.variance)).sum(axis=1) + self.log_volume
        return density - 0.5 * np.sum((q.spread + self.ridge) / self.variance)

    def divergence(self, q):
        """KL between normal densities, summed over columns."""
        ratio = q.spread / self.prior.spread
        square = (q.m - self.prior.m) ** 2 / self.prior.spread
        return 0.5 * np.sum(ratio - 1.0 - np.log(ratio) + square)

    def log_predictive(self, q, z):
        """Normal density of rows without ridge: variances of row and mean add."""
        return norm.logpdf(z, q.m, np.sqrt(self.variance + q.spread)).sum(axis=1) + self.log_volume


class GammaPosterior(NamedTuple):
    """Each column's rate ``~ Gamma(a, b)``, b being the inverse scale."""

    a: np.ndarray
    b: np.ndarray


class GammaPoisson:
    """Times of events in an interval of unit length, of as many kinds as there are columns.

    Their density is that of counts without ``1 / x!``.
    """

    def __init__(self, a, b):
        self.prior = GammaPosterior(np.asarray(a, dtype=float), np.asarray(b, dtype=float))

    def posterior(self, z, weight):
        return GammaPosterior(self.prior.a + weight @ z, self.prior.b + weight.sum())

    @staticmethod
    def _log_z(params):
        """Log normaliser of the Gamma densities."""
        return np.sum(gammaln(params.a) - params.a * np.log(params.b))

    def evidence(self, z, weight):
        return self._log_z(self.posterior(z, weight)) - self._log_z(self.prior)

    def expected_log_lik(self, q, z):
        log_rate = digamma(q.a) - np.log(q.b)
        return np.array([np.sum(row * log_rate - q.a / q.b) for row in z])

    def divergence(self, q):
        """KL between Gamma densities, summed over columns."""
        p = self.prior
        out = self._log_z(p) - self._log_z(q)
        log_rate = np.sum((q.a - p.a) * (digamma(q.a) - np.log(q.b)))
        return out + log_rate - np.sum((q.b - p.b) * q.a / q.b)

    def log_predictive(self, q, z):
        """Event by event: each raises the shape by one; then the time in which none happens."""
        out = []
        for row in z:
            value = np.sum(q.a * np.log(q.b / (q.b + 1.0)))
            for a, b, x in zip(q.a, q.b, row, strict=True):
                value += sum(np.log((a + i) / (b + 1.0)) for i in range(int(x)))
            out.append(value)
        return np.array(out)
