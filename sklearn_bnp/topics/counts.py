"""Counts N_dk of documents and components: their histograms, and what each document had.

Design note
-----------
(a) The allocation term of a topic model is a function of the counts (doc/formulas_topics.rst). It is not
    linear in them, but a sum over documents of smooth functions of one count each. The objective and the
    search for sticks therefore take histograms, from which such sums follow to rounding; these add up.
(b) The documents' own counts are kept beside the histograms, batch by batch. Documents start from them at
    their next visit, and the counts of a union of components are sums of two counts of the same document.
(c) Histograms and columns are named by uid, and a component without any has counts of 0. Batches of different
    truncation therefore fit together without the care that sums of E[log pi_dk] need, (5.56)-(5.58) of
    Hughes (2016).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.extra import NO_EXTRA
from .histograms import NOTHING, Histogram, histograms

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
    weight : ndarray, shape (n_docs,), or None
        Number of equal documents that each stands for by the user's ``sample_weight``; one if None.
        Negative numbers occur where the documents stand for a histogram.
    """

    lengths: np.ndarray
    columns: dict
    weight: np.ndarray | None = None

    def times(self, docs):
        """Times that each of the documents ``docs`` (indices, or a boolean array) counts."""
        return np.ones(len(self.lengths[docs])) if self.weight is None else self.weight[docs]

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


class DocumentCounts(NamedTuple):
    """The extra of documents: histograms of their counts and lengths, and the counts of each. Immutable.

    Attributes
    ----------
    topics : dict
        Uid -> `Histogram` of the positive counts of a component.
    lengths : Histogram
        Tokens of the documents that have any.
    n_empty : float
        Weighted number of documents without tokens.
    parts : dict
        Batch id -> `BatchCounts`.
    """

    topics: dict
    lengths: Histogram
    n_empty: float
    parts: dict

    @classmethod
    def of(cls, parts):
        """From a dict of `BatchCounts`."""
        out = NO_EXTRA
        for name, part in parts.items():
            some = part.lengths > 0
            lengths, n_some = part.lengths[some], np.count_nonzero(some)
            [lengths] = histograms(lengths, [0, n_some], part.times(some))
            one = cls.of_columns({name: part})
            one = one._replace(lengths=lengths, n_empty=float(part.times(~some).sum()))
            out = one if out is NO_EXTRA else out.joined(one)
        return out

    @classmethod
    def of_columns(cls, parts):
        """Columns alone, of documents that others have already counted."""
        return cls(_histograms_of(parts.values()), NOTHING, 0.0, parts)

    def without_documents(self):
        """The histograms alone: all that the objective needs."""
        return self._replace(parts={}) if self.parts else self

    def joined(self, other):
        """These documents and others. If both have a batch, it has the columns of both."""
        if other is NO_EXTRA:
            return self
        parts = dict(self.parts)
        for key, part in other.parts.items():
            mine = parts.get(key)
            parts[key] = part if mine is None else _more(mine, part.columns)
        return self._added(other, 1.0, parts)

    def without(self, other):
        """These documents without those of ``other``."""
        if other is NO_EXTRA:
            return self
        parts = {k: p for k, p in self.parts.items() if k not in other.parts}
        return self._added(other, -1.0, parts)

    def _added(self, other, sign, parts):
        topics = dict(self.topics)
        for uid, histogram in other.topics.items():
            topics[uid] = topics.get(uid, NOTHING).added(histogram, sign)
        lengths = self.lengths.added(other.lengths, sign)
        return DocumentCounts(topics, lengths, self.n_empty + sign * other.n_empty, parts)

    def only(self, uids):
        """The columns of the components ``uids``, without others."""
        wanted = set(uids)
        there = [self.topics, *(part.columns for part in self.parts.values())]
        if all(wanted.issuperset(columns) for columns in there):
            return self
        return self._filtered(wanted.__contains__)

    def _filtered(self, stays):
        def kept(columns):
            return {uid: column for uid, column in columns.items() if stays(uid)}

        parts = {key: p._replace(columns=kept(p.columns)) for key, p in self.parts.items()}
        return self._replace(topics=kept(self.topics), parts=parts)

    def replaced(self, removed, other):
        """The columns without those of the components ``removed``, with the columns of ``other``.

        The documents are the same: those of ``other`` are among them.
        """
        gone = set(removed)
        kept = self._filtered(lambda uid: uid not in gone)
        if other is NO_EXTRA:
            return kept
        return kept.joined(other._replace(lengths=NOTHING, n_empty=0.0))

    def union(self, removed, created):
        """One column, with uid ``created``: the sum of the columns ``removed``."""
        parts = {
            key: part._replace(columns=_union(part, removed, created))
            for key, part in self.parts.items()
        }
        return DocumentCounts.of_columns(parts)

    def as_past(self):
        """Rename the documents, so that no later batch has their names: they are never visited again."""
        return self._under_names(_PAST)

    def owned(self, owner):
        """Name the documents as those of the part number ``owner`` of several."""
        return self._under_names((*_PAST, owner))

    def _under_names(self, prefix):
        """The same documents in parts under other names; of documents not known, one that stands for them."""
        parts = list(self.parts.values())
        if not parts and self.topics:
            parts = [_standing_for(self.topics)]
        return self._replace(parts={(*prefix, i): part for i, part in enumerate(parts)})

    def renamed(self, names):
        """The same counts, of components under other names."""

        def with_names(columns):
            return {names[uid]: column for uid, column in columns.items() if uid in names}

        parts = {k: p._replace(columns=with_names(p.columns)) for k, p in self.parts.items()}
        return self._replace(topics=with_names(self.topics), parts=parts)

    def averaged(self, before, keep, rate, times):
        """The counts after a stochastic step: these documents alone, and each stands for ``times``."""
        topics = {uid: histogram.times(times) for uid, histogram in self.topics.items()}
        return DocumentCounts(topics, self.lengths.times(times), self.n_empty * times, {})

    @property
    def mean_length(self):
        """Mean number of tokens per document."""
        n_docs = self.lengths.total + self.n_empty
        return float(self.lengths.nodes @ self.lengths.weights / max(n_docs, 1e-300))


