"""Groupings of components that single components improve by changing their group.

Agglomeration never takes back a union. A component that went early into the wrong group stays there, though
another group would pay more for it. Here components change groups, one at a time, for as long as that
raises the objective. Such an ascent ends at a grouping that no single change improves. Others begin at
changes of the best grouping so far. In turns, one component goes where that loses least, and stays there; or
a few neighbours go to random groups.

Design note
-----------
(a) What a change gains is first estimated for all pairs of a component and a group. The change of the
    evidence is exact. The entropy that a component shares with a group is estimated as the sum of what it
    shares with each member. The few best changes are then computed exactly. If none of them gains, the few
    next ones are.
(b) A change alters the estimates of two groups only, and only these are found anew. An ascent from a
    grouping that differs in few groups therefore costs little.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

# Exact gains are found of so many changes at a time, those of the highest estimates first, until one gains
# or so many times.
_CANDIDATES, _BLOCKS = 6, 2
# Least gain of a change, in nats.
_LEAST_GAIN = 0.1
# Neighbours that go to random groups before an ascent.
_KICKED = 3
# Ascents, beside the first one, for each component.
_ASCENTS_EACH = 1 / 3


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
        ``allocation_elbo(n)`` returns the allocation terms (...) of groups with counts n (..., J), which are
        NaN where there is no group.
    near : ndarray of bool, shape (J, J)
        A component may go where one of its neighbours is, or into a group of its own. Symmetric, and false on
        the diagonal.

    Attributes
    ----------
    evidence_apart : ndarray, shape (J,)
        Evidence of each component by itself.
    touching : ndarray, shape (J, J)
        ``near`` as numbers, one or zero, of which products are fast.
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
        self.touching = near.astype(float)
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
    """

    def __init__(self, parts: Parts, owner: Any) -> None:
        J, self._parts, self.owner = len(parts.s), parts, np.array(owner)
        self._members: list[tuple[int, ...]] = [()] * J
        self._n_members = np.zeros(J, dtype=np.intp)
        self._s, self._n = np.zeros_like(parts.s), np.empty(J)  # counts are NaN without members
        self._evidence, self._entropy = np.zeros(J), np.zeros(J)
        # for estimates: entropies that components share with groups, numbers of neighbours in groups, and
        # evidence that a component adds to a group that it enters, or to its own by leaving
        self._shared, self._touches = np.zeros((J, J)), np.zeros((J, J))
        self._entering, self._leaving = np.full((J, J), -np.inf), np.zeros(J)
        self._find_anew(np.arange(J))

    @property
    def objective(self) -> float:
        """Objective of the grouping, in nats."""
        allocation = self._parts.allocation_elbo(self._n)
        return float(self._evidence.sum() + self._entropy.sum() + allocation)

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """Indices of the components of each group, a list of tuples."""
        return [members for members in self._members if members]

    def changed_to(self, owner: Any) -> Grouping:
        """Another grouping of the same components, which need not be estimated anew where it is the same."""
        other = copy(self)
        for name, value in vars(self).items():
            if name != "_parts":
                setattr(other, name, value.copy())
        moved = np.flatnonzero(owner != self.owner)
        other.owner[:] = owner
        if len(moved):
            other._find_anew(np.union1d(self.owner[moved], owner[moved]))
        return other

    def ascend(self, held: int | None = None) -> Grouping:
        """Make changes until none gains, and return this grouping.

        The component ``held`` stays where it is.
        """
        for _ in range(len(self.owner) ** 2):  # far more than are ever made
            estimates = self.estimates()
            if held is not None:
                estimates[held] = -np.inf
            change = self._best_change(*_highest(estimates, _CANDIDATES * _BLOCKS))
            if change is None:
                break
            self._move(*change)
        return self

    def _best_change(self, components, groups):
        """Component and group of a change that gains; None if none of these does.

        Changes are looked at a few at a time, those of the highest estimates first. The best of the first few
        of which one gains is returned.
        """
        for first in range(0, len(components), _CANDIDATES):
            some = slice(first, first + _CANDIDATES)
            gains = self._gains(components[some], groups[some])
            best = int(np.argmax(gains))
            if gains[best] > _LEAST_GAIN:
                return components[first + best], groups[first + best]
        return None

    def _move(self, j, g):
        """Let component ``j`` go into group ``g``."""
        changed = np.array([g, self.owner[j]])
        self.owner[j] = g
        self._find_anew(changed)

    def _find_anew(self, groups):
        """Find all terms and estimates that concern groups of which the members have changed."""
        parts, member = self._parts, self.owner[:, np.newaxis] == groups
        own, self._n_members[groups] = member.astype(float), member.sum(axis=0)
        members = [tuple(np.flatnonzero(column).tolist()) for column in member.T]
        for g, column in zip(groups.tolist(), members, strict=True):
            self._members[g] = column
        self._s[groups] = parts.sums(members)
        self._evidence[groups], self._entropy[groups] = parts.terms(members)
        self._n[groups] = np.where(self._n_members[groups] > 0, self._s[groups, -1], np.nan)
        self._shared[:, groups] = parts.shared @ own
        self._touches[:, groups] = parts.touching @ own
        components, column = np.nonzero(self._touches[:, groups])
        self._estimate_entries(components, groups[column])
        self._estimate_exits(np.flatnonzero(member.any(axis=1)))

    def _estimate_entries(self, components, groups):
        """Find what each component would add to the evidence of a group by entering it."""
        sums = self._s[groups] + self._parts.s[components]
        self._entering[components, groups] = self._parts.evidence(sums) - self._evidence[groups]

    def _estimate_exits(self, components):
        """Find what the evidence of each component's group would gain if the component left."""
        owner, left = self.owner[components], -self._evidence[self.owner[components]]
        several = self._n_members[owner] > 1
        rest = self._s[owner[several]] - self._parts.s[components[several]]
        np.maximum(rest[:, -1], 0.0, out=rest[:, -1])
        left[several] += self._parts.evidence(rest)
        self._leaving[components] = left

    def estimates(self) -> Any:
        """Estimated gains (J, J), in nats, if a component goes into a group; -inf where it may not go."""
        every = np.arange(len(self.owner))
        gain = np.where(self._touches > 0, self._entering - self._shared, -np.inf)
        empty = int(np.argmin(self._n_members))
        if self._n_members[empty] == 0:
            several = self._n_members[self.owner] > 1
            gain[several, empty] = self._parts.evidence_apart[several]
        gain += (self._leaving + self._shared[every, self.owner])[:, np.newaxis]
        gain[every, self.owner] = -np.inf
        return gain

    def _gains(self, components, groups):
        """Exact gains in nats, shape (M,), of M changes, each as if it were made alone.

        In change m, component ``components[m]`` goes into group ``groups[m]``.
        """
        owner, members, own = self.owner[components], self._members, self._parts.s[components, -1]
        moves = list(zip(components.tolist(), groups.tolist(), owner.tolist(), strict=True))
        joined = [tuple(sorted((*members[g], j))) for j, g, _ in moves]
        left = [tuple(i for i in members[k] if i != j) for j, _, k in moves]
        gains = np.add(*self._parts.terms(joined + left)).reshape(2, -1).sum(axis=0)
        gains -= (self._evidence + self._entropy)[np.stack([owner, groups])].sum(axis=0)
        n, each = np.tile(self._n, (len(moves) + 1, 1)), np.arange(len(moves))
        n[each, groups] = np.where(self._n_members[groups] > 0, n[each, groups], 0.0) + own
        rest = np.maximum(n[each, owner] - own, 0.0)
        n[each, owner] = np.where(self._n_members[owner] > 1, rest, np.nan)
        allocation = self._parts.allocation_elbo(n)  # the last one is that of no change
        return gains + (allocation[:-1] - allocation[-1])


