"""Groupings of components that single components improve by changing their group.

Agglomeration never takes back a union. A component that went early into the wrong group stays there, though
another group would pay more for it. Here components change groups, one at a time, for as long as that
raises the objective. Such an ascent ends at a grouping that no single change improves. Others begin at
random changes of the best grouping so far.

Design note
-----------
(a) What a change gains is first estimated for all pairs of a component and a group. The change of the
    evidence is exact. The entropy that a component shares with a group is estimated as the sum of what it
    shares with each member. The few best changes are then computed exactly.
(b) A change alters the estimates of two groups only, and only these are found anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Changes of the highest estimated gains, of which the exact gains are found.
_CANDIDATES = 6
# Least gain of a change, in nats.
_LEAST_GAIN = 0.1
# The part of the components that a new ascent begins by changing.
_KICKED = 0.15


class Parts:
    """Components to be grouped, and the terms of the objective.

    Parameters
    ----------
    s : ndarray, shape (J, P)
        Statistics of the components.
    entropy : ndarray, shape (J,)
        Entropies of the components.
    union_entropy : callable
        ``union_entropy(groups)`` returns the entropies (M,) of M unions, each given by a tuple of indices.
    evidence : callable
        ``evidence(s)`` returns the data terms (M,) of statistics (M, P).
    allocation_elbo : callable
        ``allocation_elbo(n)`` returns the allocation term of groups with counts n.
    near : ndarray of bool, shape (J, J)
        A component may go where one of its neighbours is, or into a group of its own. Symmetric, and false on
        the diagonal.

    Attributes
    ----------
    evidence_apart : ndarray, shape (J,)
        Evidence of each component by itself.
    shared : ndarray, shape (J, J)
        Entropy that the union of two neighbours loses; zero for others.
    """

    def __init__(
        self,
        s: Any,
        entropy: Any,
        union_entropy: Any,
        evidence: Any,
        allocation_elbo: Any,
        near: Any,
    ) -> None:
        self.s, self.entropy, self.near = s, entropy, near
        self.evidence, self.union_entropy = evidence, union_entropy
        self.allocation_elbo = allocation_elbo
        self.evidence_apart = evidence(s)
        self._known: dict[tuple[int, ...], tuple[float, float]] = {(): (0.0, 0.0)}
        self.shared = np.zeros(near.shape)
        i, j = np.nonzero(np.triu(near))
        if len(i):
            pairs = list(zip(i.tolist(), j.tolist(), strict=True))
            lost = entropy[i] + entropy[j] - union_entropy(pairs)
            self.shared[i, j] = self.shared[j, i] = lost

    def sums(self, groups: Any) -> Any:
        """Statistics (M, P) of groups, each a tuple of indices."""
        return np.array([self.s[list(group)].sum(axis=0) for group in groups])

    def terms(self, groups: Any) -> tuple[Any, Any]:
        """Evidence (M,) and entropies (M,) of groups; zero where a group is empty.

        Ascents meet the same groups again and again, so that what was found once is kept.
        """
        new = [group for group in dict.fromkeys(groups) if group not in self._known]
        if new:
            found = zip(self.evidence(self.sums(new)), self.union_entropy(new), strict=True)
            self._known.update(zip(new, found, strict=True))
        evidence, entropy = np.array([self._known[group] for group in groups]).T
        return evidence, entropy


class Grouping:
    """A grouping of components, with estimates of what each change would gain.

    Parameters
    ----------
    parts : Parts
    owner : ndarray of int, shape (J,)
        The group of each component, less than J.

    Attributes
    ----------
    owner : ndarray of int, shape (J,)
        The group of each component, after all changes.
    objective : float
        Objective of the grouping, in nats.
    """

    def __init__(self, parts: Parts, owner: Any) -> None:
        J, owner = len(parts.s), np.array(owner)
        member = owner[:, np.newaxis] == np.arange(J)
        self._parts, self.owner = parts, owner
        self._n_members = member.sum(axis=0)
        groups = [self._members(g) for g in range(J)]
        self._s = parts.sums(groups)
        self._evidence, self._entropy = parts.terms(groups)
        self._allocation = self._allocation_of(self._s)
        # for estimates: entropies that components share with groups, numbers of neighbours in groups, and
        # evidence that a component adds to a group that it enters, or to its own by leaving
        self._shared = parts.shared @ member
        self._touches = parts.near.astype(np.intp) @ member
        self._entering, self._leaving = np.full((J, J), -np.inf), np.zeros(J)
        self._estimate_entries(*np.nonzero(self._touches))
        self._estimate_exits(np.arange(J))

    @property
    def objective(self) -> float:
        return float(self._evidence.sum() + self._entropy.sum() + self._allocation)

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """Indices of the components of each group, a list of tuples."""
        return [self._members(g) for g in np.flatnonzero(self._n_members)]

    def ascend(self) -> Grouping:
        """Make changes until none gains, and return this grouping."""
        for _ in range(len(self.owner) ** 2):  # far more than are ever made
            components, groups = self._candidates()
            if not len(components):
                break
            gains = self._gains(components, groups)
            best = int(np.argmax(gains))
            if gains[best] <= _LEAST_GAIN:
                break
            self._move(components[best], groups[best])
        return self

    def _members(self, g):
        return tuple(np.flatnonzero(self.owner == g).tolist())

    def _allocation_of(self, s):
        return self._parts.allocation_elbo(s[self._n_members > 0, -1])

    def _estimate_entries(self, components, groups):
        """Find anew what components add to the evidence of groups with members."""
        sums = self._s[groups] + self._parts.s[components]
        self._entering[components, groups] = self._parts.evidence(sums) - self._evidence[groups]

    def _estimate_exits(self, components):
        """Find anew what is left of the evidence of components' groups without them."""
        owner, left = self.owner[components], -self._evidence[self.owner[components]]
        several = self._n_members[owner] > 1
        rest = self._s[owner[several]] - self._parts.s[components[several]]
        np.maximum(rest[:, -1], 0.0, out=rest[:, -1])
        left[several] += self._parts.evidence(rest)
        self._leaving[components] = left

    def _candidates(self):
        """Components and groups of the changes with the highest estimated gains."""
        every = np.arange(len(self.owner))
        gain = np.where(self._touches > 0, self._entering - self._shared, -np.inf)
        empty = int(np.argmin(self._n_members))
        if self._n_members[empty] == 0:
            several = self._n_members[self.owner] > 1
            gain[:, empty] = np.where(several, self._parts.evidence_apart, -np.inf)
        gain += (self._leaving + self._shared[every, self.owner])[:, np.newaxis]
        gain[every, self.owner] = -np.inf
        best = np.argsort(-gain, axis=None, kind="stable")[:_CANDIDATES]
        best = best[gain.ravel()[best] > -np.inf]
        return np.unravel_index(best, gain.shape)

    def _gains(self, components, groups):
        """What it gains, in nats, if each of these components goes into its group: exact."""
        owner, moves = self.owner[components], list(zip(components, groups, strict=True))
        joined = [tuple(sorted((*self._members(g), j))) for j, g in moves]
        left = [tuple(i for i in self._members(self.owner[j]) if i != j) for j, _ in moves]
        gains = np.add(*self._parts.terms(joined + left)).reshape(2, -1).sum(axis=0)
        gains -= (self._evidence + self._entropy)[np.stack([owner, groups])].sum(axis=0)
        for m, (j, g) in enumerate(moves):
            n, used = self._s[:, -1].copy(), self._n_members > 0
            n[g] += self._parts.s[j, -1]
            n[owner[m]] = max(n[owner[m]] - self._parts.s[j, -1], 0.0)
            used[g], used[owner[m]] = True, bool(left[m])
            gains[m] += self._parts.allocation_elbo(n[used]) - self._allocation
        return gains

    def _move(self, j, g):
        """Let component ``j`` go into group ``g``."""
        parts, pair = self._parts, np.array([g, self.owner[j]])
        self.owner[j] = g
        for change, group in zip((1, -1), pair, strict=True):
            self._n_members[group] += change
            self._shared[:, group] += change * parts.shared[:, j]
            self._touches[:, group] += change * parts.near[:, j]
        members = [self._members(group) for group in pair]
        self._s[pair] = parts.sums(members)
        self._evidence[pair], self._entropy[pair] = parts.terms(members)
        self._allocation = self._allocation_of(self._s)
        components, column = np.nonzero(self._touches[:, pair])
        self._estimate_entries(components, pair[column])
        self._estimate_exits(np.flatnonzero((self.owner == pair[0]) | (self.owner == pair[1])))


def best_grouping(parts, groups, n_more, rng):
    """The grouping with the highest objective that several ascents have reached.

    Parameters
    ----------
    parts : Parts
    groups : list of tuple of int
        Where the first ascent begins: groups of indices; each index is in one of them.
    n_more : int
        Ascents that begin at random changes of the best grouping so far.
    rng : numpy.random.RandomState

    Returns
    -------
    groups : list of tuple of int
    """
    owner = np.empty(len(parts.s), dtype=np.intp)
    for g, members in enumerate(groups):
        owner[list(members)] = g
    best = Grouping(parts, owner).ascend()
    for _ in range(n_more):
        other = Grouping(parts, _kicked(best.owner, parts.near, rng)).ascend()
        if other.objective > best.objective + _LEAST_GAIN:
            best = other
    return best.groups


def _kicked(owner, near, rng):
    """Groups of components, of which some have gone to a random neighbour's group, or to one of their own."""
    owner = owner.copy()
    for j in np.flatnonzero(rng.random_sample(len(owner)) < _KICKED):
        empty = np.setdiff1d(np.arange(len(owner)), owner)[:1]
        groups = np.append(owner[near[j]], empty)
        if len(groups):
            owner[j] = groups[rng.randint(len(groups))]
    return owner
