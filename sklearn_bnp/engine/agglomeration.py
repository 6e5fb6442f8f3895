"""Greedy agglomeration of components by the cost of each union to the objective.

Merges of pairs get stuck where only several components together are redundant. Here components are joined
one after another until one is left, even where the objective falls. Each node of the resulting tree can
then be judged as one merge of several components.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .affinity import evidence_of_sums

# Least mass that a loss is divided by.
_LEAST_MASS = 1e-9


class Node(NamedTuple):
    """A node of the tree: a union of components.

    Attributes
    ----------
    members : tuple of int
        Indices of the components in the union.
    gain : float
        Estimated change of data and entropy terms by the union of its members, in nats.
    """

    members: tuple
    gain: float


class Agglomeration(NamedTuple):
    """The tree of unions, and the best cut through it.

    Attributes
    ----------
    nodes : list of Node
        In order of creation.
    cut : list of tuple
        Groups of indices with the highest objective; each index is in one group.
    gain : float
        Objective of the cut minus the objective of all components apart.
    margin : float
        Objective of the best grouping into several groups minus that of a single group, which it is best to
        be left with if this is negative; inf if nothing leads to a single group.
    """

    nodes: list
    cut: list
    gain: float
    margin: float

    def groups(self, n_groups):
        """The cut, or groups that are as many as this where the cut has fewer.

        Parameters
        ----------
        n_groups : int
            Number of groups.

        Returns
        -------
        groups : list of tuple
            Groups of indices, as in ``cut``.
        """
        if len(self.cut) >= n_groups:
            return self.cut
        members = sorted(k for group in self.cut for k in group)
        groups = {k: (k,) for k in members}
        for node in self.nodes[: len(members) - n_groups]:
            for k in node.members[1:]:
                groups.pop(k, None)
            groups[node.members[0]] = node.members
        return list(groups.values())


def agglomerate(s, entropy, unions, evidence, allocation_elbo, neighbours=None):
    """Join components greedily, each time the pair that loses least per row of the smaller one.

    Parameters
    ----------
    s : ndarray, shape (K, P)
        Statistics of components.
    entropy : ndarray, shape (K,)
        Entropies of components.
    unions : GrowingUnions or GrowingUnionsOfRows
        They tell the entropies of unions, and grow with the tree.
    evidence : callable
        ``evidence(s)`` returns the data terms (M,) of statistics (M, P).
    allocation_elbo : callable
        ``allocation_elbo(n)`` returns the allocation term of components with counts n.
    neighbours : ndarray of bool, shape (K, K), or None, default=None
        Pairs that may be joined. All pairs if None.

    Returns
    -------
    tree : Agglomeration
        Its ``nodes`` are all unions, its ``cut`` is the best grouping, and its ``gain`` that of the cut.
    """
    K = len(s)
    s, value = s.copy(), evidence(s) + entropy
    own = value.copy()  # sums over the members kept apart
    near = np.ones((K, K), dtype=bool) if neighbours is None else neighbours | neighbours.T
    near = near & ~np.eye(K, dtype=bool)
    members = [(k,) for k in range(K)]
    alive = list(range(K))
    joined = np.full((K, K), -np.inf)  # value of the union of i and j, in both triangles

    def score(i, j):
        joined[i, j] = joined[j, i] = evidence_of_sums(evidence, s, i, j) + unions.of_pairs(i, j)

    i, j = np.nonzero(np.triu(near))
    if len(i):
        score(i, j)
    total = value.sum()
    base = total + allocation_elbo(s[:, -1])
    best, cut, nodes, several, one = base, list(members), [], base, -np.inf
    for _ in range(K - 1):
        smaller = np.maximum(np.minimum.outer(s[:, -1], s[:, -1]), _LEAST_MASS)
        a, b = divmod(int(np.argmax((joined - np.add.outer(value, value)) / smaller)), K)
        if joined[a, b] == -np.inf:
            break
        total += joined[a, b] - value[a] - value[b]
        value[a], own[a] = joined[a, b], own[a] + own[b]
        s[a] += s[b]
        members[a] += members[b]
        unions.join(a, b)
        near[a] |= near[b]
        near[:, a] |= near[:, b]
        near[b] = near[:, b] = near[a, a] = False
        joined[b] = joined[:, b] = joined[a] = joined[:, a] = -np.inf
        alive.remove(b)
        nodes.append(Node(members[a], float(value[a] - own[a])))
        others = np.flatnonzero(near[a])
        if len(others):
            score(np.full(len(others), a), others)
        objective = total + allocation_elbo(s[alive, -1])
        if len(alive) > 1:
            several = max(several, objective)
        else:
            one = objective
        if objective > best:
            best, cut = objective, [members[k] for k in alive]
    return Agglomeration(nodes, cut, float(best - base), float(several - one))
