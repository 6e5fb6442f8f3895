"""What documents have of chosen components, collected during a lap for proposals."""

from __future__ import annotations

import numpy as np

from ..proposals.base import DocumentSample
from .corpus import EVERYTHING, Documents
from .rows import stacked

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
    would be too many entries, each document is kept with the same probability.

    Parameters
    ----------
    wanted : dict
        Its keys are the components to collect; `EVERYTHING` are documents as they are.
    totals : StatBag
        Counts from which the probability is found.
    rng : numpy.random.RandomState
    """

    def __init__(self, wanted, totals, rng):
        where = {uid: k for k, uid in enumerate(totals.uids.tolist())}
        self._columns = {uid: where[uid] for uid in wanted if uid in where}
        mass = totals.n[list(self._columns.values())].sum() if self._columns else 0.0
        self._everything = EVERYTHING in wanted
        self._n_tokens, self._tokens, self._seen = totals.n.sum(), {}, 0.0
        if self._everything:
            mass += self._n_tokens
        # a token of weight w takes the room of one
        self._rate = min(1.0, _MOST_ENTRIES * totals.docs.mean_weight / max(mass, 1e-12))
        self._rng = rng
        self._parts, self._batches = {}, {}

    @staticmethod
    def wanted(proposals, totals, room):
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
        kept = counts > _LEAST_COUNT
        if self._rate < 1.0:
            kept &= self._rng.random_sample(len(docs)) < self._rate
        if not kept.any():
            return
        entries = np.flatnonzero((share > _LEAST_SHARE) & kept[entry_docs])
        sizes = np.bincount(entry_docs[entries], minlength=len(docs))
        self._parts.setdefault(uid, []).append((docs, entries, share[entries], sizes))

    def close(self, batch_id, bag):
        """Keep the documents of a batch; if it is seen again, these are replaced."""
        self._tokens[batch_id], self._seen = self._seen, 0.0
        self._batches[batch_id] = {
            uid: [_taken(*part) for part in parts] for uid, parts in self._parts.items()
        }
        self._parts = {}

    def samples(self):
        """Uid -> `DocumentSample`; there is none of everything if batches were left out."""
        found = {}
        for parts in self._batches.values():
            for uid, more in parts.items():
                found.setdefault(uid, []).extend(more)
        if sum(self._tokens.values()) < _ALL * self._n_tokens:
            found.pop(EVERYTHING, None)
        return {uid: _joined(parts) for uid, parts in found.items()}

    def uniform(self):
        """No rows are drawn uniformly."""
        return np.empty((0, 0)), np.empty((0, 0))

    @staticmethod
    def samples_after(trial, samples):
        """Components that were replaced have no samples; their successors have none yet."""
        for uid in trial.removed:
            samples.pop(uid, None)

    @staticmethod
    def uniform_after(trial, uniform, uids, uids_after):
        return np.empty((0, 0)), np.empty((0, len(uids_after)))


def _taken(docs, entries, share, sizes):
    """The chosen entries of a block, as documents of their own, and their responsibilities."""
    used = sizes > 0
    return DocumentSample(docs.taken(entries, sizes[used], used), share.astype(np.float64))


def _joined(parts):
    docs = [part.docs for part in parts]
    offsets = np.cumsum([0] + [d.indptr[-1] for d in docs])
    indptr = np.concatenate([[0], *(d.indptr[1:] + o for d, o in zip(docs, offsets, strict=False))])
    fields = [
        None if getattr(docs[0], name) is None else stacked([getattr(d, name) for d in docs])
        for name in ("counts", "indices", "z")
    ]
    if any(d.weight is not None for d in docs):  # batches without weights count once
        weights = [np.ones(len(d)) if d.weight is None else d.weight for d in docs]
        fields.append(np.concatenate(weights))
    return DocumentSample(
        Documents(indptr.astype(np.int64), *fields), np.concatenate([p.mass for p in parts])
    )
