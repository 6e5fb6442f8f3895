"""Documents in batches, and the local and summary step of a batch of them."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from ..engine.l_sparse import Places, largest_shares
from ..engine.statistics import StatBag
from ..inputs.batches import even_slices
from ..inputs.content_hashes import add_numbers, add_rows, unless_ones
from ..inputs.groups import even_cuts, group_cuts
from ..inputs.rows import (
    at_hand,
    joined_numbers,
    mean_weight,
    part,
    stacked,
    values_per_row,
)
from .counts import BatchCounts, DocumentCounts
from .documents import Documents, weighted_counts
from .local import document_step, document_summary

# Numbers of responsibilities that a block which somebody observes holds at a time.
_BLOCK_NUMBERS = 1_000_000
# Entries of a block that nobody observes.
_BLOCK_ENTRIES = 500_000


class DocumentBlock(NamedTuple):
    """Entries of some documents with what the local step found for them.

    Attributes
    ----------
    docs : Documents
    first : int
        Position in the batch of the first document.
    weight : ndarray, shape (n,)
        How often each entry counts.
    resp : ndarray, shape (n, K)
    doc_counts : ndarray, shape (n_docs, K)
    uids : ndarray, shape (K,)
        Components that the columns stand for.
    theta : ndarray, shape (K, P), or None
        Coefficients under which entries that are rows were shared out.
    places : Places or None
        Of the components in each entry if responsibilities are L-sparse.
    """

    docs: Documents
    first: int
    weight: np.ndarray
    resp: np.ndarray
    doc_counts: np.ndarray
    uids: np.ndarray
    theta: np.ndarray | None = None
    places: Places | None = None


class DocumentBatch(NamedTuple):
    """Whole documents under a name.

    Attributes
    ----------
    batch_id : object
    indptr : ndarray of int64, shape (n_docs + 1,)
        Document d has the entries ``indptr[d]:indptr[d + 1]``.
    counts : ndarray, shape (n,), or None
        How often each entry occurs; once if None.
    indices : ndarray, shape (n,), or None
        Word types, for text.
    x : ndarray, shape (n, D), or None
        Rows of data, for everything else.
    resp : ndarray, shape (n, K), or None
        Responsibilities to summarise instead of a local step.
    weight : ndarray of float64, shape (n_docs,), or None
        How many equal documents each stands for; one if None.
    """

    batch_id: object
    indptr: np.ndarray
    counts: np.ndarray | None = None
    indices: np.ndarray | None = None
    x: np.ndarray | None = None
    resp: np.ndarray | None = None
    weight: np.ndarray | None = None

    @property
    def parts(self):
        """The batch itself is its only part."""
        return (self,)

    def load(self):
        """The batch, which is here."""
        return self

    @property
    def n_entries(self):
        return int(self.indptr[-1])

    @property
    def n_documents(self):
        """Documents that all of them stand for."""
        return float(len(self.indptr) - 1 if self.weight is None else self.weight.sum())

    @property
    def total_weight(self):
        """Tokens."""
        if self.counts is None and self.weight is None:
            return float(self.n_entries)
        return float(np.sum(self.entry_weight, dtype=float))

    @property
    def mean_weight(self):
        """Mean weight of the documents that have entries; None if they have no weights."""
        return None if self.weight is None else mean_weight(self.weight[self.has_entries])

    @property
    def entry_weight(self):
        """How often each entry (n,) counts in sums over documents."""
        counts = np.ones(self.n_entries) if self.counts is None else self.counts
        return weighted_counts(counts, self.indptr, self.weight)

    def content_hash(self):
        """Identity of the batch by its content."""
        digest = hashlib.blake2b(digest_size=16)
        for field in (self.indptr, self.counts, self.indices):
            add_numbers(digest, field)
        if self.x is not None:
            add_rows(digest, self.x)
        add_numbers(digest, unless_ones(self.weight))
        return digest.hexdigest()

    @property
    def values_per_row(self):
        return None if self.x is None else values_per_row(self.x)

    def n_values(self, n_features):
        """Numbers that the entries are stored in; a row that is not sparse has ``n_features``."""
        return self.n_entries * (2 if self.x is None else self.values_per_row or n_features)

    def slices(self):
        """Slices of at most `BLOCK_ROWS` entries."""
        return even_slices(self.n_entries)

    @property
    def n_units(self):
        """Number of documents: a batch may be cut between any two."""
        return len(self.indptr) - 1

    @property
    def has_entries(self):
        """Whether each document (n_docs,) has any entries, such as words."""
        return np.diff(self.indptr) > 0

    def even_cuts(self, n):
        """Cuts (at most n + 1,) into ``n`` parts with the same number of documents that have entries."""
        return even_cuts(self.indptr, n)

    def joined(self, others):
        """All documents of this batch and of ``others``, without responsibilities."""
        batches = [self, *others]
        shift = np.cumsum([0, *(batch.n_entries for batch in batches)])
        indptr = [batch.indptr[1:] + n for batch, n in zip(batches, shift[:-1], strict=True)]
        counts, weight = (
            joined_numbers([getattr(b, name) for b in batches], [getattr(b, size) for b in batches])
            for name, size in (("counts", "n_entries"), ("weight", "n_units"))
        )
        return DocumentBatch(
            None, np.concatenate([[0], *indptr]), counts,
            None if self.indices is None else np.concatenate([b.indices for b in batches]),
            None if self.x is None else stacked([at_hand(b.x) for b in batches]), None, weight,
        )  # fmt: skip

    def kept(self):
        """The batch with arrays of its own, which do not change with the user's; without responsibilities."""
        indptr, counts, indices, weight = (
            None if field is None else np.array(field)
            for field in (self.indptr, self.counts, self.indices, self.weight)
        )
        x = self.x.copy() if issparse(self.x) else None if self.x is None else np.array(self.x)
        return DocumentBatch(self.batch_id, indptr, counts, indices, x, None, weight)

    def part(self, batch_id, first, last):
        """The documents from ``first`` to before ``last``, under a name."""
        indptr = self.indptr[first : last + 1]
        rows = slice(int(indptr[0]), int(indptr[-1]))
        fields = (self.counts, self.indices, self.x, self.resp)
        return DocumentBatch(
            batch_id, indptr - indptr[0], *(None if f is None else part(f, rows) for f in fields),
            None if self.weight is None else self.weight[first:last],
        )  # fmt: skip

    def restricted(self, entries):
        """The documents with those of their entries for which ``entries`` (boolean) holds."""
        kept = np.concatenate([[0], np.cumsum(entries)]).astype(np.int64)
        fields = (self.counts, self.indices, self.x, self.resp)
        return DocumentBatch(
            self.batch_id, kept[self.indptr],
            *(None if f is None else f[entries] for f in fields), self.weight,
        )  # fmt: skip

    def chosen(self, docs):
        """The documents ``docs`` (boolean, one a document)."""
        found = self.restricted(np.repeat(docs, np.diff(self.indptr)))
        weight = None if self.weight is None else self.weight[docs]
        return found._replace(indptr=found.indptr[np.append(True, docs)], weight=weight)

    def documents(self, first, last, prepare):
        """`Documents` from ``first`` to before ``last``; rows go through ``prepare``."""
        indptr = self.indptr[first : last + 1]
        rows = slice(int(indptr[0]), int(indptr[-1]))
        counts = np.ones(rows.stop - rows.start) if self.counts is None else self.counts[rows]
        return Documents(
            np.ascontiguousarray(indptr - indptr[0], dtype=np.int64),
            np.ascontiguousarray(counts, dtype=np.float64),
            None if self.indices is None else np.ascontiguousarray(self.indices[rows], np.int32),
            None if self.x is None else prepare(at_hand(part(self.x, rows))),
            None if self.weight is None else self.weight[first:last],
        )

    def cuts(self, n_entries):
        """Positions that cut the documents into blocks of about so many entries."""
        return group_cuts(self.indptr, n_entries)


