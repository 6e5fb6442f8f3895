"""Distances between components, and evidence of unions of pairs, from statistics alone."""

from __future__ import annotations

from functools import partial

import numpy as np

# Entries of the statistics of pairs that are held at a time: more would only take memory.
_ENTRIES = 2**16
# All pairs are looked at if there are no more components than so many for each neighbor.
_FEW = 4


def reassignment_loss(model, totals):
    """Expected loss per row if the rows of one component are explained by another.

    It is ``s_i . (theta_i - theta_j) / N_i`` with the coefficients theta of ``E[log p(x | k)]``, which is one
    matrix product for any family. Times N_i, it is an upper bound of the loss of the data term by a
    merge of i into j.

    Parameters
    ----------
    model : Model
        The model, of which the likelihood and its prior are used.
    totals : StatBag
        Statistics of the whole data.

    Returns
    -------
    loss : ndarray, shape (K, K)
        Loss in nats per row of component i if component j explains these; zero on the diagonal.
    """
    return loss_of_statistics(model.likelihood, model.prior, totals.s)


def loss_of_statistics(likelihood, prior, s):
    """`reassignment_loss` (K, K) of components with statistics ``s`` (K, P) under a prior."""
    cross = s @ likelihood.coefficients(prior, s).T
    return (np.diagonal(cross)[:, np.newaxis] - cross) / np.maximum(s[:, -1:], 1e-12)


def union_evidence(likelihood, prior, s, i, j):
    """Evidence (M,) of the unions of components ``i[m]`` and ``j[m]`` of statistics ``s`` (K, P)."""
    if likelihood.fast_unions:
        return likelihood.union_evidence(prior, s, i, j)
    return evidence_of_sums(partial(likelihood.evidence, prior), s, i, j)


def union_evidence_gains(likelihood, prior, s, i, j):
    """Change of the evidence (M,) by the unions of components ``i[m]`` and ``j[m]``."""
    own = likelihood.evidence(prior, s)
    return union_evidence(likelihood, prior, s, i, j) - own[i] - own[j]


def evidence_of_sums(evidence, s, i, j):
    """``evidence(s[i] + s[j])``, shape (M,), for a limited number of pairs at a time."""
    step = max(1, _ENTRIES // s.shape[1])
    parts = (slice(m, m + step) for m in range(0, max(1, len(i)), step))
    return np.concatenate([evidence(s[i[part]] + s[j[part]]) for part in parts])


def nearest(loss, n_neighbors):
    """Pairs of components of which one is among the nearest neighbors of the other.

    Parameters
    ----------
    loss : ndarray, shape (K, K)
        The losses that `reassignment_loss` returns.
    n_neighbors : int
        Number of neighbors of each component.

    Returns
    -------
    near : ndarray of bool, shape (K, K)
        Symmetric, and false on the diagonal.
    """
    K = len(loss)
    cost = np.minimum(loss, loss.T)
    np.fill_diagonal(cost, np.inf)
    near = np.zeros((K, K), dtype=bool)
    if K > 1:
        first = np.argsort(cost, axis=1, kind="stable")[:, : min(n_neighbors, K - 1)]
        np.put_along_axis(near, first, True, axis=1)
    return near | near.T


def near_pairs(model, totals, n_neighbors, loss=None):
    """Pairs (K, K) that may become one: those that are `nearest`, or all of them if components are few.

    ``loss`` is the `reassignment_loss`, if it is known.
    """
    K = len(totals.uids)
    if _FEW * n_neighbors >= K:
        return np.ones((K, K), dtype=bool)
    return nearest(reassignment_loss(model, totals) if loss is None else loss, n_neighbors)


def neighbourhoods(loss, size, rng):
    """Positions of the components of disjoint pools of neighbours that hold all components, a list of lists.

    Each pool begins with a component that no pool has yet, drawn at random, and takes the nearest of the
    others that no pool has.

    Parameters
    ----------
    loss : ndarray, shape (K, K)
        The losses that `reassignment_loss` returns.
    size : int
        Components of a pool. The last pool has fewer if components are no multiple of it.
    rng : numpy.random.RandomState
    """
    cost, free, pools = np.minimum(loss, loss.T), np.ones(len(loss), dtype=bool), []
    for k in rng.permutation(len(loss)).tolist():
        if free[k]:
            order = np.argsort(np.where(free, cost[k], np.inf), kind="stable")
            others = [j for j in order.tolist() if j != k and free[j]]
            pool = sorted([k, *others[: size - 1]])
            free[pool] = False
            pools.append(pool)
    return pools
