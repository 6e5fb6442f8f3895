"""Topics of one document under known topics by CVB0, entry by entry; and exactly, by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import gammaln

FIRST_STEPS = 4  # steps in which all topics move
FEW_STEPS = 7  # most steps of a few topics before all move again
HELD_BELOW = 0.02  # tokens of a topic that may wait


def shares(table, c, prior, max_iter=1000, tol=1e-9):
    """Shares (U, K) of entries with counts c (U,) and likelihoods (U, K).

    Asuncion et al. (2009), Sec. 3.3, with topics that stay. Every other step goes half of the way.
    """
    K, since = len(prior), 0
    r = np.array([row * prior / (row * prior).sum() for row in table])
    moving = np.arange(K)
    for it in range(max_iter):
        counts = c @ r
        step = np.zeros_like(r)
        for u, row in enumerate(table):
            others = np.maximum(counts - min(c[u], 1.0) * r[u], 0.0)
            weight = (row * (others + prior))[moving]
            step[u, moving] = weight / weight.sum() * r[u, moving].sum() - r[u, moving]
        r += step * (0.5 if it % 2 else 1.0)
        moved, everyone = np.max(c @ np.abs(step)), len(moving) == K
        since += 1
        if everyone and moved < tol:
            break
        if not everyone and (moved < tol or since > FEW_STEPS):
            moving = np.arange(K)
        elif everyone and it + 1 >= FIRST_STEPS:
            moving, since = np.flatnonzero(c @ r >= HELD_BELOW), 0
    return r


def exact_shares(table, prior):
    """Posterior probability (n, K) of each topic of each of n tokens, by all assignments of them."""
    n, K = table.shape
    out = np.zeros((n, K))
    for topics in product(range(K), repeat=n):
        counts = np.bincount(topics, minlength=K)
        weight = np.exp(np.sum(gammaln(counts + prior) - gammaln(prior)))
        for token, topic in enumerate(topics):
            weight *= table[token, topic]
        out[np.arange(n), topics] += weight
    return out / out.sum(axis=1, keepdims=True)
