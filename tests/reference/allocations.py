"""Priors of the weights with explicit variational posteriors.

Hughes (2016), Sec. 2.5.4 and 3.3.4.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, digamma, gammaln


def beta_divergence(a1, a0, b1, b0):
    """KL(Beta(a1, a0) || Beta(b1, b0))."""
    return (
        betaln(b1, b0)
        - betaln(a1, a0)
        + (a1 - b1) * digamma(a1)
        + (a0 - b0) * digamma(a0)
        + (b1 - a1 + b0 - a0) * digamma(a1 + a0)
    )


class Prior:
    """Prior of the weights."""

    def at(self, n):
        """The prior, with what it learns from the counts as it is for these."""
        return self


class DirichletProcess(Prior):
    """``u_k ~ Beta(1, gamma)``; counts are taken in the order in which they are given."""

    def __init__(self, gamma):
        self.gamma = gamma

    def posterior(self, n):
        """Beta parameters (3.43) with the correction of the errata."""
        after = np.array([n[k + 1 :].sum() for k in range(len(n))])
        return 1.0 + n, self.gamma + after

    def expected_log_weights(self, n):
        """``E[log pi_k] = E[log u_k] + sum_{l < k} E[log(1 - u_l)]``; (3.32), (3.33)."""
        a1, a0 = self.posterior(n)
        log_u, log_rest = digamma(a1) - digamma(a1 + a0), digamma(a0) - digamma(a1 + a0)
        return np.array([log_u[k] + log_rest[:k].sum() for k in range(len(n))])

    def elbo(self, n):
        """(3.30): ``E[log p(z | u)] - KL(q(u) || p(u))``."""
        a1, a0 = self.posterior(n)
        divergence = beta_divergence(a1, a0, 1.0, self.gamma).sum()
        return n @ self.expected_log_weights(n) - divergence

    def weights(self, n):
        """``E[pi_k]``, normalised over the components (3.18)."""
        a1, a0 = self.posterior(n)
        u = a1 / (a1 + a0)
        out = np.array([u[k] * np.prod(1.0 - u[:k]) for k in range(len(n))])
        return out / out.sum()

    def log_prior_partition(self, sizes):
        """Chinese restaurant process: log probability of a partition with these block sizes."""
        sizes = np.asarray(sizes, dtype=float)
        out = len(sizes) * np.log(self.gamma) + gammaln(sizes).sum()
        return out + gammaln(self.gamma) - gammaln(self.gamma + sizes.sum())


class PitmanYor(Prior):
    """``u_k ~ Beta(1 - d, gamma + k d)``; counts are taken in the order in which they are given.

    Pitman and Yor (1997); Ishwaran and James (2001), Sec. 2.3. If the discount is None it is the one
    with the best objective, at which its derivative is zero.
    """

    def __init__(self, gamma, discount):
        self.gamma, self.discount = gamma, discount

    def at(self, n):
        if self.discount is not None:
            return self
        if self._derivative(0.0, n) <= 0:
            return PitmanYor(self.gamma, 0.0)
        best = brentq(self._derivative, 0.0, 1 - 1e-9, (n,), xtol=1e-15, rtol=1e-14)
        return PitmanYor(self.gamma, best)

    def _derivative(self, d, n):
        """Of ``sum_k E[log p(u_k)]`` by d, for the posteriors that are best at this discount."""
        given = PitmanYor(self.gamma, d)
        (b1, b0), (log_u, log_rest) = given.prior(len(n)), given.log_sticks(n)
        k = np.arange(1, len(n) + 1)
        norm = -(digamma(b1) - digamma(b1 + b0)) + k * (digamma(b0) - digamma(b1 + b0))
        return np.sum(-log_u + k * log_rest - norm)

    def prior(self, n_sticks):
        k = np.arange(1, n_sticks + 1)
        return np.full(n_sticks, 1.0 - self.discount), self.gamma + k * self.discount

    def posterior(self, n):
        b1, b0 = self.prior(len(n))
        return b1 + n, b0 + [n[k + 1 :].sum() for k in range(len(n))]

    def log_sticks(self, n):
        """``E[log u_k]`` and ``E[log(1 - u_k)]``."""
        a1, a0 = self.posterior(n)
        return digamma(a1) - digamma(a1 + a0), digamma(a0) - digamma(a1 + a0)

    def expected_log_weights(self, n):
        log_u, log_rest = self.at(n).log_sticks(n)
        return np.array([log_u[k] + log_rest[:k].sum() for k in range(len(n))])

    def elbo(self, n):
        """``E[log p(z | u)] - KL(q(u) || p(u))``."""
        given = self.at(n)
        divergence = beta_divergence(*given.posterior(n), *given.prior(len(n))).sum()
        return n @ self.expected_log_weights(n) - divergence

    def weights(self, n):
        a1, a0 = self.at(n).posterior(n)
        u = a1 / (a1 + a0)
        out = np.array([u[k] * np.prod(1.0 - u[:k]) for k in range(len(n))])
        return out / out.sum()

    def log_prior_partition(self, sizes):
        """Exchangeable partition probability function; Pitman and Yor (1997), Chinese restaurant by steps."""
        out, n_rows = 0.0, 0
        for tables, size in enumerate(sizes):
            for seated in range(size):
                joins = seated - self.discount if seated else self.gamma + tables * self.discount
                out += np.log(joins) - np.log(self.gamma + n_rows)
                n_rows += 1
        return out


class FiniteDirichlet(Prior):
    """``pi ~ Dir(a, ..., a)`` over K components."""

    def __init__(self, a, n_components):
        self.a, self.K = a, n_components

    def posterior(self, n):
        return self.a + n

    def expected_log_weights(self, n):
        theta = self.posterior(n)
        return digamma(theta) - digamma(theta.sum())

    def elbo(self, n):
        """(2.101): ``E[log p(z | pi)] - KL(q(pi) || p(pi))``."""
        theta = self.posterior(n)
        log_pi = self.expected_log_weights(n)
        divergence = gammaln(theta.sum()) - gammaln(theta).sum() + (theta - self.a) @ log_pi
        divergence -= gammaln(self.K * self.a) - self.K * gammaln(self.a)
        return n @ log_pi - divergence

    def weights(self, n):
        theta = self.posterior(n)
        return theta / theta.sum()

    def log_prior_partition(self, sizes):
        """Log probability of a partition: all ways to give its blocks different labels."""
        sizes = np.asarray(sizes, dtype=float)
        m = len(sizes)
        if m > self.K:
            return -np.inf
        labels = gammaln(self.K + 1) - gammaln(self.K - m + 1)
        total = self.K * self.a
        out = gammaln(total) - gammaln(total + sizes.sum())
        return labels + out + np.sum(gammaln(self.a + sizes) - gammaln(self.a))
