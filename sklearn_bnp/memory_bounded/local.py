"""The local step: updates (18)-(22) of all topics from all items of an epoch."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma

from .model import Topics, global_step, threshold

# Responsibilities of the table that are held at a time: so many stay in a processor's cache.
_BLOCK_NUMBERS = 200_000
# A trial ends when an update adds less than this share of its gain, or would have to be repeated more often
# than this to make up for a loss. Either is about how soon the judgement comes, and not about its result.
_SMALL, _LONG = 0.2, 10


def first_topics(settings, items):
    """`Topics` with all items in one topic."""
    s = np.zeros((1, settings.likelihood.n_statistics))
    counts, entropy = np.zeros((1, len(items.sizes))), np.zeros(1)
    no_weights = np.zeros_like(s), np.zeros_like(counts)
    _add_documents(settings, items, *no_weights, None, s, counts, entropy)
    T = len(items.means)
    s[0] += items.n[:T] @ items.means
    topics = Topics(
        s, items.lengths[np.newaxis], entropy, np.ones(1), settings.likelihood.prior, 0.0
    )
    return global_step(settings, topics, items)


def with_new_documents(settings, topics, items):
    """Topics with counts for the documents of this epoch, whose rows are first judged one by one.

    A row that is alone in its document has the topic k with the prior mean ``alpha_k / alpha``. Without any
    counts its weight would be ``psi(alpha_k)``, about ``-1 / alpha_k``: then rows of a topic that few
    documents have would go to any other one within hundreds of nats, and stay there.
    """
    S, before = len(items.sizes), topics.counts.shape[1]
    counts = np.zeros((len(topics.s), S))
    counts[:, :before] = topics.counts
    coef = settings.likelihood.coefficients(topics.prior, topics.s)
    share = np.log(topics.alpha / topics.alpha.sum())
    psi = np.broadcast_to(share[:, np.newaxis], counts.shape)
    s, entropy = np.zeros_like(topics.s), np.zeros_like(topics.entropy)  # of no use
    _add_documents(settings, items, coef, psi, None, s, counts, entropy)
    return topics._replace(counts=counts)


def sums_of_epoch(settings, topics, items):
    """Statistics (K, P) of this epoch's rows alone."""
    coef, psi = log_weights(settings, topics, items.sizes)
    s, counts, entropy = np.zeros_like(topics.s), np.zeros_like(topics.counts), np.zeros(len(coef))
    _add_documents(settings, items, coef, psi, None, s, counts, entropy)
    return s


def log_weights(settings, topics, sizes):
    """Coefficients (K, P) of E[log p(x | k)], and ``psi(zeta_ks)`` (K, S) (21)."""
    coef = settings.likelihood.coefficients(topics.prior, topics.s)
    return coef, digamma(topics.zeta(sizes))


def update(settings, topics, items, observe=None):
    """Topics after responsibilities (21), their sums (18)-(20), and a global step (22).

    Parameters
    ----------
    observe : callable or None
        Called for each block of items with the number of its first item, the rows of each item (a number if
        all have as many) and the responsibilities (n, K).
    """
    coef, psi = log_weights(settings, topics, items.sizes)
    s, counts, entropy = _sums_of_table(items, coef, psi, observe)
    _add_documents(settings, items, coef, psi, observe, s, counts, entropy)
    return global_step(settings, topics._replace(s=s, counts=counts, entropy=entropy), items)


def _sums_of_table(items, coef, psi, observe):
    """Statistics (K, P), counts (K, S) and entropies (K,) of clumps and singlets."""
    T, (K, S) = len(items.means), psi.shape
    s, counts, entropy = np.zeros(coef.shape), np.zeros((K, S)), np.zeros(K)
    size = max(1, _BLOCK_NUMBERS // K)
    for lo in range(0, T, size):
        part = slice(lo, min(lo + size, T))
        means, shares, n = items.means[part], items.shares[part], items.n[part]
        logits = means @ coef.T + shares @ psi.T
        logits -= logits.max(axis=1, keepdims=True)
        resp = np.exp(logits)
        total = resp.sum(axis=1)
        resp /= total[:, np.newaxis]
        mass = n[:, np.newaxis] * resp
        s += mass.T @ means
        counts += (shares.T @ mass).T
        entropy += np.log(total) @ mass - np.einsum("nk,nk->k", mass, logits)
        if observe is not None:
            observe(lo, n, resp)
    return s, counts, entropy


def _add_documents(settings, items, coef, psi, observe, s, counts, entropy):
    """Add the sums of this epoch's rows to ``s``, ``counts`` and ``entropy``, document by document."""
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
        own = items.sizes[first + i]
        s += own * own_s
        entropy += own * own_entropy
        counts[:, first + i] += own * own_s[:, -1]
        if observe is not None:
            observe(C + int(edges[i]), own, resp)


def converge(settings, topics, items, *, above=None):
    """Topics after updates until the bound's relative change is below ``tol``.

    Parameters
    ----------
    above : float or None
        The bound that a trial has to pass. If it is given, updates also end when they add little to what
        the bound is above it, or so little that it will not be passed.
    """
    last = -np.inf
    for _ in range(settings.max_iter):
        topics = update(settings, topics, items)
        change = topics.bound - last
        if change < threshold(settings, topics, items):
            break
        if above is not None and _is_decided(topics.bound - above, change):
            break
        last = topics.bound
    return topics


def _is_decided(gain, change):
    return change < _SMALL * gain or change < -gain / _LONG
