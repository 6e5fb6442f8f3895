"""Additive statistics of the components of a model, named by uid.

A `StatBag` is everything that the model needs to know of a set of rows under given responsibilities. The
statistics of disjoint sets of rows add up to those of their union. Memoized inference rests on this alone
(Hughes 2016, Sec. 3.5.1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .extra import NO_EXTRA, Extra

# Mass under which a component counts as empty: smaller than the rounding error of a sum over the data.
_EMPTY = 1e-8


class UidCounter:
    """Makes names of components: integers, none of which is used twice by one model.

    A learner and its scheduler share one counter.
    """

    def __init__(self, first=0):
        self.next = first

    def __call__(self, n):
        """Names for ``n`` new components, a tuple."""
        self.next += n
        return tuple(range(self.next - n, self.next))


class StatBag(NamedTuple):
    """Statistics of K components, summed over a set of rows. Nothing changes them once they are made.

    Parameters
    ----------
    uids : ndarray of int, shape (K,)
        Names of the components. A name is never used for another component of the same model.
    s : ndarray, shape (K, P)
        ``sum_n w_n r_nk s(x_n)``; the last column is the count N_k.
    entropy : ndarray, shape (K,)
        ``-sum_n w_n r_nk log r_nk`` (3.51).
    extra : Extra
        The model's own part, beside sums over rows: counts of each document, or transitions of sequences.
        Nothing for mixtures.
    """

    uids: np.ndarray
    s: np.ndarray
    entropy: np.ndarray
    extra: Extra = NO_EXTRA

    @classmethod
    def zeros(cls, uids, n_statistics):
        """Statistics of no rows.

        Parameters
        ----------
        uids : array-like of int, shape (K,)
            Names of the components.
        n_statistics : int
            Length P of s(x).

        Returns
        -------
        bag : StatBag
            Zeros.
        """
        uids = np.asarray(uids, dtype=np.int64)
        return cls(uids, np.zeros((len(uids), n_statistics)), np.zeros(len(uids)))

    @property
    def n(self):
        """Counts of the components.

        Returns
        -------
        n : ndarray, shape (K,)
            Sums of responsibilities times weights.
        """
        return self.s[:, -1]

    @property
    def sizes(self):
        """Counts of the components by name.

        Returns
        -------
        sizes : dict of int to float
            Uid -> count.
        """
        return dict(zip(self.uids.tolist(), self.n.tolist(), strict=True))

    def positions(self, uids):
        """Positions of components.

        Parameters
        ----------
        uids : iterable of int
            Names of components, all of which are listed.

        Returns
        -------
        positions : ndarray of int
            Their indices.
        """
        where = {uid: i for i, uid in enumerate(self.uids.tolist())}
        return np.array([where[int(uid)] for uid in uids], dtype=np.intp)

    def take(self, rows):
        """Statistics of some of the components.

        Parameters
        ----------
        rows : array-like of int
            Indices of the components.

        Returns
        -------
        bag : StatBag
            The components in the order of the indices.
        """
        uids = self.uids[rows]
        return StatBag(uids, self.s[rows], self.entropy[rows], self.extra.only(uids.tolist()))

    def not_empty(self):
        """Statistics of the components that have any mass to speak of.

        Returns
        -------
        bag : StatBag
            The bag itself if all have.
        """
        there = self.n > _EMPTY
        return self if there.all() else self.take(np.flatnonzero(there))

    def add(self, other, sign=1.0):
        """Sum or difference of the statistics of two sets of rows.

        Parameters
        ----------
        other : StatBag
            It lists the same components in the same order.
        sign : float, default=1.0
            1 for the sum, -1 for the difference.

        Returns
        -------
        bag : StatBag
            ``self + sign * other``.
        """
        if sign > 0:
            change, extra = np.add, self.extra.joined(other.extra)
        else:
            change, extra = np.subtract, self.extra.without(other.extra)
        return StatBag(
            self.uids, change(self.s, other.s), change(self.entropy, other.entropy), extra
        )

    def scaled(self, factor):
        """Statistics of the same rows with other weights.

        Parameters
        ----------
        factor : float
            All weights are multiplied by it.

        Returns
        -------
        bag : StatBag
            ``factor`` times these statistics.
        """
        s, entropy = factor * self.s, factor * self.entropy
        return StatBag(self.uids, s, entropy, self.extra.scaled(factor))

    def less(self, rows):
        """Difference to statistics of some of the components; the entropies stay.

        Parameters
        ----------
        rows : StatBag
            Statistics to be subtracted.

        Returns
        -------
        bag : StatBag
            The components of this bag.
        """
        s = self.s.copy()
        s[self.positions(rows.uids)] -= rows.s
        return self._replace(s=s, extra=self.extra.without(rows.extra))

    def more(self, rows):
        """Sum with statistics of components, some of which may not be listed yet.

        Parameters
        ----------
        rows : StatBag
            Statistics to be added, with entropies of zero.

        Returns
        -------
        bag : StatBag
            The components of this bag, followed by those that it has not listed.
        """
        listed = np.isin(rows.uids, self.uids)
        s = self.s.copy()
        s[self.positions(rows.uids[listed])] += rows.s[listed]
        return StatBag(
            np.concatenate([self.uids, rows.uids[~listed]]),
            np.concatenate([s, rows.s[~listed]]),
            np.concatenate([self.entropy, rows.entropy[~listed]]),
            self.extra.joined(rows.extra),
        )

    def exchanged(self, old, new):
        """The totals after a visit to a batch.

        Parameters
        ----------
        old : StatBag or None
            Statistics of the batch that are in the totals; None if there are none.
        new : StatBag
            Statistics that take their place.

        Returns
        -------
        bag : StatBag
            ``self - old + new``.
        """
        return self.add(new) if old is None else self.add(old, -1.0).add(new)

    def aligned(self, uids):
        """Statistics listed in the order of ``uids``, with zeros for unknown components (4.21).

        Parameters
        ----------
        uids : array-like of int
            Names of the components to be listed. Those that are not in this bag get zeros.

        Returns
        -------
        bag : StatBag
            The components in the order of ``uids``.
        """
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
        """The components of two bags.

        Parameters
        ----------
        other : StatBag
            Statistics of other components.

        Returns
        -------
        bag : StatBag
            The components of this bag, followed by those of the other.
        """
        return self.replaced((), other)

    def replaced(self, removed, rows):
        """Replace components by others.

        Parameters
        ----------
        removed : sequence of int
            Uids of the components that go.
        rows : StatBag
            Statistics of the components that come.

        Returns
        -------
        bag : StatBag
            The components that stay, followed by those that come.
        """
        keep = ~np.isin(self.uids, removed)
        return StatBag(
            np.concatenate([self.uids[keep], rows.uids]),
            np.concatenate([self.s[keep], rows.s]),
            np.concatenate([self.entropy[keep], rows.entropy]),
            self.extra.replaced(removed, rows.extra),
        )


def added_up(bags):
    """Sum of one bag or more, all of which list the same components in the same order."""
    first, *others = bags
    if not others:
        return first
    s, entropy = first.s.copy(), first.entropy.copy()
    for bag in others:
        s += bag.s
        entropy += bag.entropy
    return StatBag(first.uids, s, entropy, first.extra.joined(*(bag.extra for bag in others)))
