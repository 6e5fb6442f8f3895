"""Posteriors of Markov chains: over all K^T paths, and by recursions in logarithms.

The pair marginals of a posterior that is a Markov chain itself are Hughes (2016), (6.14); its entropy is
(6.24) with the first row's, and for renamed states the same sums over the names.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, xlogy


class Chain(NamedTuple):
    """Sequences of log likelihoods (T, K), rows indptr[d]:indptr[d + 1], and log weights."""

    log_table: np.ndarray
    indptr: np.ndarray
    log_first: np.ndarray
    log_trans: np.ndarray

    def sequences(self):
        for d, (a, b) in enumerate(zip(self.indptr[:-1], self.indptr[1:], strict=True)):
            yield self.log_table[a:b], self.log_first[d]


class Posterior(NamedTuple):
    """log Z, filtered and smoothed probabilities (T, K) and pair marginals (T - 1, K, K)."""

    log_z: float
    alpha: np.ndarray
    resp: np.ndarray
    pairs: np.ndarray


def path_weights(log_table, log_first, log_trans):
    """Every path (K^T, T), in the order of the numbers that they write, and its log weight."""
    T, K = log_table.shape
    paths = np.array(list(product(range(K), repeat=T)))
    weights = log_first[paths[:, 0]] + log_table[0, paths[:, 0]]
    for t in range(1, T):
        weights = weights + log_trans[paths[:, t - 1], paths[:, t]] + log_table[t, paths[:, t]]
    return paths, weights


def by_paths(log_table, log_first, log_trans):
    """The posterior of one sequence by sums over paths."""
    T, K = log_table.shape
    paths, weights = path_weights(log_table, log_first, log_trans)
    log_z = logsumexp(weights)
    p = np.exp(weights - log_z)
    resp, pairs, alpha = np.zeros((T, K)), np.zeros((T - 1, K, K)), np.zeros((T, K))
    for t in range(T):
        np.add.at(resp[t], paths[:, t], p)
        if t + 1 < T:
            np.add.at(pairs[t], (paths[:, t], paths[:, t + 1]), p)
        beginnings, short = path_weights(log_table[: t + 1], log_first, log_trans)
        np.add.at(alpha[t], beginnings[:, t], np.exp(short - logsumexp(short)))
    return Posterior(log_z, alpha, resp, pairs)


def by_recursion(log_table, log_first, log_trans):
    """The posterior of one sequence by forward and backward recursions in logarithms."""
    T, K = log_table.shape
    a, b = np.empty((T, K)), np.zeros((T, K))
    a[0] = log_first + log_table[0]
    for t in range(1, T):
        a[t] = logsumexp(a[t - 1][:, np.newaxis] + log_trans, axis=0) + log_table[t]
    for t in range(T - 2, -1, -1):
        b[t] = logsumexp(log_trans + log_table[t + 1] + b[t + 1], axis=1)
    log_z = logsumexp(a[-1])
    pairs = np.array([
        np.exp(a[t][:, np.newaxis] + log_trans + log_table[t + 1] + b[t + 1] - log_z)
        for t in range(T - 1)
    ]).reshape(T - 1, K, K)  # fmt: skip
    return Posterior(
        log_z, np.exp(a - logsumexp(a, axis=1, keepdims=True)), np.exp(a + b - log_z), pairs
    )


def data_term(log_table, resp):
    """``sum r log B``, nothing where r = 0."""
    return np.sum(resp * np.where(resp > 0, log_table, 0.0))


def path_entropy(log_table, log_first, log_trans):
    """``-sum p log p`` over paths."""
    _, weights = path_weights(log_table, log_first, log_trans)
    p = np.exp(weights - logsumexp(weights))
    return -np.sum(xlogy(p, p))


def coarse_entropy(posterior, names):
    """Entropy of pairs less that of rows in between, after state k has become names[k]."""
    member = (names[:, np.newaxis] == np.unique(names)).astype(float)
    rows = posterior.resp @ member
    if len(rows) == 1:
        return -np.sum(xlogy(rows, rows))
    pairs = np.einsum("ka,tkl,lb->tab", member, posterior.pairs, member)
    return np.sum(xlogy(rows[1:-1], rows[1:-1])) - np.sum(xlogy(pairs, pairs))


def best_path(log_table, log_first, log_trans):
    """The first of the best paths, read from its end, and its log weight."""
    paths, weights = path_weights(log_table, log_first, log_trans)
    best = paths[weights == weights.max()]
    order = np.lexsort(best.T)  # the last row's state decides first
    return best[order[0]], weights.max()


def markov_entropy(posterior, names):
    """Entropy of the Markov chain with the pair marginals after renaming, over all paths of names."""
    labels = np.unique(names)
    member = (names[:, np.newaxis] == labels).astype(float)
    rows = posterior.resp @ member
    steps = [member.T @ pair @ member for pair in posterior.pairs]
    paths = np.array(list(product(range(len(labels)), repeat=len(rows))))
    p = rows[0, paths[:, 0]]
    for t, step in enumerate(steps):
        now = rows[t, paths[:, t]]
        p = p * step[paths[:, t], paths[:, t + 1]] / np.where(now > 0, now, 1.0)
    return -np.sum(xlogy(p, p))


def renamed_path_entropy(log_table, log_first, log_trans, names):
    """Entropy of the paths themselves after renaming, which no Markov chain need have."""
    paths, weights = path_weights(log_table, log_first, log_trans)
    _, which = np.unique(names[paths], axis=0, return_inverse=True)
    p = np.bincount(which.ravel(), np.exp(weights - logsumexp(weights)))
    return -np.sum(xlogy(p, p))


def told_by_names(posterior, names):
    """``H(z_t | name of z_t)`` of each row (T,)."""
    member = (names[:, np.newaxis] == np.unique(names)).astype(float)
    rows = posterior.resp @ member
    return np.sum(xlogy(rows, rows), axis=1) - np.sum(xlogy(posterior.resp, posterior.resp), axis=1)
