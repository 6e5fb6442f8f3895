"""Compression (Alg. 3.2): which items become one clump, and which documents become one group.

Design note
-----------
(a) Each item first goes to its likeliest topic. The items of each topic are then halved again and again, the
    best halves first, as long as the result fits in the memory bound (26). Halves are judged as if the
    data still to come were like those seen so far (30); otherwise memory would be spent on stray rows.
(b) At a fixed cost of alpha, the value of a set of items does not depend on other sets (`model`, note (b)).
    The gain of halving a set is therefore computed once, when the set is made, and waits in a heap.
(c) Most sets are described as well by one topic as by two, however many rows are still to come. The halves of
    greatest gain would then be one stray row and all others, and no room would be left for other
    clumps. Such a set waits behind those that gain, by the nats that the bound loses if all its items
    share one q(z) under the present topics; it is cut where two q(z) lose least (`halves.Tie`). Its parts
    are not tried as topics again.
(d) A set that takes less memory as single rows is kept as single rows, without any loss.
(e) Document groups are joined by what the bound loses at the present responsibilities. That is never less
    than 0, since the log normaliser of the Dirichlet distribution is convex.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln

from .halves import ItemSubset, Rules, Tie, halve, whole
from .items import Kept, items_by_topic, memory_cost
from .local import log_weights
from .model import alpha_cost

# Statistics of items that wait in the tree, all together.
_HELD_NUMBERS = 20_000_000
# Nats a row that count beside those lost: among sets that lose nothing, the one of most rows comes first.
_SPREAD = 0.01
# Of more document groups than this, only so many that are near are looked at for a join.
_NEAR = 100


class Leaf(NamedTuple):
    """Items that may become a clump.

    Attributes
    ----------
    which : ndarray of int
        Numbers of the items, ascending.
    s : ndarray, shape (1, P)
        Their summed statistics.
    counts : ndarray, shape (1, S)
        Their rows in each document group.
    cost : int
        Numbers to keep.
    single : bool
        Whether they are kept as single rows.
    """

    which: np.ndarray
    s: np.ndarray
    counts: np.ndarray
    cost: int
    single: bool


class Tree:
    """Disjoint sets of items, the leaves, and what halving them gains; see notes (b) and (c).

    Parameters
    ----------
    items : Items
    rules : Rules
    tie : Tie
    """

    def __init__(self, items, rules, tie):
        self.items, self.rules, self.tie = items, rules, tie
        self.leaves, self._heap, self._born = {}, [], 0
        self._values = np.empty(len(items.n))
        # Statistics of leaves are held while they wait, unless those of all items would fill the memory.
        self._holds = items.n.size * rules.likelihood.n_statistics <= _HELD_NUMBERS

    @property
    def cost(self):
        return sum(leaf.cost for leaf in self.leaves.values())

    def leaf(self, which, s, counts):
        """`Leaf` of the items ``which``."""
        likelihood, C = self.rules.likelihood, self.items.n_clumps
        clump = memory_cost(1, 0, likelihood.n_statistics, len(self.items.sizes))
        singles = len(which) * likelihood.n_features
        single = bool(which[0] >= C) and (singles <= clump or len(which) == 1)
        return Leaf(which, s, counts, singles if single else clump, single)

    def plant(self, which, alpha):
        """Add a first leaf of the items ``which``, whose topic has the prior weight ``alpha``."""
        part = ItemSubset(self.items, which, self.rules.likelihood)
        one = whole(part, self.rules, alpha)
        self._values[which] = self.tie.values(part)
        self._grow(self.leaf(which, one.s, one.counts), part, one)

    def _grow(self, leaf, part, one):
        """Add a leaf and queue it; ``one`` is its `Summary`, or None if it need not be tried as topics."""
        self.leaves[self._born] = leaf
        if not leaf.single and len(leaf.which) > 1:
            halves = None if one is None else halve(part, self.rules, one, hard=True)
            gain = 0.0 if halves is None else halves.summary.value.sum() - one.value[0]
            kind, value = (0, gain) if gain > 0 else (1, self._loss(leaf, part))
            entry = (kind, -value, self._born, halves if gain > 0 else None)
            heapq.heappush(self._heap, (*entry, part if self._holds else None))
        self._born += 1

    def _loss(self, leaf, part):
        """Nats that the tie of a leaf's items loses, plus a share of its rows."""
        shared = self.tie.shared(leaf.s, leaf.counts)[1][0]
        n = part.n.sum()
        return part.n @ self._values[leaf.which] - n * shared + _SPREAD * n

    def spread(self, memory_bound):
        """Halve leaves, the best first, while all of them fit in the bound."""
        cost = self.cost
        while self._heap:
            _, _, number, halves, part = heapq.heappop(self._heap)
            old = self.leaves[number]
            if part is None:
                part = ItemSubset(self.items, old.which, self.rules.likelihood)
            sides = self._sides(old, part, halves)
            change = sum(leaf.cost for leaf, _, _ in sides) - old.cost
            if sides and cost + change <= memory_bound:
                cost += change
                del self.leaves[number]
                for side in sides:
                    self._grow(*side)

    def _sides(self, leaf, part, halves):
        """Arguments of `_grow` for both halves of a leaf; none if it cannot be cut."""
        if halves is not None:
            side, (s, counts) = halves.first > 0.5, halves.summary[:2]
        else:
            cut = self.tie.cut(part, leaf.s[0], self.rules.prior)
            if cut is None:
                return []
            side, (s, counts) = cut
        out = []
        for j, chosen in enumerate((side, ~side)):
            own, one = part.where(chosen), None if halves is None else halves.summary.one(j)
            out.append((self.leaf(own.which, s[j : j + 1], counts[j : j + 1]), own, one))
        return out


