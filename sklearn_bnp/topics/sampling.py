"""What documents have of chosen components, collected during a lap for proposals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..engine import keys
from ..engine.samples import UniformSample, least_weight
from ..inputs.rows import stacked
from .documents import EVERYTHING, Documents

# A document belongs to a component's sample if it has more than this many tokens of it, and an entry
# if the component has more than this share of it.
_LEAST_COUNT = 1.0
_LEAST_SHARE = 1e-3
# Entries that all samples hold together.
_MOST_ENTRIES = 4_000_000
# Share of the tokens that a sample of everything must have been drawn from.
_ALL = 1.0 - 1e-6


class DocumentCollector:
    """Pseudo-documents of chosen components: of each document, what it has of the component.

    They come from all documents, for a component fitted to some of them only fits these. If that
    would be too many entries, each document is kept with the same probability, but for its weight.

    Parameters
    ----------
    wanted : dict
        Its keys are the components to collect; `EVERYTHING` are documents as they are.
    totals : StatBag
        Without weights, counts from which the probability is found.
    rng : numpy.random.RandomState
    mean_weight : float or None
        Of documents, about; None if they have no weights.
    """

    def __init__(self, wanted, totals, rng, mean_weight=None):
        where = {uid: k for k, uid in enumerate(totals.uids.tolist())}
        self._columns = {uid: where[uid] for uid in wanted if uid in where}
        mass = totals.n[list(self._columns.values())].sum() if self._columns else 0.0
        self._everything = EVERYTHING in wanted
        self._n_tokens, self._tokens, self._seen = totals.n.sum(), {}, 0.0
        if self._everything:
            mass += self._n_tokens
        self._threshold = keys.first_threshold(_MOST_ENTRIES, mass, mean_weight)
        self._rng, self._mean_weight = rng, mean_weight
        self._parts, self._batches = {}, {}

    @staticmethod
    def wanted(proposals, totals, room, mean_weight=None):
        """All components that any proposal wants; ``room`` is for rows, of which there are none."""
        return {uid: None for proposal in proposals for uid in proposal.wants(totals)}

    def observe(self, block):
        n_docs = len(block.docs)
        entry_docs = np.repeat(np.arange(n_docs), np.diff(block.docs.indptr))
        for uid, k in self._columns.items():
            self._collect(uid, block.docs, entry_docs, block.doc_counts[:, k], block.resp[:, k])
        if self._everything:
            lengths = block.docs.lengths
            self._seen += block.weight.sum()
            ones = np.ones(len(entry_docs))
            self._collect(EVERYTHING, block.docs, entry_docs, lengths, ones)

    def _collect(self, uid, docs, entry_docs, counts, share):
        """Documents with enough of something, given counts (n_docs,) and responsibilities (n,)."""
        kept, key = counts > _LEAST_COUNT, None
        if self._threshold < np.inf:
            key = self._keys(docs)
            kept &= key < self._threshold
        if not kept.any():
            return
        entries = np.flatnonzero((share > _LEAST_SHARE) & kept[entry_docs])
        sizes = np.bincount(entry_docs[entries], minlength=len(docs))
        used = sizes > 0
        found = docs.taken(entries, sizes[used], used)
        found = found.weighing(self._weight(found))
        sample = DocumentSample(found, share[entries].astype(np.float64))
        self._parts.setdefault(uid, []).append((sample, None if key is None else key[used]))

    def _keys(self, docs):
        return keys.keys(len(docs), self._weight(docs), self._mean_weight, self._rng)

    def _weight(self, docs):
        """Weights of documents; None if there are none anywhere."""
        return keys.weights(docs.weight, len(docs), self._mean_weight)

    def close(self, batch_id, bag):
        """Keep the documents of a batch; if it is seen again, these are replaced."""
        self._tokens[batch_id], self._seen = self._seen, 0.0
        self._batches[batch_id], self._parts = self._parts, {}
        if self._mean_weight is not None:
            self._cut()

    def _cut(self):
        """Leave out documents if all samples together have outgrown their room."""
        lists = [parts for batch in self._batches.values() for parts in batch.values()]
        everything = [part for parts in lists for part in parts]
        if sum(len(sample.mass) for sample, _ in everything) <= keys.OUTGROWN * _MOST_ENTRIES:
            return
        for parts in lists:  # what need not be left out needs no keys
            parts[:] = [(x, self._keys(x.docs) if key is None else key) for x, key in parts]
        key = np.concatenate([key for parts in lists for _, key in parts])
        sizes = np.concatenate([np.diff(sample.docs.indptr) for sample, _ in everything])
        self._threshold = keys.lowered(self._threshold, key, sizes, _MOST_ENTRIES)
        for parts in lists:
            parts[:] = [_below(*part, self._threshold) for part in parts]

    def samples(self):
        """Uid -> `DocumentSample`; there is none of everything if batches were left out."""
        found = {}
        for parts in self._batches.values():
            for uid, more in parts.items():
                found.setdefault(uid, []).extend(more)
        if sum(self._tokens.values()) < _ALL * self._n_tokens:
            found.pop(EVERYTHING, None)
        out = {uid: _joined([sample for sample, _ in parts]) for uid, parts in found.items()}
        for uid, (docs, mass) in out.items():
            weight = keys.evened(docs.weight, self._mean_weight, self._threshold)
            out[uid] = DocumentSample(docs.weighing(weight), mass)
        return {uid: sample for uid, sample in out.items() if len(sample.mass)}

    def uniform(self):
        """No rows are drawn uniformly."""
        return UniformSample.empty()

    @staticmethod
    def samples_after(trial, samples):
        """Components that were replaced have no samples; their successors have none yet."""
        for uid in trial.removed:
            samples.pop(uid, None)

    @staticmethod
    def uniform_after(trial, uniform, uids, uids_after):
        return UniformSample.empty(len(uids_after))


def _below(sample, key, threshold):
    """The documents of a sample whose keys are below a threshold, and the keys."""
    keep = key < threshold
    docs, entries = sample.docs.chosen(keep)
    return DocumentSample(docs, sample.mass[entries]), key[keep]


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


class DocumentSample(NamedTuple):
    """What documents have of a component.

    Attributes
    ----------
    docs : Documents
        Entries for which the component has some responsibility.
    mass : ndarray, shape (n,)
        That responsibility.
    """

    docs: Any
    mass: np.ndarray

    def __deepcopy__(self, memo):
        return self  # never changed in place

    @property
    def total(self):
        """Tokens."""
        return float(self.mass @ self.docs.entry_weight)

    @property
    def one_token(self):
        """The least mass of a topic that owns a token: the smallest weight, at most 1."""
        return least_weight(self.docs.weight)

    @property
    def least_total(self):
        """Tokens if all documents weighed as little as the lightest: topics of these are part of it."""
        if self.docs.weight is None:
            return self.total
        return float(self.docs.weight.min() * (self.mass @ self.docs.counts))
