"""The local step of documents, for whatever likelihood their entries have.

Design note
-----------
(a) An *entry* of a document is a word type with its count, or a row of data. The kernel sees a table
    of likelihoods, one row an item: for words the items are the V types and the table is made once
    a pass; for rows each row is an item, and the table is the mixture's local step under equal
    weights, which is the likelihood up to a factor a row.
(b) Statistics of words are summed by the kernel into the table's shape; those of rows by the matrix
    product that mixtures use.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array, csr_array

from .._kernels import _topics as kernel
from .._kernels.threads import threads_for_documents
from .documents import DocumentStep

# With such a prior a component that has no count is out.
_LEAST_PRIOR = 1e-290


def document_parameters(likelihood, prior, s):
    """Parameters that `document_step` takes, of components with statistics ``s`` (K, P).

    They are a table (V, K) of ``exp E[log phi_kv]`` if entries are words, and coefficients (K, P) if rows.
    """
    return (
        likelihood.word_table(prior, s) if likelihood.words else likelihood.coefficients(prior, s)
    )


def document_step(likelihood, params, docs, doc_prior, settings, **given):
    """Local step of documents, `DocumentStep`; see `step_of_words` and `step_of_rows`."""
    if likelihood.words:
        return step_of_words(params, docs, doc_prior, settings, **given)
    return step_of_rows(likelihood, params, docs, doc_prior, settings, **given)


def document_summary(likelihood, docs, resp, coef=None):
    """`DocumentStep` of documents under given responsibilities (n, K); ``coef`` as in `summarise`."""
    if likelihood.words:
        return summary_of_words(likelihood.n_features, docs, resp)
    return summary_of_rows(likelihood, docs, resp, coef)


def step_of_words(
    table, docs, prior, settings, *, mass=None, start=None, places=None, want_resp=False
):
    """`DocumentStep` of documents of words; ``table`` (V, K) holds ``exp E[log phi_kv]``.

    Parameters
    ----------
    mass : ndarray, shape (n,), or None
        What of each entry is shared out, in a restricted step; 1 if None.
    start : ndarray, shape (n_docs, K), or None
        Counts to go on from.
    places : ndarray of int, shape (n,), or None
        How many components may share each entry; as many as ``settings`` say if None.
    want_resp : bool
        Return responsibilities too.
    """
    s = np.zeros((len(table), table.shape[1]))
    counts, resp, entropy = _solved(
        table, docs, prior, settings, s, mass=mass, start=start, places=places, want_resp=want_resp
    )
    out = np.empty((table.shape[1], len(table) + 1))
    out[:, :-1] = s.T
    out[:, -1] = s.sum(axis=0)
    return DocumentStep(out, entropy, counts, resp)


def step_of_rows(
    likelihood, coef, docs, prior, settings, *, mass=None, start=None, places=None, want_resp=True
):
    """`DocumentStep` of documents of rows; ``coef`` (K, P) gives ``E[log p(x | k)]``.

    Other arguments as in `step_of_words`. Responsibilities are there whether wanted or not: the
    statistics are made from them.
    """
    table = likelihood.local_step(
        coef, docs.z, None, None, None, None, n_threads=settings.n_threads
    )
    counts, resp, entropy = _solved(
        table, docs, prior, settings, None, mass=mass, start=start, places=places, want_resp=True
    )
    return DocumentStep(_sums_of_rows(likelihood, docs, resp, coef), entropy, counts, resp)


def _sums_of_rows(likelihood, docs, resp, coef=None):
    s = np.empty((resp.shape[1], likelihood.n_statistics))
    weighted = resp * docs.entry_weight[:, np.newaxis].astype(resp.dtype)
    likelihood.summarise(docs.z, weighted, s, coef=coef)
    return s


def summary_of_rows(likelihood, docs, resp, coef=None):
    """`DocumentStep` of documents of rows under given responsibilities (n, K)."""
    resp = np.ascontiguousarray(resp, dtype=docs.z.dtype)
    return DocumentStep(_sums_of_rows(likelihood, docs, resp, coef), *_given(docs, resp), resp)


def summary_of_words(n_types, docs, resp):
    """`DocumentStep` of documents of words under given responsibilities (n, K)."""
    n = len(docs.counts)
    entries = csc_array((docs.entry_weight, docs.indices, np.arange(n + 1)), shape=(n_types, n))
    s = np.empty((resp.shape[1], n_types + 1))
    s[:, :-1] = (entries @ resp).T
    s[:, -1] = s[:, :-1].sum(axis=1)
    return DocumentStep(s, *_given(docs, resp), resp)


def _given(docs, resp):
    """Entropies (K,) and counts (n_docs, K) of given responsibilities."""
    log_resp = np.log(np.where(resp > 0, resp, 1.0))
    entropy = -np.einsum("n,nk,nk->k", docs.entry_weight, resp, log_resp, dtype=float)
    rows = csr_array((docs.counts, np.arange(len(resp)), docs.indptr), shape=(len(docs), len(resp)))
    return entropy, rows @ resp.astype(np.float64, copy=False)


def _solved(table, docs, prior, settings, s, *, mass, start, places, want_resp):
    """Counts (n_docs, K) and responsibilities (n, K) or None after steps, and entropies (K,).

    Sums of responsibilities go into ``s``, of the shape of the table of likelihoods, unless it is None.
    """
    K = table.shape[1]
    counts, entropy = np.empty((len(docs), K)), np.zeros(K)
    resp = np.empty((len(docs.counts), K), dtype=table.dtype) if want_resp else None
    most = settings.n_nonzero or K
    if places is not None:
        places = np.minimum(places, K).astype(np.int32)
        most = int(places.max(initial=1))
    n_threads = threads_for_documents(len(docs.counts), K, settings.n_threads)
    kernel.document_step(
        table, docs.indptr, docs.indices, docs.counts, mass,
        np.maximum(prior, _LEAST_PRIOR), start, counts,
        settings.cold or start is None, settings.max_iter, settings.tol, settings.n_restarts,
        most, resp, s, entropy, None, n_threads, docs.weight, places,
    )  # fmt: skip
    return counts, resp, entropy
