"""Priors of the weights with explicit variational posteriors.

Hughes (2016), Sec. 2.5.4 and 3.3.4.
"""

from __future__ import annotations

import numpy as np
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


class DirichletProcess:
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


class FiniteDirichlet:
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
