"""Evidence of components of counts under a Dirichlet prior about frequencies, and its best weights. Slow."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln


def pseudo_counts(counts, even, strength):
    """``even + strength * p`` (V,) with the frequencies p in all counts (K, V), a hundredth spread evenly."""
    totals = counts.sum(axis=0)
    return even + strength * (0.99 * totals / totals.sum() + 0.01 / len(totals))


def evidence(counts, lam):
    """Log probability of tokens in a given order, summed over components with ``counts`` (K, V)."""
    value = 0.0
    for n in counts:
        value += gammaln(lam.sum()) - gammaln(lam.sum() + n.sum())
        value += sum(gammaln(a + x) - gammaln(a) for a, x in zip(lam, n, strict=True))
    return value


def best_weights(counts):
    """``even`` and ``strength`` of most evidence, by a search without slopes from several starts."""

    def loss(logs):
        return -evidence(counts, pseudo_counts(counts, *np.exp(logs)))

    starts = [np.log([even, strength]) for even in (0.01, 0.5) for strength in (1.0, 50.0)]
    options = {"xatol": 1e-6, "fatol": 1e-9, "maxiter": 4000}
    found = [minimize(loss, s, method="Nelder-Mead", options=options) for s in starts]
    return np.exp(min(found, key=lambda one: one.fun).x)
