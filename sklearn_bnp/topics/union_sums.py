"""Sums over documents by which unions of topics are chosen, wherever the documents' counts are.

Design note. The sums over pairs of topics cost some Python for each pair, however few documents there are. A
stream may remember thousands of batches of a few documents each. Their counts are therefore joined, in the
order of the batches, into groups of thousands of documents, and the sums are made once for each group.
Counts that lie elsewhere are those of large chunks, each of which is a group by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.extra import NO_EXTRA
from ..engine.task import added_siblings
from .counts import BatchCounts, CountsAway
from .document_terms import CountColumns, columns_of_part, count_columns, union_document_gains

# Documents of a group. So many cost much more than what Python adds for a group.
_GROUP_DOCS = 10_000


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
    """`union_document_gains` (P,) of the documents of ``totals``, summed over a tree of their groups.

    Documents that are gone count as if none of them used both topics, which is a lower bound; see (c) of
    the design note of ``counts.py``.
    """
    gains = UnionGains(pairs, totals.uids.tolist(), a, union)
    parts = grouped(totals.extra.parts.values())
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


def grouped(parts):
    """List the parts. Neighbours that are at hand are joined, as long as they have few documents together."""
    groups, n_docs = [], 0  # lists of parts, and documents of the last one
    for part in parts:
        n = len(part.lengths) if isinstance(part, BatchCounts) else _GROUP_DOCS + 1
        if groups and n_docs + n <= _GROUP_DOCS:
            groups[-1].append(part)
            n_docs += n
        else:
            groups.append([part])
            n_docs = n
    return [first.joined(others) if others else first for first, *others in groups]


def _of_separate_documents(gains, columns: CountColumns):
    docs = np.arange(len(columns.values))
    return union_document_gains(gains.pairs, docs, columns, gains.a, gains.union)
