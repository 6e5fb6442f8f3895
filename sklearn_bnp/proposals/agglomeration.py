"""Greedy agglomeration of components by what each step costs the objective.

Merging pairs alone gets stuck where only several components together are redundant. Here components
are joined one after the other all the way down to one, even when the objective falls, so that every
node of the tree can be judged as one multi-way merge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Node(NamedTuple):
    """A union met on the way.

    Attributes
    ----------
    members : tuple of int
        Indices of the components it holds.
    gain : float
        Estimated change of data and entropy terms against its members kept apart, in nats.
    """

    members: tuple
    gain: float


class Agglomeration(NamedTuple):
    """The tree and the best cut through it.

    Attributes
    ----------
    nodes : list of Node
        In order of creation.
    cut : list of tuple
        Groups of indices whose objective was highest; all indices appear once.
    gain : float
        That objective minus the one of all components apart.
    """

    nodes: list
    cut: list
    gain: float


def agglomerate(s, entropy, union_entropy, evidence, allocation_elbo, neighbours=None):
    """Join components greedily, each time the pair with the least loss per row moved.

    Parameters
    ----------
    s : ndarray, shape (K, P)
    entropy : ndarray, shape (K,)
    union_entropy : callable
        ``union_entropy(list of member tuples)`` -> entropies of the unions, an array.
    evidence : callable
        Statistics (M, P) -> data terms (M,).
    allocation_elbo : callable
        Counts of the groups -> allocation term.
    neighbours : ndarray of bool, shape (K, K), or None
        Pairs that may be joined; all if None.

    Returns
    -------
    Agglomeration
    """
    K = len(s)
    s, value = s.copy(), evidence(s) + entropy
    own = value.copy()  # of the members kept apart, summed along
    near = np.ones((K, K), dtype=bool) if neighbours is None else neighbours | neighbours.T
    near = near & ~np.eye(K, dtype=bool)
    members = [(k,) for k in range(K)]
    alive = np.ones(K, dtype=bool)
    joined = np.full((K, K), -np.inf)  # value of the union of i and j, i < j

    def score(pairs):
        i, j = pairs.T
        unions = evidence(s[i] + s[j]) + union_entropy([members[a] + members[b] for a, b in pairs])
        joined[i, j] = unions

    start = np.argwhere(np.triu(near))
    if len(start):
        score(start)
    nodes, best, total, base = [], None, value.sum(), None
    while True:
        groups = np.flatnonzero(alive)
        objective = total + allocation_elbo(s[groups, -1])
        base = objective if base is None else base
        if best is None or objective > best[0]:
            best = (objective, [members[k] for k in groups])
        open_pairs = np.argwhere(np.isfinite(joined))
        if len(open_pairs) == 0:
            break
        i, j = open_pairs.T
        loss = joined[i, j] - value[i] - value[j]
        per_row = loss / np.maximum(np.minimum(s[i, -1], s[j, -1]), 1e-9)
        a, b = open_pairs[np.argmax(per_row)]
        total += joined[a, b] - value[a] - value[b]
        value[a], own[a] = joined[a, b], own[a] + own[b]
        s[a] += s[b]
        members[a] += members[b]
        near[a] |= near[b]
        near[:, a] |= near[:, b]
        alive[b] = near[a, a] = False
        near[b] = near[:, b] = False
        joined[b] = joined[:, b] = joined[a] = joined[:, a] = -np.inf
        nodes.append(Node(members[a], float(value[a] - own[a])))
        others = np.flatnonzero(near[a] & alive)
        if len(others):
            score(np.sort(np.column_stack([np.full(len(others), a), others]), axis=1))
    return Agglomeration(nodes, best[1], float(best[0] - base))