def _highest(estimates, n):
    """Rows and columns of the highest finite entries, best first; ``n`` of them at the most."""
    flat = estimates.ravel()
    best = np.flatnonzero(flat > -np.inf)  # few of them: most components are no neighbours
    if n < len(best):  # sorting all would take longer
        finite = flat[best]
        best = best[finite >= np.partition(finite, -n)[-n]]
    best = best[np.argsort(-flat[best], kind="stable")[:n]]
    return np.stack(np.divmod(best, estimates.shape[1]))


def best_grouping(parts: Parts, groups: Any, n_more: int, rng: Any) -> list[tuple[int, ...]]:
    """The grouping with the highest objective that several ascents have reached.

    Parameters
    ----------
    parts : Parts
    groups : list of tuple of int
        Where the first ascent begins: groups of indices; each index is in one of them.
    n_more : int
        Ascents that begin at changes of the best grouping so far, at the least; more if components are many.
    rng : numpy.random.RandomState

    Returns
    -------
    groups : list of tuple of int
    """
    owner = np.empty(len(parts.s), dtype=np.intp)
    for g, members in enumerate(groups):
        owner[list(members)] = g
    best = Grouping(parts, owner).ascend()
    estimates = best.estimates()
    for i in range(max(n_more, int(_ASCENTS_EACH * len(owner)))):
        owner, held = best.owner.copy(), None
        if i % 2 == 0:
            for held, g in _highest(estimates, 1).T:  # none if all changes were made before
                estimates[held, g] = -np.inf
                owner[held] = g
        else:
            _kick(owner, parts.near, rng)
        other = best.changed_to(owner).ascend(held)
        if other.objective > best.objective + _LEAST_GAIN:
            best, estimates = other, other.estimates()
    return best.groups


def _kick(owner, near, rng):
    """Change the groups of a component and of some neighbours, to neighbours' groups or to new ones."""
    j = rng.randint(len(owner))
    for k in [j, *rng.permutation(np.flatnonzero(near[j]))[: _KICKED - 1].tolist()]:
        empty = np.flatnonzero(np.bincount(owner, minlength=len(owner)) == 0)[:1]
        groups = np.append(owner[near[k]], empty)
        if len(groups):
            owner[k] = groups[rng.randint(len(groups))]
