"""States that become one: statistics of unions, and the edit that replays them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.extra import NO_EXTRA
from ..engine.statistics import StatBag
from .transitions import TransitionUnions


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

    The ``change`` of the entropy goes with the transitions; `least_change` if it is not known. A bag without
    rows, such as the past of a stream that has none yet, has no transitions to change.
    """
    s = np.stack([bag.s[np.isin(bag.uids, members)].sum(axis=0) for members, _ in groups])
    if change is None:
        change = least_change(bag, groups)
    uids = np.array([created for _, created in groups], dtype=np.int64)
    extra = TransitionUnions(tuple(groups), change) if bag.extra.uids else NO_EXTRA
    return StatBag(uids, s, np.zeros(len(uids)), extra)


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
    return max(change, -max(0.0, bag.extra.entropy))
