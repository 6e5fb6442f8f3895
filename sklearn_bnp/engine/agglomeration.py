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
    K, apart = len(s), evidence(s) + entropy
    near = np.ones((K, K), dtype=bool) if neighbours is None else neighbours | neighbours.T
    forest = _Forest(s, apart, near, unions, evidence)
    base = apart.sum() + allocation_elbo(s[:, -1])
    best, cut, nodes, several, one = base, list(forest.members), [], base, -np.inf
    total = apart.sum()
    for _ in range(K - 1):
        pair = forest.best_pair()
        if pair is None:
            break
        total += forest.join(*pair)
        nodes.append(forest.node(pair[0]))
        objective = total + allocation_elbo(forest.s[forest.alive, -1])
        if len(forest.alive) > 1:
            several = max(several, objective)
        else:
            one = objective
        if objective > best:
            best, cut = objective, [forest.members[k] for k in forest.alive]
    return Agglomeration(nodes, cut, float(best - base), float(several - one))


class _Forest:
    """The unions so far, each in the place of its first member, and what joining two of them would lead to.

    Attributes
    ----------
    alive : list of int
        Places of the unions.
    members : list of tuple
        Components of the union at each place.
    s : ndarray, shape (K, P)
        Their statistics.
    """

    def __init__(self, s, value, near, unions, evidence):
        K = len(s)
        self.s, self.alive, self.members = s.copy(), list(range(K)), [(k,) for k in range(K)]
        self._unions, self._evidence = unions, evidence
        self._value, self._apart = value, value.copy()  # of unions, and of their members kept apart
        self._near = near & ~np.eye(K, dtype=bool)
        self._joined = np.full((K, K), -np.inf)  # value of the union of two, in both triangles
        self._score(*np.nonzero(np.triu(self._near)))

    def _score(self, i, j):
        """Find the values of the unions of ``i[m]`` and ``j[m]``."""
        if len(i):
            value = evidence_of_sums(self._evidence, self.s, i, j) + self._unions.of_pairs(i, j)
            self._joined[i, j] = self._joined[j, i] = value

    def best_pair(self):
        """The pair whose union loses least per row of the smaller one; None if no two may be joined."""
        n = self.s[:, -1]
        smaller = np.maximum(np.minimum.outer(n, n), _LEAST_MASS)
        change = (self._joined - np.add.outer(self._value, self._value)) / smaller
        a, b = divmod(int(np.argmax(change)), len(n))
        return None if self._joined[a, b] == -np.inf else (a, b)

    def join(self, a, b):
        """Let union ``b`` become a part of ``a``; the change of their values."""
        change = self._joined[a, b] - self._value[a] - self._value[b]
        self._value[a] = self._joined[a, b]
        self._apart[a] += self._apart[b]
        self.s[a] += self.s[b]
        self.members[a] += self.members[b]
        self.alive.remove(b)
        self._unions.join(a, b)
        near, joined = self._near, self._joined
        near[a] |= near[b]
        near[:, a] |= near[:, b]
        near[b] = near[:, b] = near[a, a] = False
        joined[b] = joined[:, b] = joined[a] = joined[:, a] = -np.inf
        others = np.flatnonzero(near[a])
        self._score(np.full(len(others), a), others)
        return change

    def node(self, a):
        """The union at place ``a`` as a `Node`."""
        return Node(self.members[a], float(self._value[a] - self._apart[a]))
