"""Accepted proposals, as they are replayed on what each batch left behind."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .statistics import StatBag


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
    extra = bag.extra.union(removed, created[0])
    return StatBag(np.asarray(created, dtype=np.int64), s, np.array([entropy]), extra)