def compress(settings, topics, items, labels, memory_bound, scale):
    """List of `Leaf`: all items, divided so that they fit in the bound.

    Parameters
    ----------
    labels : ndarray of int, shape (n_items,)
        Topic of each item.
    memory_bound : int
        Greatest cost (26); it has room for one clump per topic at least.
    scale : Scale
        Of (23)-(25).
    """
    cost = alpha_cost(
        items.lengths, items.sizes, topics.alpha.sum(), settings.rate, scale.documents
    )
    rules = Rules(settings.likelihood, topics.prior, items.sizes, settings.shape, cost, scale)
    tree = Tree(items, rules, Tie(*log_weights(settings, topics, items.sizes)))
    for which, alpha in zip(items_by_topic(labels, len(topics.s)), topics.alpha, strict=True):
        if len(which):
            tree.plant(which, alpha)
    tree.spread(memory_bound)
    return list(tree.leaves.values())


def fits(items, memory_bound, n_statistics):
    """Whether all items fit in the bound as they are."""
    cost = memory_cost(items.n_clumps, items.z.size, n_statistics, len(items.sizes))
    return memory_bound is None or cost <= memory_bound


def kept_as_they_are(items, group_of_document):
    """`Kept` with every item as it is."""
    C = items.n_clumps
    n = items.n[:C, np.newaxis]
    owner = items.shares[C:].indices.astype(np.int32)
    s, counts = items.means[:C] * n, items.shares[:C].toarray() * n
    own = items.distinct[:C]
    sizes = items.sizes, group_of_document, items.distinct_sizes
    return Kept(s, counts, own, items.z, items.n[C:], owner, *sizes)


def kept_of_leaves(items, leaves, group_of_document):
    """`Kept` with a clump for each leaf, or its single rows; a copy, so that other rows can be freed."""
    C = items.n_clumps
    singles = [leaf.which for leaf in leaves if leaf.single]
    singles = np.concatenate([np.empty(0, dtype=np.intp), *singles]).astype(np.intp)
    owner = items.shares[singles].indices.astype(np.int32)
    order = np.lexsort((singles, owner))
    clumps = [leaf for leaf in leaves if not leaf.single]
    P, S = items.means.shape[1], len(items.sizes)
    s = np.concatenate([np.empty((0, P)), *(leaf.s for leaf in clumps)])
    counts = np.concatenate([np.empty((0, S)), *(leaf.counts for leaf in clumps)])
    singles = singles[order]
    z, weight = items.z[singles - C], items.n[singles]
    distinct = np.array([items.distinct[leaf.which].sum() for leaf in clumps])
    sizes = items.sizes, group_of_document, items.distinct_sizes
    return Kept(s, counts, distinct, z, weight, owner[order], *sizes)


# ---------------------------------------------------------------------- groups of documents


