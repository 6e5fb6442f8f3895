"""Counts N_dk of documents and components: their histograms, and what each document had.

Design note
-----------
(a) The allocation term of a topic model is a function of the counts (doc/formulas_topics.rst). It is not
    linear in them, but a sum over documents of smooth functions of one count each. The objective and the
    search for sticks therefore take histograms, from which such sums follow to rounding; these add up.
(b) The documents' own counts are kept beside the histograms, batch by batch. Documents start from them at
    their next visit, and the counts of a union of components are sums of two counts of the same document.
    Where data lie elsewhere, these counts stay with them, and `CountsAway` stand for them: the histogram of
    a union is found in the local step, and sums over documents are asked for (`union_sums.py`).
(c) Of documents that are gone there are histograms alone. If a document has x tokens of one component and y
    of another, then Gamma(x + y + a) / Gamma(a) is at least the product of the same of x and of y. So the
    objective stays a bound if a union counts them as different documents: its histogram is the sum.
(d) Histograms and columns are named by uid, and a component without any has counts of 0. Batches of different
    truncation therefore fit together without the care that sums of E[log pi_dk] need, (5.56)-(5.58) of
    Hughes (2016).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.extra import NO_EXTRA
from ..engine.left_behind import Left
from ..inputs.rows import joined_numbers
from .histograms import NOTHING, Histogram, added_up, histograms

# What rounding may do to a number of documents, relative to it.
_ROUNDING = 1e-9
# First part of the names of batches that are gone; no batch_id of a user begins so.
_PAST = ("sklearn_bnp", "fitted documents")


class Column(NamedTuple):
    """The documents of a batch that use a component, ascending, and their counts > 0."""

    docs: np.ndarray
    values: np.ndarray


def _side_by_side(shifts, columns):
    """The columns of one component in several batches as one `Column`; its documents are moved up."""
    docs, values = (np.concatenate(arrays) for arrays in zip(*columns, strict=True))
    moved = docs + np.repeat(shifts, [len(column.docs) for column in columns])
    return Column(moved.astype(np.int32), values)


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

    def joined(self, others):
        """The counts of these documents and of ``others``, side by side, as batches are joined."""
        parts = [self, *others]
        sizes = [len(part.lengths) for part in parts]
        columns = {}  # uid -> shifts of documents, and columns
        for part, shift in zip(parts, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True):
            for uid, column in part.columns.items():
                shifts, own = columns.setdefault(uid, ([], []))
                shifts.append(shift)
                own.append(column)
        joined = {uid: _side_by_side(*of_uid) for uid, of_uid in columns.items()}
        lengths = np.concatenate([part.lengths for part in parts])
        return BatchCounts(lengths, joined, joined_numbers([part.weight for part in parts], sizes))

    def part(self, first, last):
        """The counts of the documents from ``first`` to before ``last``."""
        columns = {}
        for uid, (docs, values) in self.columns.items():
            a, b = np.searchsorted(docs, [first, last])
            if a < b:
                columns[uid] = Column(docs[a:b] - first, values[a:b])
        weight = None if self.weight is None else self.weight[first:last]
        return BatchCounts(self.lengths[first:last], columns, weight)

    # what edits do; `CountsAway` has the same methods

    def only(self, uids):
        """The columns of the components ``uids``."""
        return self._replace(columns={uid: c for uid, c in self.columns.items() if uid in uids})

    def less(self, uids):
        """All columns but those of the components ``uids``."""
        return self._replace(columns={uid: c for uid, c in self.columns.items() if uid not in uids})

    def more(self, other):
        """These columns, and those that others have of the same documents."""
        return self._replace(columns={**self.columns, **other.columns})

    def united(self, removed, created):
        """One column, with uid ``created``: the sum of the columns ``removed``."""
        return self._replace(columns=_union(self, removed, created))

    @property
    def needed(self):
        """An empty list: nothing has to be found."""
        return []

    def at_hand(self, find=None):
        """The counts themselves."""
        return self


class CountsAway(NamedTuple):
    """Counts of documents that stay where these are: what a task has left there, and edits since then.

    Attributes
    ----------
    left : Left
        Names the `BatchCounts` of a part.
    steps : tuple
        Names of methods of `BatchCounts` with their arguments, to be called one after the other.
    """

    left: Left
    steps: tuple = ()

    def _then(self, *step):
        return self._replace(steps=(*self.steps, step))

    def only(self, uids):
        return self._then("only", frozenset(uids))

    def less(self, uids):
        return self._then("less", frozenset(uids))

    def more(self, other):
        return self._then("more", other)

    def united(self, removed, created):
        return self._then("united", tuple(removed), created)

    @property
    def needed(self):
        """A list of `Left`: what has to be found."""
        others = [arg for _, *args in self.steps for arg in args if isinstance(arg, CountsAway)]
        return [self.left, *(left for other in others for left in other.needed)]

    def at_hand(self, find):
        """`BatchCounts`; ``find(left)`` gives what was left."""
        counts = find(self.left)
        for method, *args in self.steps:
            args = [arg.at_hand(find) if isinstance(arg, CountsAway) else arg for arg in args]
            counts = getattr(counts, method)(*args)
        return counts


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
        Batch id -> `BatchCounts`, or `CountsAway`. Documents that are in none of them are gone.
    """

    topics: dict
    lengths: Histogram
    n_empty: float
    parts: dict

    @classmethod
    def of(cls, parts):
        """From a dict of `BatchCounts`."""
        ones = []
        for name, part in parts.items():
            some = part.lengths > 0
            lengths, n_some = part.lengths[some], np.count_nonzero(some)
            [lengths] = histograms(lengths, [0, n_some], part.times(some))
            one = cls.of_columns({name: part})
            ones.append(one._replace(lengths=lengths, n_empty=float(part.times(~some).sum())))
        return NO_EXTRA.joined(*ones)

    @classmethod
    def of_columns(cls, parts):
        """Columns alone, of documents that others have already counted."""
        return cls(_histograms_of(parts.values()), NOTHING, 0.0, parts)

    def summed(self):
        """The histograms alone: all that the objective needs."""
        return self._replace(parts={}) if self.parts else self

    def joined(self, *others):
        """These documents and others. If several have a batch, it has the columns of all of them."""
        some = [self, *(other for other in others if other is not NO_EXTRA)]
        if len(some) == 1:
            return self
        parts, topics = {}, {}
        for one in some:
            for key, part in one.parts.items():
                known = parts.get(key)
                parts[key] = part if known is None else known.more(part)
            for uid, histogram in one.topics.items():
                topics.setdefault(uid, []).append(histogram)
        return DocumentCounts(
            {uid: added_up(of_uid) for uid, of_uid in topics.items()},
            added_up([one.lengths for one in some]),
            sum(one.n_empty for one in some),
            parts,
        )

    def without(self, other):
        """These documents without those of ``other``."""
        if other is NO_EXTRA:
            return self
        parts = {k: p for k, p in self.parts.items() if k not in other.parts}
        topics = dict(self.topics)
        for uid, histogram in other.topics.items():
            topics[uid] = topics.get(uid, NOTHING).added(histogram, -1.0)
        lengths = self.lengths.added(other.lengths, -1.0)
        return DocumentCounts(topics, lengths, self.n_empty - other.n_empty, parts)

    def only(self, uids):
        """The columns of the components ``uids``, without others."""
        wanted = set(uids)
        if wanted.issuperset(self.topics):  # each column has its histogram
            return self
        topics = {uid: topic for uid, topic in self.topics.items() if uid in wanted}
        return self._replace(topics=topics, parts=self._each_part("only", wanted))

    def _each_part(self, method, *args):
        return {key: getattr(part, method)(*args) for key, part in self.parts.items()}

    def replaced(self, removed, other):
        """The columns without those of the components ``removed``, with the columns of ``other``.

        The documents are the same: those of ``other`` are among them.
        """
        gone = set(removed)
        topics = {uid: topic for uid, topic in self.topics.items() if uid not in gone}
        kept = self._replace(topics=topics, parts=self._each_part("less", gone))
        if other is NO_EXTRA:
            return kept
        return kept.joined(other._replace(lengths=NOTHING, n_empty=0.0))

    def union(self, removed, created, seen=None):
        """One column, with uid ``created``: the sum of the columns ``removed``.

        Its histogram is ``seen``. Without it, that is found from the documents at hand, and others count as
        if none of them used two of the components; see (c) of the design note.
        """
        parts = self._each_part("united", removed, created)
        if seen is None:
            seen = self._histogram_of_union(removed, created, parts)
        topics = {created: seen} if len(seen.weights) else {}
        return DocumentCounts(topics, NOTHING, 0.0, parts)

    def _histogram_of_union(self, removed, created, united):
        at_hand = (part for part in united.values() if isinstance(part, BatchCounts))
        seen = _histograms_of(at_hand).get(created, NOTHING)
        unseen = self.unseen(removed)
        if unseen and self.topics.keys() <= set(removed):
            return self.lengths
        for uid in removed:
            seen = seen.added(unseen.get(uid, NOTHING))
        return seen

    def unseen(self, uids):
        """Uid -> `Histogram` of the documents that are not at hand; an empty dict if all are."""
        here = [part for part in self.parts.values() if isinstance(part, BatchCounts)]
        n_docs = sum(float(part.times(slice(None)).sum()) for part in here)
        all_docs = self.lengths.total + self.n_empty
        if len(here) == len(self.parts) and n_docs >= (1.0 - _ROUNDING) * all_docs:
            return {}
        known = _histograms_of(part.only(uids) for part in here)
        topics = self.topics
        return {
            uid: topics[uid].added(known.get(uid, NOTHING), -1.0) for uid in uids if uid in topics
        }

    def seen_of_union(self, removed):
        """`Histogram` of the sum of the columns ``removed``."""
        if len(removed) == 1:
            return self.topics.get(removed[0], NOTHING)
        return self.union(removed, removed[0]).topics.get(removed[0], NOTHING)

    def left(self, leave):
        """The histograms, with `CountsAway` for the documents: ``leave(part)`` gives the `Left` of a part."""
        return self._replace(parts={key: CountsAway(leave(p)) for key, p in self.parts.items()})

    def at_hand(self):
        """The counts in this process: those of documents that lie with workers are brought from there."""
        away = {key: part for key, part in self.parts.items() if isinstance(part, CountsAway)}
        if not away:
            return self
        place = next(iter(away.values())).left.visit.place
        found = zip(away, place.brought(list(away.values())), strict=True)
        return self._replace(parts={**self.parts, **dict(found)})

    def as_past(self):
        """Rename the documents, so that no later batch has their names: they are never visited again.

        Those that are away are let go, and are gone.
        """
        return self._under_names(_PAST)

    def owned(self, owner):
        """Name the documents as those of the part number ``owner`` of several; see `as_past`."""
        return self._under_names((*_PAST, owner))

    def _under_names(self, prefix):
        parts = self.parts.values()
        if any(isinstance(part, CountsAway) for part in parts):
            return self.summed()
        return self._replace(parts={(*prefix, i): part for i, part in enumerate(parts)})

    def renamed(self, names):
        """The counts under other names of components. Those of documents are in this process, or gone."""

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


def _union(part, removed, created):
    """Columns of `BatchCounts.united`."""
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
