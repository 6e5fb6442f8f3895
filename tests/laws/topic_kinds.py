"""Corpora of words and of rows, and priors of documents: what laws of topic models run over."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.moments import column_moments
from sklearn_bnp.likelihood.multinomial import MultinomialLikelihood, dirichlet_prior
from sklearn_bnp.topics.batch import DocumentBatch
from sklearn_bnp.topics.weights import DirichletDocuments, HDPDocuments
from tests.reference import topics
from tests.reference.families import DirichletMultinomial

from .families import FAMILIES

N_TYPES = 12

# ---------------------------------------------------------------------- the registry


class Corpus(NamedTuple):
    """Documents for a learner, and as the twins see them.

    Attributes
    ----------
    batch : DocumentBatch
        All of them.
    rows, weight, doc : ndarray, shapes (n, D), (n,) and (n,)
        Entries as rows, how often each occurs, and its document.
    labels : ndarray, shape (n,)
        The true topics.
    """

    batch: DocumentBatch
    rows: np.ndarray
    weight: np.ndarray
    doc: np.ndarray
    labels: np.ndarray

    @property
    def n_docs(self):
        return len(self.batch.indptr) - 1

    def part(self, docs):
        """A corpus of these documents, in this order."""
        indptr = self.batch.indptr
        entries = np.concatenate([np.arange(indptr[d], indptr[d + 1]) for d in docs] + [[]]).astype(
            int
        )
        sizes = np.diff(indptr)[docs]
        fields = (self.batch.counts, self.batch.indices, self.batch.x, self.batch.resp)
        batch = DocumentBatch(
            self.batch.batch_id, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            *(None if f is None else f[entries] for f in fields),
        )  # fmt: skip
        doc = np.repeat(np.arange(len(docs)), sizes)
        return Corpus(batch, self.rows[entries], self.weight[entries], doc, self.labels[entries])


class Kind(NamedTuple):
    """What documents consist of: ``corpus(rng, n_docs, mean_length)``, and how the model sees it."""

    name: str
    corpus: Callable
    likelihood: Callable
    twin: Callable


class Prior(NamedTuple):
    """A prior of documents and, for K topics, its twin."""

    name: str
    allocation: object
    twin: Callable


def _shares(rng, n_docs, mean_length):
    """Lengths, of which the third and the last are zero, and topics of the tokens."""
    lengths = rng.poisson(mean_length, n_docs)
    if n_docs > 3:
        lengths[[2, -1]] = 0
    pi = rng.dirichlet([0.5, 0.35, 0.2], size=n_docs)
    labels = [rng.choice(3, size=T, p=p) for T, p in zip(lengths, pi, strict=True)]
    return lengths, np.concatenate(labels).astype(int)


def words(rng, n_docs=40, mean_length=40, spread=1.0):
    """Twelve types, of which each of three topics prefers four; each type once a document, counted."""
    lengths, labels = _shares(rng, n_docs, mean_length)
    phi = 0.15 * spread / 12 + (1.0 - 0.15 * spread) * np.kron(np.eye(3), [0.4, 0.3, 0.2, 0.1])
    tokens = np.array([rng.choice(N_TYPES, p=phi[z]) for z in labels], dtype=int)
    doc = np.repeat(np.arange(n_docs), lengths)
    table = np.zeros((n_docs, N_TYPES))
    np.add.at(table, (doc, tokens), 1.0)
    doc, types = np.nonzero(table)
    counts = table[doc, types]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(doc, minlength=n_docs))]).astype(np.int64)
    batch = DocumentBatch("all", indptr, counts, types.astype(np.int32))
    # the usual topic of a type: tokens of one type share responsibilities
    return Corpus(batch, topics.one_hot(types, N_TYPES), counts, doc, types // 4)


def rows_of(family):
    """Documents of rows of a family of the registry of mixtures."""

    def corpus(rng, n_docs=40, mean_length=20, spread=1.0):
        lengths, labels = _shares(rng, n_docs, mean_length)
        pool, found = family.rows(rng, 12 * len(labels) + 60, spread)
        rows = np.empty((len(labels), pool.shape[1]))
        for k in range(3):
            rows[labels == k] = pool[found == k][: np.sum(labels == k)]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        doc = np.repeat(np.arange(n_docs), lengths)
        return Corpus(DocumentBatch("all", indptr, x=rows), rows, np.ones(len(rows)), doc, labels)

    return corpus


def _likelihood_of_words(corpus):
    return MultinomialLikelihood(dirichlet_prior(np.full(N_TYPES, 0.2)), 40.0)


def _likelihood_of_rows(family):
    def likelihood(corpus):
        moments = column_moments(
            [Batch(None, corpus.rows)], covariance=family.observation.needs_covariance
        )
        return family.observation.bind(moments)

    return likelihood


def _named(name):
    return next(family for family in FAMILIES if family.name == name)


KINDS = [
    Kind("words", words, _likelihood_of_words, lambda lik, prior: DirichletMultinomial(prior.lam)),
    *(
        Kind(name, rows_of(_named(name)), _likelihood_of_rows(_named(name)), _named(name).twin)
        for name in ("full", "bernoulli")
    ),
]

PRIORS = [
    Prior("hdp", HDPDocuments(1.0, 1.0), lambda K: topics.HDP(1.0, 1.0)),
    Prior("hdp-3", HDPDocuments(3.0, 0.4), lambda K: topics.HDP(3.0, 0.4)),
    Prior("dirichlet", DirichletDocuments(0.5), lambda K: topics.LDA(0.5, K)),
    Prior("dirichlet-auto", DirichletDocuments(), lambda K: topics.LDA(None, K)),
]
