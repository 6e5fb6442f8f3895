"""The topics of new documents under topics that are known.

Design note. In a fit, all unknowns have distributions of their own, and the objective asks for variational
steps in each document. To predict, nothing but a document's shares is unknown, and these can be integrated
out. What is left asks of each token what the others of its document have; see the kernel. Steps with
``exp(psi(N + alpha))`` starve topics of less than a token, and most topics of a short document are of
that kind. From the steps here there is also nothing to restart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._kernels._collapsed import collapsed_shares
from .._kernels.threads import threads_for_collapsed_documents

# With such a prior a topic that nobody else of the document has is out.
_LEAST_PRIOR = 1e-290


class Inferred(NamedTuple):
    """Expected counts (n_docs, K) of the topics in documents, and shares (n, K) of each entry or None."""

    counts: np.ndarray
    resp: np.ndarray | None


def table_of_words(means):
    """Probabilities (V, K) of words in topics with ``means`` (K, V), each word's up to a factor."""
    with np.errstate(divide="ignore"):
        return _table(np.log(means.T))


def table_of_rows(likelihood, prior, s, z):
    """Predictive densities (n, K) of rows ``z`` in topics with statistics ``s``, up to a factor a row."""
    return _table(np.asarray(likelihood.log_predictive(prior, s, z), dtype=np.float64))


def _table(log_density):
    """Densities with a largest number of 1 in each row; rows that are out of range say nothing."""
    most = log_density.max(axis=1, keepdims=True)
    log_density = np.where(most > -np.inf, log_density - np.maximum(most, -1e300), 0.0)
    return np.ascontiguousarray(np.exp(log_density, out=log_density))


def infer(table, docs, prior, max_iter, tol, *, want_resp=False, n_threads=1):
    """`Inferred` topics of documents.

    Parameters
    ----------
    table : ndarray of float64, shape (M, K)
        Likelihoods of words, or of the rows of ``docs``, with a largest number of 1 in each row.
    docs : Documents
    prior : ndarray, shape (K,)
        Parameters of the Dirichlet prior of a document's shares.
    max_iter : int
    tol : float
        Documents end when no step moves more tokens of any topic.
    """
    counts = np.empty((len(docs), len(prior)))
    resp = np.empty((len(docs.counts), len(prior))) if want_resp else None
    prior = np.maximum(prior, _LEAST_PRIOR)
    n_threads = threads_for_collapsed_documents(len(docs.counts), len(prior), n_threads)
    collapsed_shares(
        table, docs.indptr, docs.indices, docs.counts, prior, counts, resp, max_iter, tol, n_threads
    )
    return Inferred(counts, resp)


def expected_shares(counts, doc_prior):
    """Expected shares (n_docs, K) of topics with ``counts`` (n_docs, K), for weights ``doc_prior`` (K,)."""
    shares = counts + doc_prior
    return shares / shares.sum(axis=1, keepdims=True)
