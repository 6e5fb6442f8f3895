"""Documents in chunks that lie elsewhere: each chunk has whole documents."""

from __future__ import annotations

from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from ..distributed.source import ChunkInfo
from ..estimator.base import moments_of_rows
from ..estimator.chunks import ChunkReader
from ..inputs.batches import Batch
from .corpus import (
    as_count_rows,
    check_corpus,
    moments_of_counts,
    n_with_words,
    warn_if_weighted,
    weighting_of,
)

# Documents that first topics are made from, or so many for each topic if that is more.
_SEED_DOCUMENTS, _SEED_DOCUMENTS_A_TOPIC = 10_000, 100


class _Documents(NamedTuple):
    """Whether the documents of a chunk are of words, and why they may be tf-idf, or None."""

    of_words: bool
    weighting: str | None


class DocumentReader(ChunkReader):
    """Checks the documents of a chunk where they lie."""

    names = ("X", "groups", "sample_weight")
    unit = "document"

    def batch(self, estimator, X, groups=None, sample_weight=None):
        """`DocumentBatch` of the documents."""
        corpus = check_corpus(
            estimator, X, groups, estimator._with_word_prior(), reset=False,
            sample_weight=sample_weight, of_chunk=True,
        )  # fmt: skip
        return corpus.documents

    def info(self, batch):
        """`ChunkInfo` of a batch."""
        n = len(batch.indptr) - 1
        if batch.x is not None:
            info = self.rows_info(rows_of_documents(batch), n, batch.weight)
            return info._replace(more=_Documents(False, None))
        unit_weight = None if batch.weight is None else batch.weight.sum()
        why = weighting_of(batch, self.estimator.n_features_in_)
        return ChunkInfo(
            batch.n_entries, batch.total_weight, n, unit_weight, None, more=_Documents(True, why)
        )


def rows_of_documents(batch):
    """The rows of documents that are not of words, as a `Batch`."""
    return Batch(None, batch.x, None if batch.weight is None else batch.entry_weight)


def are_of_words(source):
    """Whether the chunks hold documents of words; chunks of rows have groups, all or none."""
    kinds = {info.more.of_words for info in source.known}
    if len(kinds) > 1:
        raise ValueError(
            "Some chunks have groups and others have none; give groups for all, or for none."
        )
    return kinds.pop()


def warn_of_weighting_in_chunks(source):
    """Warn if all chunks look like tf-idf."""
    reasons = [info.more.weighting for info in source.known]
    if all(reasons):
        warn_if_weighted(reasons[0])


def bind_likelihood_in_chunks(observation, source, *, streaming=False):
    """Likelihood of the entries of documents in chunks, as `corpus.bind_likelihood`."""
    if are_of_words(source):
        n = sum(source.each(n_with_words, or_else=0.0))
        moments = moments_of_counts(source.n_units, n, word_counts_of(source))
        return observation.bind(moments, streaming=streaming)
    moments = moments_of_rows(observation, source.with_rows_of(rows_of_documents))
    return as_count_rows(observation.bind(moments, streaming=streaming))


def word_counts_of(source):
    """Counts (V,) of words in all documents, times their weights."""
    counts = source.each(partial(_word_counts, n_features=source.n_features))
    return reduce(np.add, [count for count in counts if count is not None])


def _word_counts(batch, n_features):
    return np.bincount(batch.indices, batch.entry_weight, minlength=n_features)


def sampled_documents(source, n_components, rng):
    """A `DocumentBatch` of documents from all chunks, at most some for each topic."""
    n = max(_SEED_DOCUMENTS, _SEED_DOCUMENTS_A_TOPIC * n_components)
    chosen = np.sort(rng.permutation(source.n_units)[:n])
    sizes = np.array([0 if info is None else info.n_units for info in source.infos])
    ends = np.cumsum(sizes)
    own = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
    own = [some - start for some, start in zip(own, ends - sizes, strict=True)]
    first, *others = (part for part in source.each(_chosen, own) if part is not None)
    return first.joined(others)


def _chosen(batch, docs):
    return batch.chosen(np.isin(np.arange(len(batch.indptr) - 1), docs))