def grouping(topics, sizes, n_groups):
    """New group (S,) of each document group, so that at most ``n_groups`` are left.

    The two groups whose join lowers the bound least are joined, again and again.
    """
    S = len(sizes)
    if n_groups >= S:
        return np.arange(S)
    joins = _Joins(topics, sizes)
    for _ in range(S - n_groups):
        joins.join()
    return np.unique(joins.group, return_inverse=True)[1]


class _Joins:
    """Document groups, and the best join of each; see note (e).

    Attributes
    ----------
    group : ndarray of int, shape (S,)
        The group that each document group is in by now.
    """

    def __init__(self, topics, sizes):
        S = len(sizes)
        self.alpha, self.group = topics.alpha, np.arange(S)
        self.sizes, self.counts = sizes.astype(float), topics.counts.T.copy()
        self.value = self._values(self.counts, self.sizes)
        self.there = np.ones(S, dtype=bool)
        self.places = _places(self.counts, self.sizes, self.alpha)
        # Loss of the best join of each group, and with which; the partner may be joined by now if stale.
        self.least, self.partner = np.full(S, np.inf), np.zeros(S, dtype=np.intp)
        self.stale = np.zeros(S, dtype=bool)
        for s in range(S):
            self._look(s)

    def _values(self, counts, sizes):
        """Terms of the bound (n,) that depend on the counts (n, K) of groups of these sizes (n,)."""
        mean = counts / sizes[:, np.newaxis]
        each = gammaln(mean + self.alpha).sum(axis=1) - gammaln(mean.sum(axis=1) + self.alpha.sum())
        return sizes * each

    def _losses(self, s, others):
        """Loss of the bound, in nats, by joining group s with each of the ``others``."""
        joined = self._values(
            self.counts[others] + self.counts[s], self.sizes[others] + self.sizes[s]
        )
        return self.value[others] + self.value[s] - joined

    def _near(self, s):
        """Groups with which a join is worth to be worked out."""
        others = np.flatnonzero(self.there)
        others = others[others != s]
        if len(others) <= _NEAR:
            return others
        apart = ((self.places[others] - self.places[s]) ** 2).sum(axis=1)
        apart *= self.sizes[others] / (self.sizes[others] + self.sizes[s])
        return others[np.argpartition(apart, _NEAR)[:_NEAR]]

    def _look(self, s):
        """Find the best join of group s, and tell others of it for which it is their best."""
        others = self._near(s)
        self.stale[s] = False
        if not len(others):
            self.least[s] = np.inf
            return
        loss = self._losses(s, others)
        best = int(loss.argmin())
        self.least[s], self.partner[s] = loss[best], others[best]
        less = loss < self.least[others]
        closer = others[less]
        self.least[closer], self.partner[closer], self.stale[closer] = loss[less], s, False

    def join(self):
        """Join the two groups that lose least by it."""
        while self.stale[s := int(np.argmin(self.least))]:
            self._look(s)
        s, t = sorted((s, int(self.partner[s])))
        self.counts[s] += self.counts[t]
        self.sizes[s] += self.sizes[t]
        both = slice(s, s + 1)
        self.value[both] = self._values(self.counts[both], self.sizes[both])
        self.places[both] = _places(self.counts[both], self.sizes[both], self.alpha)
        self.group[self.group == t] = s
        self.there[t], self.least[t] = False, np.inf
        self.stale |= self.there & ((self.partner == s) | (self.partner == t))
        self._look(s)


def _places(counts, sizes, alpha):
    """Points (n, K) whose squared distances are, to second order, about those that `_Joins` works out.

    The second derivative of lnG is about ``1 / zeta``, so that twice the root of zeta has a constant one.
    """
    return 2.0 * np.sqrt(counts / sizes[:, np.newaxis] + alpha)


def joined_groups(topics, items, group):
    """Topics and items whose document groups are joined: group s becomes ``group[s]``."""
    S = group.max() + 1
    if len(group) == S:
        return topics, items
    join = csr_array((np.ones(len(group)), (np.arange(len(group)), group)), shape=(len(group), S))
    sizes = {name: getattr(items, name) @ join for name in ("sizes", "distinct_sizes")}
    shares = csr_array(items.shares @ join)
    shares.sort_indices()
    return topics._replace(counts=topics.counts @ join), items._replace(shares=shares, **sizes)
