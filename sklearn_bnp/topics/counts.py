"""How often documents use components: what topic models keep of each document.

The allocation term of a topic model is a function of the counts N_dk alone (doc/formulas.rst), and
not a linear one, so that no sum over documents of fixed length can stand in for them. They are few:
a document uses a handful of components. Columns are named by uid, and a component that a document's
batch does not know is used zero times, so that batches of different truncation always fit together
where sums of E[log pi_dk] need the care of (5.56)-(5.58). A leaf module.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Names of documents of batches that are gone begin so; no user's batch_id does.
_PAST = ("sklearn_bnp", "fitted documents")


class Column(NamedTuple):
    """Documents of a batch that use a component, in increasing order, and their counts > 0."""

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
        How many documents each of them stands for: 1 but in stochastic inference.
    weight : ndarray, shape (n_docs,), or None
        How many equal documents the user says each is, times which that is.
    """

    lengths: np.ndarray
    columns: dict
    scale: float = 1.0
    weight: np.ndarray | None = None

    @property
    def is_plain(self):
        """Whether each document stands for itself alone."""
        return self.weight is None and self.scale == 1.0

    def times(self, docs):
        """How many documents each of some stands for; ``docs`` are indices or a boolean array."""
        if self.weight is None:
            return np.full(len(self.lengths[docs]), self.scale)
        return self.scale * self.weight[docs]

    @property
    def mean_length(self):
        """Tokens of a document, on average."""
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
        """From dense counts (n_docs, K) and weights (n_docs,), if there are any."""
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
        """These documents and others; of a batch that both have, the columns of both."""
        if not other.parts:
            return self
        parts = dict(self.parts)
        for key, part in other.parts.items():
            mine = parts.get(key)
            parts[key] = part if mine is None else _more(mine, part.columns)
        return DocumentCounts(parts)

    def without(self, other):
        """The documents of those batches that ``other`` has not."""
        return DocumentCounts({k: p for k, p in self.parts.items() if k not in other.parts})

    def only(self, uids):
        """Columns of the components ``uids``."""
        wanted = set(uids)
        if all(wanted.issuperset(part.columns) for part in self.parts.values()):
            return self
        return self._map(lambda part: {u: c for u, c in part.columns.items() if u in wanted})

    def replaced(self, removed, other):
        """Without the columns ``removed``, with those of ``other``."""
        gone = set(removed)
        return self._map(
            lambda part: {u: c for u, c in part.columns.items() if u not in gone}
        ).joined(other)

    def union(self, removed, created):
        """The sum of the columns ``removed``, alone and under the name ``created``."""
        return self._map(lambda part: _union(part, removed, created))

    def as_past(self):
        """The same documents under names that no later batch can have."""
        parts = self.parts.values()
        return DocumentCounts({(*_PAST, i): part for i, part in enumerate(parts)})

    def averaged(self, before, keep, rate, times):
        """These after a stochastic step: each document stands for ``times``, and no others count."""
        parts = {key: part._replace(scale=times) for key, part in self.parts.items()}
        return DocumentCounts(parts)

    def _map(self, columns_of):
        parts = {key: p._replace(columns=columns_of(p)) for key, p in self.parts.items()}
        return DocumentCounts(parts)


def _more(part, columns):
    return part._replace(columns={**part.columns, **columns})


def _union(part, removed, created):
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
