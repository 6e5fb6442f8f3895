"""Counts that vary more than Poisson counts, column by column.

As in `families.py`: a posterior is computed from the rows themselves, never from running statistics.

Source: N. L. Johnson, A. W. Kemp and S. Kotz, Univariate Discrete Distributions (3rd ed., 2005), Sec.
6.2.3: a Beta prior of the probability of a negative binomial distribution makes the beta negative binomial
one.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, digamma, gammaln

from tests.reference.families import BetaPosterior


class BetaNegativeBinomial:
    """Negative binomial counts of known sizes r, without ``1 / x!``; the prior of p is Beta(a, b)."""

    def __init__(self, a, b, r):
        self.prior = BetaPosterior(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
        self.r = np.asarray(r, dtype=float)

    def posterior(self, z, weight):
        return BetaPosterior(self.prior.a + weight @ z, self.prior.b + weight.sum() * self.r)

    def rises(self, z):
        """``Gamma(r + x) / Gamma(r) = r (r + 1) ... (r + x - 1)``, as a logarithm, of each row."""
        return np.array(
            [
                sum(np.log(r + np.arange(x)).sum() for r, x in zip(self.r, row, strict=True))
                for row in z
            ]
        )

    def evidence(self, z, weight):
        q = self.posterior(z, weight)
        return np.sum(betaln(*q) - betaln(*self.prior)) + weight @ self.rises(z)

    def expected_log_lik(self, q, z):
        log_p = digamma(q.a) - digamma(q.a + q.b)
        log_rest = digamma(q.b) - digamma(q.a + q.b)
        return self.rises(z) + np.array([np.sum(row * log_p + self.r * log_rest) for row in z])

    def divergence(self, q):
        """KL between Beta densities, summed over columns."""
        p, both = self.prior, digamma(q.a + q.b)
        out = betaln(*p) - betaln(*q)
        out += (q.a - p.a) * (digamma(q.a) - both) + (q.b - p.b) * (digamma(q.b) - both)
        return out.sum()

    def log_predictive(self, q, z):
        """Counts one after the other: each raises a by one; the rest is the Beta function of b."""
        out = self.rises(z)
        for i, row in enumerate(z):
            for a, b, r, x in zip(q.a, q.b, self.r, row, strict=True):
                k = np.arange(x)
                out[i] += (
                    betaln(a, b + r) - betaln(a, b) + np.sum(np.log(a + k) - np.log(a + b + r + k))
                )
        return out


def size_sums(x, r=None):
    """Numbers f (n, D, J) of counts that follow from the note of ``size_sums.py``; for sizes r, if given.

    ``lnGamma(r + x) - lnGamma(r)`` is exactly ``sum_j [x > j] log(r + j)`` and, for j from 12 on, the
    polynomial in ``log(r + 12)`` through the values at 28 Chebyshev nodes.
    """
    x = np.where(np.isnan(x), 0.0, x)[..., np.newaxis]
    if r is not None:
        return gammaln(r[:, np.newaxis] + x) - gammaln(r[:, np.newaxis])
    angles = np.pi * (np.arange(28) + 0.5) / 28
    lo, hi = np.log(12.0), np.log(12.0 + 1e4)
    nodes = np.exp((lo + hi) / 2.0 - (hi - lo) / 2.0 * np.cos(angles))
    rest = gammaln(nodes + np.maximum(x - 12.0, 0.0)) - gammaln(nodes)
    return np.concatenate([x > np.arange(12), rest], axis=-1)


def statistics(x, rows, r=None):
    """Statistics (n, P) of counts x (n, D), of which the kernels take ``rows`` (n, P')."""
    f = size_sums(x, r).reshape(len(x), -1)
    return np.concatenate([f, rows, np.ones((len(x), 1))], axis=1)
