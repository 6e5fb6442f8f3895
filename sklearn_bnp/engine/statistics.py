"""Additive statistics of the components of a model, named by uid.

A `StatBag` is everything that a set of observations leaves behind under given responsibilities. Bags
of disjoint sets add up to the bag of their union; that is all that memoized inference rests on
(Hughes 2016, Sec. 3.5.1). A leaf module: every layer may import it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..hmm.transitions import Transitions, TransitionUnions
from ..topics.counts import NO_DOCUMENTS, DocumentCounts, NoDocuments


class UidCounter:
    """Makes names of components: whole numbers, none of which is ever used twice by one model.

    A learner and its scheduler share one counter.
    """

    def __init__(self):
        self._next = 0

    def __call__(self, n):
        """Names for ``n`` new components, a tuple."""
        self._next += n
        return tuple(range(self._next - n, self._next))


class StatBag(NamedTuple):
    """Statistics of K components.

    Attributes
    ----------
    uids : ndarray of int, shape (K,)
        Names of the components, unique for the life of a model and never used again.
    s : ndarray, shape (K, P)
        ``sum_n w_n r_nk s(x_n)``; the last column is the count N_k.
    entropy : ndarray, shape (K,)
        ``-sum_n w_n r_nk log r_nk`` (3.51).
    docs : DocumentCounts, Transitions or NoDocuments
        What rows that belong together leave behind: how often each document uses each component, or
        how often sequences go from one to another.
    """

    uids: np.ndarray
    s: np.ndarray
    entropy: np.ndarray
    docs: DocumentCounts | Transitions | NoDocuments = NO_DOCUMENTS

    def __deepcopy__(self, memo):
        return self  # never changed in place

    @classmethod
    def zeros(cls, uids, n_statistics):
        uids = np.asarray(uids, dtype=np.int64)
        return cls(uids, np.zeros((len(uids), n_statistics)), np.zeros(len(uids)))

    @property
    def n(self):
        """Counts N_k, shape (K,)."""
        return self.s[:, -1]

    def positions(self, uids):
        """Rows at which ``uids`` stand."""
        where = {uid: i for i, uid in enumerate(self.uids.tolist())}
        return np.array([where[int(uid)] for uid in uids], dtype=np.intp)

    def take(self, rows):
        uids = self.uids[rows]
        return StatBag(uids, self.s[rows], self.entropy[rows], self.docs.only(uids.tolist()))

    def add(self, other, sign=1.0):
        """``self + sign * other``; both must list the same components in the same order."""
        docs = self.docs.joined(other.docs) if sign > 0 else self.docs.without(other.docs)
        return StatBag(
            self.uids, self.s + sign * other.s, self.entropy + sign * other.entropy, docs
        )

    def less(self, rows):
        """The bag with the bag ``rows`` taken off the components of these names."""
        s = self.s.copy()
        s[self.positions(rows.uids)] -= rows.s
        return self._replace(s=s, docs=self.docs.without(rows.docs))

    def exchanged(self, old, new):
        """The sum once a batch leaves ``new`` behind instead of ``old`` (None: nothing)."""
        return self.add(new) if old is None else self.add(old, -1.0).add(new)

    def aligned(self, uids):
        """The same statistics listed as ``uids``, with zeros for components not in the bag (4.21)."""
        if len(uids) == len(self.uids) and np.array_equal(uids, self.uids):
            return self
        where = {uid: i for i, uid in enumerate(self.uids.tolist())}
        old = np.array([where.get(uid, -1) for uid in np.asarray(uids).tolist()], dtype=np.intp)
        out = StatBag.zeros(uids, self.s.shape[1])
        known = old >= 0
        out.s[known] = self.s[old[known]]
        out.entropy[known] = self.entropy[old[known]]
        return out._replace(docs=self.docs)

    def concatenated(self, other):
        """Both bags' components, this one's first."""
        return self.replaced((), other)

    def replaced(self, removed, rows):
        """The bag with the components ``removed`` gone and the bag ``rows`` appended."""
        keep = ~np.isin(self.uids, removed)
        return StatBag(
            np.concatenate([self.uids[keep], rows.uids]),
            np.concatenate([self.s[keep], rows.s]),
            np.concatenate([self.entropy[keep], rows.entropy]),
            self.docs.replaced(removed, rows.docs),
        )


def added_up(bags):
    """Sum of one bag or more, which list the same components."""
    out, *others = bags
    for bag in others:
        out = out.add(bag)
    return out


class SplitEdit(NamedTuple):
    """Accepted: components ``removed`` were replaced by ``created`` on the batches that were seen.

    Attributes
    ----------
    removed, created : tuple of int
        Uids.
    rows : dict
        Batch id -> `StatBag` of the created components. A batch that is missing was not seen by
        the proposal and keeps its components, in which one of the created lives on.
    """

    removed: tuple
    created: tuple
    rows: dict

    def replay(self, bag, batch_id):
        """The bag of one batch after the edit."""
        rows = self.rows.get(batch_id)
        return bag if rows is None else bag.replaced(self.removed, rows)


class UnionEdit(NamedTuple):
    """Accepted: components ``removed`` became one, ``created[0]``.

    Attributes
    ----------
    removed, created : tuple of int
    entropies : dict
        Batch id -> exact entropy of the union.
    """

    removed: tuple
    created: tuple
    entropies: dict

    def replay(self, bag, batch_id):
        """The bag of one batch after the edit; the bound stands in for an entropy never seen."""
        return bag.replaced(
            self.removed, union_row(bag, self.removed, self.created, self.entropies.get(batch_id))
        )


class GroupsEdit(NamedTuple):
    """Accepted: each of several groups of states became one.

    Attributes
    ----------
    groups : tuple of pairs
        Uids that go, and the uid that takes their place.
    changes : dict
        Batch id -> exact change of the entropy, which all groups make together.
    """

    groups: tuple
    changes: dict

    def replay(self, bag, batch_id):
        """The bag of one batch after the edit; the bound stands in for a change never seen."""
        removed = tuple(uid for members, _ in self.groups for uid in members)
        return bag.replaced(removed, union_rows(bag, self.groups, self.changes.get(batch_id)))


def union_rows(bag, groups, change=None):
    """Statistics of the unions of groups of states, each as one.

    The ``change`` of the entropy goes with the transitions; `least_change` if it is not known.
    """
    s = np.stack([bag.s[np.isin(bag.uids, members)].sum(axis=0) for members, _ in groups])
    if change is None:
        change = least_change(bag, groups)
    uids = np.array([created for _, created in groups], dtype=np.int64)
    return StatBag(uids, s, np.zeros(len(uids)), TransitionUnions(tuple(groups), change))


def least_change(bag, groups):
    """Lower bound of what the entropy of chains changes by when groups of states become one each.

    Paths of renamed states lose no more than it would take to say which of the parts each state was,
    ``N log(number of parts)``. The Markov chain with the same pair marginals has no less entropy than
    these paths, and may have more than the chain had before. And no entropy is negative.
    """
    change = 0.0
    for members, _ in groups:
        n = bag.n[np.isin(bag.uids, members)]
        change -= n.sum() * np.log(max(1, np.count_nonzero(n)))
    return max(change, -max(0.0, bag.docs.entropy))


def union_row(bag, removed, created, entropy=None):
    """Statistics of the union of ``removed`` as one component.

    Without its ``entropy``, the lower bound ``max(0, sum_k H_k - N log(number of parts))``, which
    keeps the objective a lower bound where the rows are gone.
    """
    parts = np.isin(bag.uids, removed)
    s = bag.s[parts].sum(axis=0, keepdims=True)
    if entropy is None:
        n_parts = max(1, np.count_nonzero(bag.s[parts, -1]))
        entropy = max(0.0, bag.entropy[parts].sum() - s[0, -1] * np.log(n_parts))
    docs = bag.docs.union(removed, created[0])
    return StatBag(np.asarray(created, dtype=np.int64), s, np.array([entropy]), docs)
