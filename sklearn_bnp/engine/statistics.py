"""Additive statistics of the components of a model, named by uid.

A `StatBag` is everything that a set of observations leaves behind under given responsibilities. Bags
of disjoint sets add up to the bag of their union; that is all that memoized inference rests on
(Hughes 2016, Sec. 3.5.1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .extra import NO_EXTRA, Extra


class UidCounter:
    """Makes names of components: whole numbers, none of which is ever used twice by one model.

    A learner and its scheduler share one counter.
    """

    def __init__(self, first=0):
        self.next = first

    def __call__(self, n):
        """Names for ``n`` new components, a tuple."""
        self.next += n
        return tuple(range(self.next - n, self.next))


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
    extra : Extra
        What rows that belong together leave behind: how often each document uses each component, or
        how often sequences go from one to another.
    """

    uids: np.ndarray
    s: np.ndarray
    entropy: np.ndarray
    extra: Extra = NO_EXTRA

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
        return StatBag(uids, self.s[rows], self.entropy[rows], self.extra.only(uids.tolist()))

    def add(self, other, sign=1.0):
        """``self + sign * other``; both must list the same components in the same order."""
        extra = self.extra.joined(other.extra) if sign > 0 else self.extra.without(other.extra)
        return StatBag(
            self.uids, self.s + sign * other.s, self.entropy + sign * other.entropy, extra
        )

    def less(self, rows):
        """The bag with the bag ``rows`` taken off the components of these names."""
        s = self.s.copy()
        s[self.positions(rows.uids)] -= rows.s
        return self._replace(s=s, extra=self.extra.without(rows.extra))

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
        return out._replace(extra=self.extra)

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
            self.extra.replaced(removed, rows.extra),
        )


def added_up(bags):
    """Sum of one bag or more, which list the same components."""
    out, *others = bags
    for bag in others:
        out = out.add(bag)
    return out
