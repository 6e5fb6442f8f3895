"""Compression (Alg. 3.2): which items become one clump, and which documents one group.

Design note
-----------
(a) Items are first divided by topic, each given wholly to its likeliest one, and the parts are then
    halved, the best halves first, as long as what is kept stays within the bound (26). Halves are judged as
    if the data to come were like those that were seen (30): otherwise memory goes to stray rows.
(b) The value of a part does not depend on the others at a fixed cost of alpha (`objective`, note (b)): what
    two halves gain is worked out once, when the part comes to be, and waits in a heap.
(c) A part that costs less as single rows is kept as these, without any loss.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from .halves import ItemSubset, Rules, halve, whole
from .objective import price
from .state import Kept, memory_cost

# Numbers of a table of cosines at a time.
_COSINES = 4_000_000


class Leaf(NamedTuple):
    """Items that may become a clump.

    Attributes
    ----------
    which : ndarray of int
        Numbers of the items, ascending.
    summary : Summary
        Of all of them as one.
    cost : int
        Numbers to keep.
    single : bool
        Whether they are to be kept as single rows.
    """

    which: np.ndarray
    summary: object
    cost: int
    single: bool


class Tree:
    """Parts of the items and the gains of halving them.

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
        """`Leaf` of some items."""
        likelihood, C = self.rules.likelihood, self.items.n_clumps
        clump = memory_cost(1, 0, likelihood.n_statistics, len(self.items.sizes))
        singles = len(which) * likelihood.n_features
        single = bool(which[0] >= C) and (singles <= clump or len(which) == 1)
        return Leaf(which, summary, singles if single else clump, single)

    def grow(self, leaf, part):
        """Take in a leaf, and put its halves, if it has any, in their place in the queue."""
        self.leaves[self._born] = leaf
        halves = None if leaf.single else halve(part, self.rules, leaf.summary, hard=True)
        if halves is not None:
            value = halves.summary.value
            gain = float(value.sum() - leaf.summary.value[0])
            heapq.heappush(self._heap, (-gain, self._born, halves))
        self._born += 1

    def plant(self, which, alpha):
        """A first leaf of some items."""
        part = ItemSubset(self.items, which, self.rules.likelihood)
        self.grow(self.leaf(which, whole(part, self.rules, alpha)), part)

    def spread(self, memory_bound):
        """Halve leaves, the best first, while all fit in the bound."""
        cost = self.cost
        while self._heap:
            _, number, halves = heapq.heappop(self._heap)
            which = self.leaves[number].which
            sides = [which[halves.first > 0.5], which[halves.first <= 0.5]]
            leaves = [self.leaf(own, _one_of(halves.summary, j)) for j, own in enumerate(sides)]
            change = sum(leaf.cost for leaf in leaves) - self.leaves[number].cost
            if cost + change > memory_bound:
                continue
            cost += change
            del self.leaves[number]
            for leaf in leaves:
                part = ItemSubset(self.items, leaf.which, self.rules.likelihood)
                self.grow(leaf, part)


def _one_of(summary, j):
    return type(summary)(*(field[j : j + 1] for field in summary))


def compress(settings, topics, items, labels, memory_bound, scale):
    """Parts of the items, a list of `Leaf`, that fit in the bound, which has room for one for each topic.

    Parameters
    ----------
    labels : ndarray of int, shape (n_items,)
        Topic of each item.
    memory_bound : int
        What (26) may come to.
    scale : Scale
        Of (23)-(25).
    """
    cost = price(items.lengths, items.sizes, topics.alpha.sum(), settings.rate, scale.documents)
    rules = Rules(settings.likelihood, topics.prior, items.sizes, settings.shape, cost, scale)
    tree = Tree(items, rules)
    order = np.argsort(labels, kind="stable")
    edges = np.searchsorted(labels[order], np.arange(len(topics.s) + 1))
    for k in range(len(topics.s)):
        which = np.sort(order[edges[k] : edges[k + 1]])
        if len(which):
            tree.plant(which, topics.alpha[k])
    tree.spread(memory_bound)
    return list(tree.leaves.values())


def fits(items, memory_bound, n_statistics):
    """Whether all items fit in the bound as they are."""
    cost = memory_cost(items.n_clumps, items.z.size, n_statistics, len(items.sizes))
    return memory_bound is None or cost <= memory_bound


def kept_as_they_are(items, group_of_document):
    """`Kept` of all items, none of which is joined with another."""
    C = items.n_clumps
    n = items.n[:C, np.newaxis]
    return Kept(
        items.means[:C] * n, items.shares[:C].toarray() * n, items.z,
        items.shares[C:].indices.astype(np.int32), items.sizes, group_of_document,
    )  # fmt: skip


def kept_of_leaves(items, leaves, group_of_document):
    """`Kept` of items that have been divided into leaves: nothing of other rows stays in memory."""
    C = items.n_clumps
    singles = [leaf.which for leaf in leaves if leaf.single]
    singles = np.concatenate([np.empty(0, dtype=np.intp), *singles]).astype(np.intp)
    owner = items.shares[singles].indices.astype(np.int32)
    order = np.lexsort((singles, owner))
    clumps = [leaf for leaf in leaves if not leaf.single]
    P, S = items.means.shape[1], len(items.sizes)
    s = np.concatenate([np.empty((0, P)), *(leaf.summary.s for leaf in clumps)])
    counts = np.concatenate([np.empty((0, S)), *(leaf.summary.counts for leaf in clumps)])
    return Kept(
        s, counts, items.z[singles[order] - C], owner[order], items.sizes, group_of_document
    )


# ---------------------------------------------------------------------- groups of documents


def grouping(topics, sizes, n_groups):
    """New group (S,) of each document group, so that there are at most ``n_groups``.

    The two whose expected shares are most alike (27) become one, again and again.
    """
    S = len(sizes)
    group = np.arange(S)
    if n_groups is None or n_groups >= S:
        return group
    counts, sizes = topics.counts.T.copy(), sizes.copy()
    zeta = counts / sizes[:, np.newaxis] + topics.alpha
    unit = zeta / np.linalg.norm(zeta, axis=1, keepdims=True)  # 0 for groups that are no more
    best, partner = np.empty(S), np.empty(S, dtype=np.intp)  # cosine with the most similar group
    stale = np.zeros(S, dtype=bool)  # whose partner has changed: it may be less now

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
    """Topics and items after document groups were joined as ``group`` (S,) says."""
    S = group.max() + 1
    if len(group) == S:
        return topics, items
    join = csr_array((np.ones(len(group)), (np.arange(len(group)), group)), shape=(len(group), S))
    sizes = np.bincount(group, items.sizes, minlength=S)
    shares = csr_array(items.shares @ join)
    shares.sort_indices()
    return topics._replace(counts=topics.counts @ join), items._replace(shares=shares, sizes=sizes)
