"""The updates (18)-(22) of all topics from all items."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, softmax, xlogy

from .objective import objective, update_alpha
from .state import Topics

# Steps of (22) after each update of the assignments.
_ALPHA_STEPS = 3
# Topics with fewer rows than this are gone.
_LEAST_ROWS = 1e-6
# Numbers of the table's responsibilities at a time.
_BLOCK_NUMBERS = 1_000_000


def first_topics(settings, items):
    """All items in one topic."""
    likelihood = settings.likelihood
    z, s = items.z[items.edges[0] :], np.zeros((1, likelihood.n_statistics))
    coef = np.zeros_like(s)
    if len(z):
        likelihood.local_step(coef, z, None, None, s, None, n_threads=settings.n_threads)
    T = len(items.means)
    s[0] += items.n[:T] @ items.means
    counts = items.lengths[np.newaxis]
    topics = Topics(s, counts, np.zeros(1), np.ones(1), likelihood.prior, 0.0)
    return finished(settings, topics, items)


def with_new_groups(topics, n_groups):
    """Topics that know of new documents, of which nothing is known: zeta is alpha (Alg. 3.1)."""
    K, before = topics.counts.shape
    return topics._replace(
        counts=np.concatenate([topics.counts, np.zeros((K, n_groups - before))], axis=1)
    )


def finished(settings, topics, items):
    """Topics with alpha, the likelihood's prior and the bound renewed."""
    lengths, likelihood = items.lengths, settings.likelihood
    topics = update_alpha(settings, topics, lengths, items.sizes, _ALPHA_STEPS)
    if likelihood.adapts_prior:
        topics = topics._replace(prior=likelihood.update_prior(topics.prior, topics.s, 1))
    return topics._replace(bound=objective(settings, topics, lengths, items.sizes))


def log_weights(settings, topics, sizes):
    """Coefficients (K, P) of E[log p(x | k)], and ``psi(zeta_ks)`` (K, S) (21)."""
    coef = settings.likelihood.coefficients(topics.prior, topics.s)
    return coef, digamma(topics.counts / sizes + topics.alpha[:, np.newaxis])


def update(settings, topics, items, observe=None):
    """Topics after (21), (18)-(20) and (22).

    Parameters
    ----------
    observe : callable or None
        Is given each block's first item, numbers of rows (or None for 1 each) and
        responsibilities (n, K).
    """
    coef, psi = log_weights(settings, topics, items.sizes)
    s, counts, entropy = _of_table(items, coef, psi, observe)
    _add_documents(settings, items, coef, psi, observe, s, counts, entropy)
    return finished(settings, topics._replace(s=s, counts=counts, entropy=entropy), items)


def alive(topics):
    """Which topics have any rows (K,)."""
    n = topics.s[:, -1]
    return n > min(_LEAST_ROWS, n.max() / 2)


def _of_table(items, coef, psi, observe):
    """What clumps and singlets leave behind."""
    T, (K, S) = len(items.means), psi.shape
    s, counts, entropy = np.zeros(coef.shape), np.zeros((K, S)), np.zeros(K)
    size = max(1, _BLOCK_NUMBERS // K)
    for lo in range(0, T, size):
        part = slice(lo, min(lo + size, T))
        means, shares, n = items.means[part], items.shares[part], items.n[part]
        resp = softmax(means @ coef.T + shares @ psi.T, axis=1)
        mass = n[:, np.newaxis] * resp
        s += mass.T @ means
        counts += (shares.T @ mass).T
        entropy -= n @ xlogy(resp, resp)
        if observe is not None:
            observe(lo, n, resp)
    return s, counts, entropy


def _add_documents(settings, items, coef, psi, observe, s, counts, entropy):
    """Add what the rows of this epoch leave behind, document by document."""
    likelihood, edges = settings.likelihood, items.edges
    first, C = psi.shape[1] - (len(edges) - 1), items.n_clumps
    own_s, own_entropy = np.empty_like(s), np.empty_like(entropy)
    weights = coef.copy()
    for i in range(len(edges) - 1):
        z = items.z[edges[i] : edges[i + 1]]
        weights[:, -1] = coef[:, -1] + psi[:, first + i]
        resp = likelihood.local_step(
            weights, z, None, None, own_s, own_entropy, n_threads=settings.n_threads
        )
        s += own_s
        entropy += own_entropy
        counts[:, first + i] += own_s[:, -1]
        if observe is not None:
            observe(C + int(edges[i]), None, resp)


def converge(settings, topics, items, trace=None):
    """Topics after updates until the bound's relative change is below ``tol``."""
    last = -np.inf
    for _ in range(settings.max_iter):
        topics = update(settings, topics, items)
        if trace is not None:
            trace.append(topics.bound)
        if topics.bound - last < threshold(settings, topics, items):
            break
        last = topics.bound
    return topics


def threshold(settings, topics, items):
    """Least change of the bound that counts: relative to it, or to the rows if it is near 0."""
    return settings.tol * max(abs(topics.bound), items.n.sum())
