"""Edits: the changes of accepted trials, as they are made in the stored statistics of each batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import entr

from .statistics import StatBag
from .unions import UnionFinding


class SplitEdit(NamedTuple):
    """The replacement of components by others, whose statistics are known for each observed batch.

    Parameters
    ----------
    removed, created : tuple of int
        Uids of the components that go, and of those that come.
    rows : dict
        Batch id -> `StatBag` of the created components. A batch that is not in it was not observed, and does
        not change.
    """

    removed: tuple
    created: tuple
    rows: dict

    def replay(self, bag, batch_id):
        """Make the change in one batch.

        Parameters
        ----------
        bag : StatBag
            Statistics of the batch.
        batch_id : object
            Name of the batch.

        Returns
        -------
        bag : StatBag
            Statistics after the change.
        """
        rows = self.rows.get(batch_id)
        return bag if rows is None else bag.replaced(self.removed, rows)


class UnionEdit(NamedTuple):
    """The union of components.

    Parameters
    ----------
    removed : tuple of int
        Uids of the components.
    created : tuple of int
        Uid of the union, a tuple of one.
    entropies : dict
        Batch id -> exact entropy of the union, for each observed batch; or a ``UnionFinding``.
    """

    removed: tuple
    created: tuple
    entropies: dict

    def replay(self, bag, batch_id):
        """Make the change in one batch. For an entropy that is not known, a lower bound stands.

        Parameters
        ----------
        bag : StatBag
            Statistics of the batch.
        batch_id : object
            Name of the batch.

        Returns
        -------
        bag : StatBag
            Statistics after the change.
        """
        return bag.replaced(
            self.removed, union_row(bag, self.removed, self.created, self.entropies.get(batch_id))
        )


class BlindUnion(NamedTuple):
    """Unions of components in the statistics of rows that are gone: lower bounds stand for entropies.

    Parameters
    ----------
    groups : tuple of pairs
        Uids that go, and the uid that takes their place.
    """

    groups: tuple

    def replay(self, bag, batch_id):
        """The statistics of one batch after the unions, a `StatBag`."""
        for members, created in self.groups:
            bag = bag.replaced(members, union_row(bag, members, (created,)))
        return bag


def union_row(bag, removed, created, found=None):
    """Statistics of the union of ``removed`` as one component.

    ``found`` is its entropy, or a ``UnionFinding``. If it is not given, a lower bound stands for it, so that
    the objective remains a lower bound if the rows are gone. A row of which the members have the mass m, in
    shares p, loses the entropy m H(p). H is concave, so that all rows together lose no more than N H of the
    members' shares of all N.
    """
    parts = np.isin(bag.uids, removed)
    s = bag.s[parts].sum(axis=0, keepdims=True)
    found = UnionFinding.of(found)
    entropy = found.entropy
    if entropy is None:
        n = np.maximum(bag.s[parts, -1], 0.0)
        loss = entr(n).sum() - entr(n.sum())
        entropy = max(0.0, bag.entropy[parts].sum() - max(0.0, loss))
    extra = bag.extra.union(removed, created[0], found.more)
    return StatBag(np.asarray(created, dtype=np.int64), s, np.array([entropy]), extra)
