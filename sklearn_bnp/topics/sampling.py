"""Pseudo-documents of chosen topics, drawn during a lap for proposals."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln

from ..engine import random_keys
from ..engine.probe import Each, Observer, Probe
from ..engine.row_frequencies import copies, frequencies, least_weight, without_copies
from ..engine.samples import UniformSample
from ..engine.task import Purpose
from ..inputs.rows import equal_rows, stacked
from .document_terms import TINY
from .documents import EVERYTHING, Documents

# A document belongs to a component's sample if it has more than so many words of it, or rows: one word says
# nothing of its topic, while one row may. An entry does if the component has more than this share of it.
_LEAST_WORDS, _LEAST_ROWS = 1.0, 0.5
_LEAST_SHARE = 1e-3
# Entries that all samples hold together.
_MOST_ENTRIES = 4_000_000
# Which copies count: documents of so few tokens may be equal by chance. Of longer ones, so many times as many
# may be equal as are expected if one topic explains all. A document that occurs so many times as often as the
# median document is a cluster. If there are fewer different ones than the last number, it is a cluster if it
# occurs so many times.
_FEW_TOKENS, _MORE, _CLUSTER, _FEW_DOCUMENTS = 10, 10.0, 20.0, 20
# Share of the tokens that a sample of everything must have been drawn from.
_ALL = 1.0 - 1e-6


class DocumentSample(NamedTuple):
    """Parts of documents, by which a topic is split: its share of the entries that it explains.

    Attributes
    ----------
    docs : Documents
        Entries for which the component has some responsibility.
    mass : ndarray, shape (n,)
        That responsibility.
    """

    docs: Any
    mass: np.ndarray

    @property
    def total(self):
        """Tokens."""
        return float(self.mass @ self.docs.entry_weight)

    @property
    def one_token(self):
        """The least mass of a topic that owns a token: the smallest weight, at most 1."""
        return least_weight(self.docs.weight)

    def with_frequencies(self):
        """The sample in which equal documents are one, and weights are cut to what frequencies can be.

        See `Sample.with_frequencies`. Only documents of few words are so probable that several may be equal
        by chance. Copies of longer ones are no evidence of a topic, unless some documents occur much more
        often than others. Documents of rows are not compared, but their weights are cut.
        """
        docs, first, number = self.docs, np.arange(len(self.docs)), np.arange(len(self.docs))
        if docs.indices is not None:
            first, number = _equal_documents(docs)
        if docs.weight is None:
            return self if len(first) == len(docs) else self._with_fewer_copies(first, number)
        sums, expected = np.bincount(number, docs.weight), np.zeros(len(first))
        if docs.indices is not None:
            expected = self._expected()[first]
        found = frequencies(sums, expected, np.arange(len(sums)), may_be_table=False)
        return self._counted(first, found)

    def _with_fewer_copies(self, first, number):
        """The sample in which documents that occur several times count as often as they can be evidence."""
        times = np.bincount(number).astype(float)
        most = np.maximum(_MORE * self._expected()[first], 1.0)
        most[self.docs.lengths[first] <= _FEW_TOKENS] = np.inf
        typical = np.median(times) if len(times) >= _FEW_DOCUMENTS else 1.0
        most[times >= _CLUSTER * typical] = np.inf
        return self if np.all(times <= most) else self._counted(first, np.minimum(times, most))

    def _counted(self, first, times):
        """The sample of the documents ``first``, each so many ``times``."""
        weight = np.zeros(len(self.docs))
        weight[first] = times
        some, entries = self.docs.weighing(weight).chosen(weight > 0.0)
        return DocumentSample(some, self.mass[entries])

    def without_copies(self):
        """The sample in which equal rows of continuous columns count once, as in `Sample.without_copies`."""
        docs = self.docs
        own = without_copies(*copies(docs.z), np.ones(len(docs.z)), n_heavy=0)
        if own is None:
            return self
        kept = own > 0.0
        of_entry = np.repeat(np.arange(len(docs)), np.diff(docs.indptr))
        sizes = np.bincount(of_entry[kept], minlength=len(docs))
        some = docs.taken(np.flatnonzero(kept), sizes[sizes > 0], sizes > 0)
        return DocumentSample(some, (self.mass * own)[kept])

    def _expected(self):
        """How many documents equal to each (n_docs,) can be expected, if one topic explains all tokens."""
        docs = self.docs
        p = np.bincount(docs.indices, self.mass * docs.entry_weight)
        log_p = np.log(np.maximum(p / p.sum(), TINY))[docs.indices]
        terms = docs.counts * log_p - gammaln(docs.counts + 1.0)
        of_entry = np.repeat(np.arange(len(docs)), np.diff(docs.indptr))
        each = np.bincount(of_entry, terms, minlength=len(docs))
        return docs.total * np.exp(np.minimum(each + gammaln(docs.lengths + 1.0), 0.0))

    def thinned(self, most):
        """The sample with at most ``most`` tokens of a document for each of its entries, on average."""
        sizes = np.diff(self.docs.indptr)
        of_entry = np.repeat(np.arange(len(sizes)), sizes)
        tokens = np.bincount(of_entry, self.mass * self.docs.counts, minlength=len(sizes))
        share = np.minimum(1.0, most * sizes / np.maximum(tokens, 1e-300))
        return self._replace(mass=self.mass * np.repeat(share, sizes))

    @property
    def least_total(self):
        """Tokens if all documents weighed as little as the lightest: topics of these are part of it."""
        if self.docs.weight is None:
            return self.total
        return float(self.docs.weight.min() * (self.mass @ self.docs.counts))


class KeyedDocuments(NamedTuple):
    """Documents drawn for one sample.

    Attributes
    ----------
    sample : DocumentSample
    key : ndarray, shape (n_docs,), or None
        None if all documents were kept.
    """

    sample: DocumentSample
    key: np.ndarray | None

    def below(self, threshold):
        """The documents whose keys are below a threshold."""
        keep = self.key < threshold
        docs, entries = self.sample.docs.chosen(keep)
        return KeyedDocuments(DocumentSample(docs, self.sample.mass[entries]), self.key[keep])


class Draw(NamedTuple):
    """Documents drawn from a batch for several samples.

    Attributes
    ----------
    parts : dict
        Uid -> list of `KeyedDocuments`.
    n_tokens : float
        Tokens of the batch that a sample of everything was drawn from.
    threshold : float
        All documents were kept whose key is below it.
    """

    parts: dict
    n_tokens: float
    threshold: float

    def below(self, threshold):
        """The documents whose keys are below a threshold that is no higher."""
        if threshold == self.threshold:
            return self
        parts = {uid: [part.below(threshold) for part in some] for uid, some in self.parts.items()}
        return self._replace(parts=parts, threshold=threshold)

    def joined(self, other):
        """Both draws as one."""
        least = min(self.threshold, other.threshold)
        one, two = self.below(least).parts, other.below(least).parts
        parts = {uid: one.get(uid, []) + two.get(uid, []) for uid in {**one, **two}}
        return Draw(parts, self.n_tokens + other.n_tokens, least)


def _cut(draws, threshold):
    """The threshold that cuts all samples of some draws to their room, where they have outgrown that."""
    everything = [part for draw in draws for some in draw.parts.values() for part in some]
    if sum(len(part.sample.mass) for part in everything) <= random_keys.OUTGROWN * _MOST_ENTRIES:
        return threshold
    key = np.concatenate([part.key for part in everything])
    sizes = np.concatenate([np.diff(part.sample.docs.indptr) for part in everything])
    return random_keys.lowered(threshold, key, sizes, _MOST_ENTRIES)


@dataclass(frozen=True, eq=False)
class DocumentProbe(Probe):
    """Documents of chosen topics, to be drawn by their keys. Its finding is a `Draw`.

    Attributes
    ----------
    uids : tuple of int
        Topics whose documents are wanted.
    everything : bool
        Whether documents are wanted as they are, too.
    threshold : float
        Documents with greater keys are not wanted.
    mean_weight : float or None
        Of documents, about; None if they have no weights.
    """

    uids: tuple
    everything: bool
    threshold: float
    mean_weight: float | None

    @property
    def draws_keys(self):
        """Whether documents draw keys, since they may be too many."""
        return self.mean_weight is not None or self.threshold < np.inf

    @classmethod
    def observer(cls, probes, task):
        return Each(_DocumentObserver(probe, task) for probe in probes)

    def added(self, first, second):
        """`Draw` of two parts as one."""
        both = first.joined(second)
        return both.below(_cut([both], both.threshold)) if self.draws_keys else both


class _DocumentObserver(Observer):
    """Draws documents while blocks pass by."""

    def __init__(self, probe, task):
        self._probe, self._rng = probe, task.rng(Purpose.SAMPLE)
        where = {uid: k for k, uid in enumerate(task.uids.tolist())}
        self._columns = {uid: where[uid] for uid in probe.uids}
        self._parts, self._n_tokens = {}, 0.0

    def observe(self, block):
        n_docs = len(block.docs)
        entry_docs = np.repeat(np.arange(n_docs), np.diff(block.docs.indptr))
        for uid, k in self._columns.items():
            self._collect(uid, block.docs, entry_docs, block.doc_counts[:, k], block.resp[:, k])
        if self._probe.everything:
            self._n_tokens += block.weight.sum()
            ones = np.ones(len(entry_docs))
            self._collect(EVERYTHING, block.docs, entry_docs, block.docs.lengths, ones)

    def _collect(self, uid, docs, entry_docs, counts, share):
        """Documents with enough of something, given counts (n_docs,) and responsibilities (n,)."""
        mean_weight, threshold = self._probe.mean_weight, self._probe.threshold
        least = _LEAST_WORDS if docs.z is None else _LEAST_ROWS
        kept, key = counts > least, None
        if self._probe.draws_keys:
            key = self._keys(docs)
            kept &= key < threshold
        if not kept.any():
            return
        entries = np.flatnonzero((share > _LEAST_SHARE) & kept[entry_docs])
        sizes = np.bincount(entry_docs[entries], minlength=len(docs))
        used = sizes > 0
        found = docs.taken(entries, sizes[used], used)
        found = found.weighing(random_keys.weights(found.weight, len(found), mean_weight))
        sample = DocumentSample(found, share[entries].astype(np.float64))
        part = KeyedDocuments(sample, None if key is None else key[used])
        self._parts.setdefault(uid, []).append(part)

    def _keys(self, docs):
        """Keys (n_docs,) of documents; those without entries draw no numbers."""
        key, some = np.full(len(docs), np.inf), np.diff(docs.indptr) > 0
        mean_weight, n = self._probe.mean_weight, np.count_nonzero(some)
        weight = random_keys.weights(
            None if docs.weight is None else docs.weight[some], n, mean_weight
        )
        key[some] = random_keys.keys(n, weight, mean_weight, self._rng)
        return key

    def finding(self, statistics):
        draw = Draw(self._parts, self._n_tokens, self._probe.threshold)
        return draw.below(_cut([draw], draw.threshold)) if self._probe.draws_keys else draw


class DocumentSampling:
    """Pseudo-documents of chosen topics: of each document, what it has of the topic.

    All documents are used where that is possible: a topic made from some of them fits only these. If they
    have too many entries, a random subset is kept. Documents of greater weight are kept more often; their
    weights in the sample correct for this.

    Parameters
    ----------
    wanted : dict
        Its keys are the topics to collect; `EVERYTHING` are documents as they are.
    totals : StatBag
        Without weights, its counts say whether documents may be too many: they have no more entries than
        tokens.
    mean_weight : float or None
        Of documents, about; None if they have no weights.
    """

    def __init__(self, wanted, totals, mean_weight=None):
        known = set(totals.uids.tolist())
        uids = tuple(uid for uid in wanted if uid in known)
        mass = totals.n[totals.positions(uids)].sum() if uids else 0.0
        everything = EVERYTHING in wanted
        self._n_tokens = totals.n.sum()
        if everything:
            mass += self._n_tokens
        # all documents are kept at first, and have keys only if some may have to go: keys are below 1
        threshold = 1.0 if mean_weight is None and mass > _MOST_ENTRIES else np.inf
        self.probe = DocumentProbe(uids, everything, threshold, mean_weight)
        self._batches = {}

    def copy(self):
        """Samples that do not follow these."""
        other = copy(self)
        other._batches = dict(self._batches)
        return other

    @staticmethod
    def wanted(proposals, totals, room, mean_weight=None):
        """All topics that any proposal wants; ``room`` is for rows, of which there are none."""
        return {uid: None for proposal in proposals for uid in proposal.wants(totals)}

    def take(self, number, finding):
        """Keep the documents of a batch; if it was seen earlier in the lap, these are replaced."""
        self._batches[number] = finding
        self._lower(min(self.probe.threshold, finding.threshold))
        if self.probe.draws_keys:
            self._lower(_cut(self._batches.values(), self.probe.threshold))

    def _lower(self, threshold):
        self.probe = replace(self.probe, threshold=threshold)
        self._batches = {number: draw.below(threshold) for number, draw in self._batches.items()}

    def samples(self):
        """Uid -> `DocumentSample`; there is none of everything if batches were left out."""
        found, draws = {}, self._batches.values()
        for draw in draws:
            for uid, more in draw.parts.items():
                found.setdefault(uid, []).extend(more)
        if sum(draw.n_tokens for draw in draws) < _ALL * self._n_tokens:
            found.pop(EVERYTHING, None)
        out = {uid: _joined([part.sample for part in parts]) for uid, parts in found.items()}
        out = {uid: sample for uid, sample in out.items() if len(sample.mass)}
        for uid, (docs, mass) in out.items():
            weight = random_keys.evened(docs.weight, self.probe.mean_weight, self.probe.threshold)
            out[uid] = DocumentSample(docs.weighing(weight), mass).with_frequencies()
        return out

    def uniform(self):
        """No rows are drawn uniformly."""
        return UniformSample.empty()

    @staticmethod
    def samples_after(change, model, samples):
        """Components that were replaced have no samples; their successors have none yet."""
        for uid in change.trial.removed:
            samples.pop(uid, None)

    @staticmethod
    def uniform_after(change, model, uniform, uids, uids_after):
        return UniformSample.empty(len(uids_after))


def _equal_documents(docs):
    """Which documents are equal: the first of each group, and the group of each, as of `equal_rows`."""
    shape = len(docs), int(docs.indices.max(initial=0)) + 1
    return equal_rows(csr_array((docs.counts, docs.indices, docs.indptr), shape=shape))


def _joined(parts):
    docs = [part.docs for part in parts]
    offsets = np.cumsum([0] + [d.indptr[-1] for d in docs])
    indptr = np.concatenate([[0], *(d.indptr[1:] + o for d, o in zip(docs, offsets, strict=False))])
    fields = [
        None if getattr(docs[0], name) is None else stacked([getattr(d, name) for d in docs])
        for name in ("counts", "indices", "z")
    ]
    if docs[0].weight is not None:
        fields.append(np.concatenate([d.weight for d in docs]))
    return DocumentSample(
        Documents(indptr.astype(np.int64), *fields), np.concatenate([p.mass for p in parts])
    )