def _standing_for(topics):
    """`BatchCounts` with the histograms ``topics``, for documents of which no more is known.

    For each node of each histogram there is a document that uses this topic alone, as often as the node says,
    and counts with its weight, which may be negative. The union of two topics then has the sum of their
    histograms: as if no document used both. Its term of the objective is too low if some did, as
    ``G(N + M + c) G(c) >= G(N + c) G(M + c)``, and so a bound.
    """
    nodes = [histogram.nodes for histogram in topics.values()]
    ends = np.cumsum([0, *map(len, nodes)])
    columns = {
        uid: Column(np.arange(start, end, dtype=np.int32), own)
        for uid, own, start, end in zip(topics, nodes, ends, ends[1:], strict=False)
    }
    weight = np.concatenate([histogram.weights for histogram in topics.values()])
    return BatchCounts(np.concatenate(nodes), columns, weight)


def _histograms_of(parts):
    """Uid -> `Histogram` of the columns of a component in all of some `BatchCounts`."""
    found = {}
    for part in parts:
        for uid, column in part.columns.items():
            found.setdefault(uid, []).append((part, column))
    if not found:
        return {}
    columns = [one for of_uid in found.values() for one in of_uid]
    sizes = [sum(len(column.values) for _, column in of_uid) for of_uid in found.values()]
    weight = None
    if any(part.weight is not None for part, _ in columns):
        weight = np.concatenate([part.times(column.docs) for part, column in columns])
    values = np.concatenate([column.values for _, column in columns])
    indptr = np.cumsum([0, *sizes])
    return dict(zip(found, histograms(values, indptr, weight), strict=True))


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
