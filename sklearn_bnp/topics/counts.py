"""Counts N_dk of documents and components, which topic models keep for every document.

The allocation term of a topic model is a function of the counts N_dk alone (doc/formulas_topics.rst). It is
not linear in them, so that sums over documents cannot replace them exactly. The counts are few, since a
document uses a handful of components. Columns are stored by uid, and a component without a column has
counts of 0. Batches of different truncation therefore fit together without the care that sums of
E[log pi_dk] need, (5.56)-(5.58) of Hughes (2016). A leaf module.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# First part of the names of batches that are gone; no batch_id of a user begins so.
_PAST = ("sklearn_bnp", "fitted documents")


class Column(NamedTuple):
    """The documents of a batch that use a component, ascending, and their counts > 0."""

    docs: np.ndarray
    values: np.ndarray


class BatchCounts(NamedTuple):
    """Counts of the documents of one batch.

    Attributes
    ----------
    lengths : ndarray, shape (n_docs,)
        Tokens of each document.
    columns : dict
        Uid -> `Column`; never changed in place.
    scale : float
        Number of documents that each stands for in stochastic inference; otherwise 1.
    weight : ndarray, shape (n_docs,), or None
        Number of equal documents that each stands for by the user's ``sample_weight``. A document counts
        ``scale * weight`` times.
    """

    lengths: np.ndarray
    columns: dict
    scale: float = 1.0
    weight: np.ndarray | None = None

    @property
    def is_plain(self):
        """Whether each document counts once."""
        return self.weight is None and self.scale == 1.0

    def times(self, docs):
        """Times that each of the documents ``docs`` (indices, or a boolean array) counts."""
        if self.weight is None:
            return np.full(len(self.lengths[docs]), self.scale)
        return self.scale * self.weight[docs]

    @property
    def mean_length(self):
        """Mean number of tokens per document."""
        return float(np.average(self.lengths, weights=self.weight)) if len(self.lengths) else 0.0

    def dense(self, uids):
        """Counts (n_docs, K) of the components ``uids``."""
        out = np.zeros((len(self.lengths), len(uids)))
        for k, uid in enumerate(uids):
            column = self.columns.get(uid)
            if column is not None:
                out[column.docs, k] = column.values
        return out

    @classmethod
    def of(cls, counts, lengths, uids, weight=None):
        """From dense counts (n_docs, K), lengths (n_docs,), and weights (n_docs,) or None."""
        topics, docs = np.nonzero(counts.T)
        values, docs = counts[docs, topics], docs.astype(np.int32)
        ends = np.searchsorted(topics, np.arange(len(uids) + 1))
        columns = {
            uid: Column(docs[a:b], values[a:b])
            for uid, a, b in zip(uids, ends[:-1].tolist(), ends[1:].tolist(), strict=True)
            if a < b
        }
        return cls(lengths, columns, weight=weight)


class DocumentCounts:
    """Counts of the documents of several batches: batch id -> `BatchCounts`. Immutable."""

    def __init__(self, parts):
        self.parts = parts

    def joined(self, other):
        """These documents and others. If both have a batch, it has the columns of both."""
        if not other.parts:
            return self
        parts = dict(self.parts)
        for key, part in other.parts.items():
            mine = parts.get(key)
            parts[key] = part if mine is None else _more(mine, part.columns)
        return DocumentCounts(parts)

    def without(self, other):
        """The documents of those batches that are not in ``other``."""
        return DocumentCounts({k: p for k, p in self.parts.items() if k not in other.parts})

    def only(self, uids):
        """The columns of the components ``uids``, without others."""
        wanted = set(uids)
        if all(wanted.issuperset(part.columns) for part in self.parts.values()):
            return self
        return self._map(lambda part: {u: c for u, c in part.columns.items() if u in wanted})

    def replaced(self, removed, other):
        """The columns without those of the components ``removed``, with the columns of ``other``."""
        gone = set(removed)
        return self._map(
            lambda part: {u: c for u, c in part.columns.items() if u not in gone}
        ).joined(other)

    def union(self, removed, created):
        """One column, with uid ``created``: the sum of the columns ``removed``."""
        return self._map(lambda part: _union(part, removed, created))

    def as_past(self):
        """The same documents under names that no later batch can have: they are never visited again."""
        parts = self.parts.values()
        return DocumentCounts({(*_PAST, i): part for i, part in enumerate(parts)})

    def averaged(self, before, keep, rate, times):
        """The counts after a stochastic step: these documents alone, and each stands for ``times``."""
        parts = {key: part._replace(scale=times) for key, part in self.parts.items()}
        return DocumentCounts(parts)

    def _map(self, columns_of):
        parts = {key: p._replace(columns=columns_of(p)) for key, p in self.parts.items()}
        return DocumentCounts(parts)


def _more(part, columns):
    """`BatchCounts` with further columns."""
    return part._replace(columns={**part.columns, **columns})


def _union(part, removed, created):
    """Columns of `DocumentCounts.union` for one batch."""
    found = [part.columns[uid] for uid in removed if uid in part.columns]
    if not found:
        return {}
    if len(found) == 1:
        return {created: found[0]}
    total = np.zeros(len(part.lengths))
    for column in found:
        total[column.docs] += column.values
    docs = np.flatnonzero(total).astype(np.int32)
    return {created: Column(docs, total[docs])}
