"""Families for rows with missing values (nan), of independent columns: each entry by itself.

As in `families.py`: a posterior is computed from the rows themselves, never from running statistics.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import digamma, gammaln
from scipy.stats import norm


class ByColumn:
    """Independent columns, each with a twin for rows of it alone, which sees those that show it."""

    def __init__(self, twins):
        self.twins = twins
        self.prior = [twin.prior for twin in twins]

    @property
    def ridge(self):
        return np.array([np.sum(getattr(twin, "ridge", 0.0)) for twin in self.twins])

    @ridge.setter
    def ridge(self, value):
        for twin, own in zip(self.twins, value, strict=True):
            twin.ridge = np.array([own])

    def seen(self, z):
        """Twin, which rows show its column, and their entries (m, 1); column by column."""
        for d, twin in enumerate(self.twins):
            shown = ~np.isnan(z[:, d])
            yield twin, shown, z[shown, d : d + 1]

    def posterior(self, z, weight):
        return [twin.posterior(x, weight[shown]) for twin, shown, x in self.seen(z)]

    def evidence(self, z, weight):
        return sum(twin.evidence(x, weight[shown]) for twin, shown, x in self.seen(z))

    def _summed(self, name, q, z):
        out = np.zeros(len(z))
        for (twin, shown, x), own in zip(self.seen(z), q, strict=True):
            out[shown] += getattr(twin, name)(own, x)
        return out

    def expected_log_lik(self, q, z):
        return self._summed("expected_log_lik", q, z)

    def log_predictive(self, q, z):
        return self._summed("log_predictive", q, z)

    def divergence(self, q):
        return sum(twin.divergence(own) for twin, own in zip(self.twins, q, strict=True))


class SharedPosterior(NamedTuple):
    """``lambda ~ Gamma(shape, rate)`` and ``mu_d ~ N(m_d, 1 / (kappa_d lambda))``; m is None for means 0."""

    m: np.ndarray | None
    kappa: np.ndarray
    shape: float
    rate: float


class SharedPrecision:
    """Columns that share one precision; each entry that is seen is an observation."""

    def __init__(self, m, kappa, nu, b, ridge, log_volumes):
        self.D = len(log_volumes)
        kappa = np.full(self.D, float(kappa))
        self.prior = SharedPosterior(m, kappa, 0.5 * nu, 0.5 * float(b))
        self.ridge = np.broadcast_to(ridge, self.D)
        self.log_volumes = log_volumes

    def posterior(self, z, weight):
        m0, kappa, shape, rate = self.prior
        mean, new_kappa = np.zeros(self.D), kappa.copy()
        for d, column in enumerate(z.T):
            shown = ~np.isnan(column)
            x, w = column[shown], weight[shown]
            n = w.sum()
            shape, rate = shape + 0.5 * n, rate + 0.5 * n * self.ridge[d]
            if m0 is None:
                rate = rate + 0.5 * w @ x**2
                continue
            new_kappa[d] = kappa[d] + n
            mean[d] = (kappa[d] * m0[d] + w @ x) / new_kappa[d]
            rate = rate + 0.5 * (w @ (x - mean[d]) ** 2 + kappa[d] * (m0[d] - mean[d]) ** 2)
        return SharedPosterior(None if m0 is None else mean, new_kappa, shape, rate)

    def evidence(self, z, weight):
        """By Bayes' theorem at the posterior's expectations: likelihood times prior over posterior."""
        q = self.posterior(z, weight)
        lam, m = q.shape / q.rate, np.zeros(self.D) if q.m is None else q.m
        like = norm.logpdf(z, m, lam**-0.5) - 0.5 * lam * self.ridge + self.log_volumes
        out = weight @ np.nansum(like, axis=1)
        for params, sign in ((self.prior, 1.0), (q, -1.0)):
            out += sign * stats.gamma.logpdf(lam, params.shape, scale=1.0 / params.rate)
            if q.m is not None:
                out += sign * norm.logpdf(m, params.m, (params.kappa * lam) ** -0.5).sum()
        return out

    def expected_log_lik(self, q, z):
        log_lam, lam = digamma(q.shape) - np.log(q.rate), q.shape / q.rate
        square = z**2 if q.m is None else (z - q.m) ** 2 + 1.0 / (q.kappa * lam)
        each = log_lam - np.log(2 * np.pi) - lam * (square + self.ridge)
        return np.nansum(0.5 * each + self.log_volumes, axis=1)

    def divergence(self, q):
        p, lam = self.prior, q.shape / q.rate
        out = (q.shape - p.shape) * digamma(q.shape) - gammaln(q.shape) + gammaln(p.shape)
        out += p.shape * np.log(q.rate / p.rate) + lam * (p.rate - q.rate)
        if q.m is not None:
            ratio = p.kappa / q.kappa
            out += 0.5 * np.sum(ratio - 1.0 - np.log(ratio) + p.kappa * lam * (q.m - p.m) ** 2)
        return out

    def student(self, q, row):
        """Columns that a row shows, and degrees of freedom, location and shape of their density."""
        seen = ~np.isnan(row)
        spread = np.ones(self.D) if q.m is None else 1.0 + 1.0 / q.kappa
        location = np.zeros(self.D) if q.m is None else q.m
        return seen, 2.0 * q.shape, location[seen], np.diag(spread[seen] * q.rate / q.shape)

    def log_predictive(self, q, z):
        """Student densities of what is seen: a column at a time, each given those before it."""
        out = np.zeros(len(z))
        for i, row in enumerate(z):
            seen, dof, location, shape = self.student(q, row)
            square = 0.0
            for d, (x, m, v) in enumerate(zip(row[seen], location, np.diag(shape), strict=True)):
                scale = np.sqrt(v * (dof + square) / (dof + d))
                out[i] += stats.t.logpdf(x, dof + d, m, scale)
                square += (x - m) ** 2 / v
            out[i] += self.log_volumes[seen].sum()
        return out
