"""Compression (Alg. 3.2): which items become one clump, and which documents become one group.

Design note
-----------
(a) Each item first goes to its likeliest topic. The items of each topic are then halved again and again, the
    best halves first, as long as the result fits in the memory bound (26). Halves are judged as if the
    data still to come were like those seen so far (30); otherwise memory would be spent on stray rows.
(b) At a fixed cost of alpha, the value of a set of items does not depend on other sets (`model`, note (b)).
    The gain of halving a set is therefore computed once, when the set is made, and waits in a heap.
(c) A set that takes less memory as single rows is kept as single rows, without any loss.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from .halves import ItemSubset, Rules, Summary, halve, whole
from .items import Kept, items_by_topic, memory_cost
from .model import alpha_cost

# Cosines that are held at a time.
_COSINES = 4_000_000


class Leaf(NamedTuple):
    """Items that may become a clump.

    Attributes
    ----------
    which : ndarray of int
        Numbers of the items, ascending.
    summary : Summary
        Of all these items as one set.
    cost : int
        Numbers to keep.
    single : bool
        Whether they are kept as single rows.
    """

    which: np.ndarray
    summary: Summary
    cost: int
    single: bool


class Tree:
    """Disjoint sets of items, the leaves, and the gains of halving them.

    Parameters
    ----------
    items : Items
    rules : Rules
    """

    def __init__(self, items, rules):
        self.items, self.rules = items, rules
        self.leaves, self._heap, self._born = {}, [], 0

    @property
    def cost(self):
        return sum(leaf.cost for leaf in self.leaves.values())

    def leaf(self, which, summary):
        """`Leaf` of the items ``which``."""
        likelihood, C = self.rules.likelihood, self.items.n_clumps
        clump = memory_cost(1, 0, likelihood.n_statistics, len(self.items.sizes))
        singles = len(which) * likelihood.n_features
        single = bool(which[0] >= C) and (singles <= clump or len(which) == 1)
        return Leaf(which, summary, singles if single else clump, single)

    def grow(self, leaf, part):
        """Add a leaf, whose `ItemSubset` is ``part``, and queue its halves, if it has any."""
        self.leaves[self._born] = leaf
        halves = None if leaf.single else halve(part, self.rules, leaf.summary, hard=True)
        if halves is not None:
            gain = float(halves.summary.value.sum() - leaf.summary.value[0])
            heapq.heappush(self._heap, (-gain, self._born, halves))
        self._born += 1

    def plant(self, which, alpha):
        """Add a first leaf of the items ``which``, whose topic has the prior weight ``alpha``."""
        part = ItemSubset(self.items, which, self.rules.likelihood)
        self.grow(self.leaf(which, whole(part, self.rules, alpha)), part)

    def spread(self, memory_bound):
        """Halve leaves, the best first, while all of them fit in the bound."""
        cost = self.cost
        while self._heap:
            _, number, halves = heapq.heappop(self._heap)
            which = self.leaves[number].which
            sides = [which[halves.first > 0.5], which[halves.first <= 0.5]]
            leaves = [self.leaf(own, halves.summary.one(j)) for j, own in enumerate(sides)]
            change = sum(leaf.cost for leaf in leaves) - self.leaves[number].cost
            if cost + change > memory_bound:
                continue
            cost += change
            del self.leaves[number]
            for leaf in leaves:
                self.grow(leaf, ItemSubset(self.items, leaf.which, self.rules.likelihood))


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
    tree = Tree(items, rules)
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
    return Kept(s, counts, items.z, owner, items.sizes, group_of_document)


def kept_of_leaves(items, leaves, group_of_document):
    """`Kept` with a clump for each leaf, or its single rows; a copy, so that other rows can be freed."""
    C = items.n_clumps
    singles = [leaf.which for leaf in leaves if leaf.single]
    singles = np.concatenate([np.empty(0, dtype=np.intp), *singles]).astype(np.intp)
    owner = items.shares[singles].indices.astype(np.int32)
    order = np.lexsort((singles, owner))
    clumps = [leaf.summary for leaf in leaves if not leaf.single]
    P, S = items.means.shape[1], len(items.sizes)
    s = np.concatenate([np.empty((0, P)), *(summary.s for summary in clumps)])
    counts = np.concatenate([np.empty((0, S)), *(summary.counts for summary in clumps)])
    z = items.z[singles[order] - C]
    return Kept(s, counts, z, owner[order], items.sizes, group_of_document)


# ---------------------------------------------------------------------- groups of documents


def grouping(topics, sizes, n_groups):
    """New group (S,) of each document group, so that at most ``n_groups`` are left.

    The two groups whose expected topic shares are most alike (27) are joined, again and again.
    """
    S = len(sizes)
    group = np.arange(S)
    if n_groups is None or n_groups >= S:
        return group
    counts, sizes = topics.counts.T.copy(), sizes.copy()
    zeta = counts / sizes[:, np.newaxis] + topics.alpha
    unit = zeta / np.linalg.norm(zeta, axis=1, keepdims=True)  # 0 for groups that were joined
    best, partner = np.empty(S), np.empty(S, dtype=np.intp)  # cosine with the most similar group
    stale = np.zeros(S, dtype=bool)  # the partner has changed, and the cosine may be less now

    def look(rows):
        cosine = unit[rows] @ unit.T
        cosine[np.arange(len(rows)), rows] = -np.inf
        partner[rows] = cosine.argmax(axis=1)
        best[rows] = cosine.max(axis=1)
        stale[rows] = False

    for rows in np.array_split(np.arange(S), -(-S * S // _COSINES)):
        look(rows)
    for _ in range(S - n_groups):
        while stale[i := int(np.argmax(best))]:
            look(np.array([i]))
        i, j = sorted((i, int(partner[i])))
        counts[i] += counts[j]
        sizes[i] += sizes[j]
        group[group == j] = i
        zeta = counts[i] / sizes[i] + topics.alpha
        unit[i], unit[j], best[j] = zeta / np.linalg.norm(zeta), 0.0, -np.inf
        stale |= (partner == i) | (partner == j)
        look(np.array([i]))
        cosine = unit @ unit[i]
        closer = np.flatnonzero((cosine > best) & np.isfinite(best))
        closer = closer[closer != i]
        best[closer], partner[closer], stale[closer] = cosine[closer], i, False
    return np.unique(group, return_inverse=True)[1]


def joined_groups(topics, items, group):
    """Topics and items whose document groups are joined: group s becomes ``group[s]``."""
    S = group.max() + 1
    if len(group) == S:
        return topics, items
    join = csr_array((np.ones(len(group)), (np.arange(len(group)), group)), shape=(len(group), S))
    sizes = np.bincount(group, items.sizes, minlength=S)
    shares = csr_array(items.shares @ join)
    shares.sort_indices()
    return topics._replace(counts=topics.counts @ join), items._replace(shares=shares, sizes=sizes)
