"""Sums over documents by which unions of topics are chosen, wherever the documents' counts are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.extra import NO_EXTRA
from ..engine.task import added_siblings
from .counts import CountsAway
from .document_terms import CountColumns, columns_of_part, count_columns, union_document_gains


class UnionGains(NamedTuple):
    """A function of `BatchCounts`: what documents gain by unions. It can be pickled.

    Attributes
    ----------
    pairs : ndarray, shape (P, 2)
        Positions of topics in ``uids``.
    uids : list of int
    a : ndarray, shape (K,)
        Parameters of the documents' prior.
    union : float or None
        As in `union_document_gains`.
    """

    pairs: np.ndarray
    uids: list
    a: np.ndarray
    union: float | None = None

    def __call__(self, part):
        columns, docs = columns_of_part(part, self.uids)
        return union_document_gains(self.pairs, docs, columns, self.a, self.union)


def union_gains_of_documents(totals, pairs, a, union=None):
    """`union_document_gains` (P,) of the documents of ``totals``, summed over a tree of their parts.

    Documents that are gone count as if none of them used both topics, which is a lower bound; see (c) of
    the design note of ``counts.py``.
    """
    gains = UnionGains(pairs, totals.uids.tolist(), a, union)
    parts = list(totals.extra.parts.values())
    away = {i: part for i, part in enumerate(parts) if isinstance(part, CountsAway)}
    nodes = {(0, i): gains(part) for i, part in enumerate(parts) if i not in away}
    if away:
        place = next(iter(away.values())).left.visit.place
        nodes |= place.sums_of_left(gains, away, len(parts))
    total = np.zeros(len(pairs))
    for value in added_siblings(np.add, nodes, len(parts)).values() if parts else ():
        total = total + value
    gone = {} if away or totals.extra is NO_EXTRA else totals.extra.unseen(gains.uids)
    if gone:
        columns = count_columns(totals._replace(extra=totals.extra._replace(topics=gone)))
        total = total + _of_separate_documents(gains, columns)
    return total


def _of_separate_documents(gains, columns: CountColumns):
    docs = np.arange(len(columns.values))
    return union_document_gains(gains.pairs, docs, columns, gains.a, gains.union)