def _more(total, step):
    """A `StatBag` with the sums of one more block, in the memory that it has."""
    total.s[...] += step.s
    total.entropy[...] += step.entropy
    return total


def document_pass(batch, likelihood, params, uids, observers, carry, settings):
    """`StatBag` of a batch of documents after its local step.

    Parameters
    ----------
    batch : DocumentBatch
    params : TopicParams
    observers : list of Observer
    carry : BatchCounts or None
        Counts of the documents at their last visit, from which they start.
    settings : DocumentSettings
    """
    total = StatBag.zeros(uids, likelihood.n_statistics)
    names, parts, lengths = uids.tolist(), [], []
    before = None if carry is None else carry.dense(names)
    # a name may come back with other documents
    goes_on = before is not None and len(before) == batch.n_units
    start = params.starting_counts(before) if goes_on else None
    observed = len(observers) > 0
    size = max(1, _BLOCK_NUMBERS // max(1, len(uids))) if observed else _BLOCK_ENTRIES
    for first, last in pairwise(batch.cuts(size)):
        docs = batch.documents(first, last, likelihood.prepare)
        if batch.resp is None:
            step = document_step(
                likelihood, params.theta, docs, params.prior, settings,
                start=None if start is None else start[first:last], want_resp=observed,
            )  # fmt: skip
        else:
            rows = slice(int(batch.indptr[first]), int(batch.indptr[last]))
            resp = np.asarray(batch.resp[rows], dtype=float)
            step = document_summary(likelihood, docs, largest_shares(resp, settings.n_nonzero))
        total = total._replace(s=step.s, entropy=step.entropy) if not parts else _more(total, step)
        parts.append(step.counts)
        lengths.append(docs.lengths)
        if observed:
            theta = None if likelihood.words or batch.resp is not None else params.theta
            places = None if settings.n_nonzero is None else Places(step.resp, settings.n_nonzero)
            block = DocumentBlock(
                docs, first, docs.entry_weight, step.resp, step.counts, uids, theta, places
            )
            for observer in observers:
                observer.observe(block)
    part = BatchCounts.of(np.concatenate(parts), np.concatenate(lengths), names, batch.weight)
    return total._replace(extra=DocumentCounts.of({batch.batch_id: part}))
