"""How often chains start in a state and go from one to another: what sequences leave behind.

Unlike all other statistics these have two axes of components, so that joining components adds up
both rows and columns. Components are named by uid, and a bag that does not know a component has no
transitions of it. A leaf module.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Transitions(NamedTuple):
    """Expected counts of starts and transitions of K states.

    Attributes
    ----------
    uids : tuple of int
        Names of the states, in any order.
    counts : ndarray, shape (K + 1, K)
        Row 0: sequences that start in each state. Row j: transitions from state j - 1.
    entropy : float
        Of the states' joint posterior, in nats. It has no share for each state.
    """

    uids: tuple
    counts: np.ndarray
    entropy: float = 0.0

    def listed(self, uids):
        """Counts (K + 1, K) listed as ``uids``; 0 for states that are not known here."""
        if tuple(uids) == self.uids:
            return self.counts
        where = {uid: i for i, uid in enumerate(self.uids)}
        old = np.array([where.get(uid, -1) for uid in uids], dtype=np.intp)
        known = np.flatnonzero(old >= 0)
        out = np.zeros((len(uids) + 1, len(uids)))
        rows_out, rows = np.concatenate([[0], known + 1]), np.concatenate([[0], old[known] + 1])
        out[np.ix_(rows_out, known)] = self.counts[np.ix_(rows, old[known])]
        return out

    def _combined(self, other, sign):
        known = set(self.uids)
        uids = self.uids + tuple(uid for uid in other.uids if uid not in known)
        counts = self.listed(uids) + sign * other.listed(uids)
        return Transitions(uids, counts, self.entropy + sign * other.entropy)

    def joined(self, *others):
        """Add the counts of other sequences."""
        out = self
        for other in others:
            out = out._combined(other, 1.0)
        return out

    def without(self, other):
        """These, less those of ``other``."""
        return self._combined(other, -1.0)

    def scaled(self, scale):
        """Each sequence counted ``scale`` times."""
        return self._replace(counts=scale * self.counts, entropy=scale * self.entropy)

    def averaged(self, before, keep, rate, times):
        """These after a stochastic step: sequences stand for ``times``, and ``before`` is kept in part.

        If nothing is known of earlier transitions, these are taken as they are.
        """
        if not before.uids:
            return self.scaled(times)
        return self.scaled(rate * times).joined(before.scaled(keep))

    def only(self, uids):
        """Keep the counts among the states ``uids``."""
        uids = tuple(uids)
        return self._replace(uids=uids, counts=self.listed(uids))

    def replaced(self, removed, other):
        """Without the states ``removed``, with what ``other`` says of its own."""
        return other.put_into(self, removed)

    def put_into(self, whole, removed):
        """``whole`` without ``removed`` and with these states, which have no links to the others."""
        gone = set(removed)
        return whole.only(uid for uid in whole.uids if uid not in gone).joined(self)

    def summed(self):
        """Return these counts: all of them add up over rows."""
        return self

    def as_past(self):
        """Return these counts: they name no batches."""
        return self

    def owned(self, owner):
        """Return these counts: the name of a batch is not part of them."""
        return self

    def renamed(self, names):
        """Name the states otherwise: ``names`` is old uid -> new uid."""
        return self._replace(uids=tuple(names[uid] for uid in self.uids))


class TransitionUnions(NamedTuple):
    """States that become one, wherever they are met: rows and columns add up.

    Attributes
    ----------
    groups : tuple of pairs
        Uids that go, and the uid that takes their place.
    change : float
        Of the entropy, in nats, of either sign.
    """

    groups: tuple
    change: float = 0.0

    def put_into(self, whole, removed):
        """``whole`` with the groups joined."""
        names = {uid: created for members, created in self.groups for uid in members}
        new = tuple(dict.fromkeys(names.get(uid, uid) for uid in whole.uids))
        where = {uid: i for i, uid in enumerate(new)}
        column = np.zeros((len(whole.uids), len(new)))
        column[np.arange(len(whole.uids)), [where[names.get(u, u)] for u in whole.uids]] = 1.0
        counts = whole.counts @ column
        return Transitions(
            new, np.vstack([counts[:1], column.T @ counts[1:]]), whole.entropy + self.change
        )
