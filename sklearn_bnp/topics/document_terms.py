"""Counts of documents in the form that global steps need, and sums over them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from .._kernels import _topics
from ..engine.extra import NO_EXTRA
from .histograms import NOTHING

# Least value of alpha pi_k beside a count: digamma stays finite, and lnG(N + a) is as for a = 0.
TINY = 1e-290


class CountColumns(NamedTuple):
    """How much documents use each topic; the global step needs no more of the documents.

    Counts may be those of documents, or nodes of histograms that stand for them. Empty documents may be
    left out, of both ``n_docs`` and ``lengths``. They tell nothing of the topics and never raise the
    objective: each costs the gap of the bound.

    Attributes
    ----------
    values : ndarray of float64, shape (nnz,)
        Counts N_dk > 0, grouped by topic.
    indptr : ndarray of intp, shape (K + 1,)
        ``values[indptr[k]:indptr[k + 1]]`` belong to topic k.
    weight : ndarray, shape (nnz,), or None
        How often each value counts; once if None.
    n_docs : float
        Weighted number of documents, the sum of ``lengths[1]``.
    lengths : pair of ndarray, shape (m,)
        Lengths T of documents, and how often each counts.
    """

    values: np.ndarray
    indptr: np.ndarray
    weight: np.ndarray | None
    n_docs: float
    lengths: tuple[np.ndarray, np.ndarray]


def lengths_of(totals):
    """`Histogram` of the lengths of the documents that have any tokens."""
    return NOTHING if totals.extra is NO_EXTRA else totals.extra.lengths


def count_columns(totals):
    """`CountColumns` of the components of ``totals``, in their order: nodes of histograms."""
    known = {} if totals.extra is NO_EXTRA else totals.extra.topics
    topics, lengths = [known.get(uid, NOTHING) for uid in totals.uids.tolist()], lengths_of(totals)
    return CountColumns(
        _joined(topic.nodes for topic in topics),
        np.cumsum([0] + [len(topic.weights) for topic in topics]).astype(np.intp),
        _joined(topic.weights for topic in topics),
        lengths.total,
        (lengths.nodes, lengths.weights),
    )


def columns_of_part(part, uids):
    """`CountColumns` of the counts themselves in a `BatchCounts`, and the document (nnz,) of each."""
    found = [part.columns[uid] for uid in uids if uid in part.columns]
    sizes = [len(part.columns[uid].values) if uid in part.columns else 0 for uid in uids]
    docs = np.concatenate([column.docs for column in found] or [np.empty(0, np.int32)])
    lengths = part.lengths[part.lengths > 0]
    times = part.times(part.lengths > 0)
    columns = CountColumns(
        _joined(column.values for column in found),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp),
        None if part.weight is None else part.weight[docs],
        float(times.sum()),
        (lengths, times),
    )
    return columns, docs


def _joined(arrays):
    """The arrays one after another, or an empty one if there are none."""
    return np.concatenate(list(arrays) or [np.empty(0)])


def count_terms(values, indptr, a, weight=None):
    """Sums over the documents that use a topic, one for each topic.

    Equivalent to ``sum_d w_d lnG(N_dk + a_k)`` and ``sum_d w_d psi(N_dk + a_k)``.

    Parameters
    ----------
    values : ndarray, shape (nnz,)
        Counts, grouped by topic.
    indptr : ndarray, shape (K + 1,)
        Where the topics begin in ``values``.
    a : ndarray, shape (K,)
        Parameter that is added to each count of a topic.
    weight : ndarray, shape (nnz,), or None
        Weights of the documents.

    Returns
    -------
    lgamma_sums, digamma_sums : ndarray, shape (K,)
    """
    lgamma_sums, digamma_sums = np.empty(len(a)), np.empty(len(a))
    _topics.count_terms(values, indptr, a, lgamma_sums, digamma_sums, 1, weight)
    return lgamma_sums, digamma_sums


def group_sums(x, indptr):
    """Sums (K,) of the entries of each group; 0 for an empty one."""
    out = np.zeros(len(indptr) - 1)
    used = np.diff(indptr) > 0  # reduceat takes an empty group for one entry
    if used.any():
        out[used] = np.add.reduceat(x, indptr[:-1][used])
    return out


def documents_using(columns):
    """Weighted number D_k of documents that use each topic, shape (K,)."""
    if columns.weight is None:
        return np.diff(columns.indptr).astype(float)
    return group_sums(columns.weight, columns.indptr)


def union_document_gains(pairs, docs, columns, a, union=None):
    """Change of the documents' terms of the objective by each union of two topics, whose pi add up.

    Equivalent to, for each pair (A, B) and with ``c = a_A + a_B``::

        sum_d [lnG(N_dA + N_dB + c) - lnG(c)] - [lnG(N_dA + a_A) - lnG(a_A)]
              - [lnG(N_dB + a_B) - lnG(a_B)].

    Documents that use neither topic add nothing.

    Parameters
    ----------
    pairs : ndarray, shape (P, 2)
        Topics A and B, different ones.
    docs : ndarray of int, shape (nnz,)
        The document of each of ``columns.values``; a document occurs at most once in each topic.
    columns : CountColumns
    a : ndarray, shape (K,)
        Parameters of the documents' prior, as from ``prior``.
    union : float or None, default=None
        The parameter c of every union, if it is not the sum.

    Returns
    -------
    ndarray, shape (P,)
        In nats.
    """
    values, indptr, weight = columns.values, columns.indptr, columns.weight
    a = np.maximum(a, TINY)
    first, second = np.asarray(pairs, dtype=np.intp).reshape(-1, 2).T
    union = a[first] + a[second] if union is None else np.full(len(first), union)
    using = documents_using(columns)
    alone = count_terms(values, indptr, a, weight)[0] - using * gammaln(a)
    gain = -alone[first] - alone[second]

    def sums(x, entries, sizes, c):
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        return count_terms(x, ends, c, None if weight is None else weight[entries])[0]

    in_first = np.zeros(docs.max(initial=-1) + 1)  # N_dA of each document, for one A at a time
    for topic in np.unique(first):
        partners = np.flatnonzero(first == topic)
        c, n_partners = union[partners], len(partners)
        of_a = np.arange(indptr[topic], indptr[topic + 1])
        in_first[docs[of_a]] = values[of_a]
        # all documents of A as if without B, then the change in each document of B
        each_a, sizes = np.tile(of_a, n_partners), np.full(n_partners, len(of_a))
        gain[partners] += sums(values[each_a], each_a, sizes, c) - using[topic] * gammaln(c)
        of_b, sizes = _ranges(indptr[second[partners]], indptr[second[partners] + 1])
        n_a = in_first[docs[of_b]]
        gain[partners] += sums(n_a + values[of_b], of_b, sizes, c) - sums(n_a, of_b, sizes, c)
        in_first[docs[of_a]] = 0.0
    return gain


def _ranges(starts, stops):
    """Indices of all the ranges, one after the other, and the length of each range."""
    sizes = stops - starts
    ends = np.cumsum(sizes)
    return np.arange(sizes.sum()) + np.repeat(starts - ends + sizes, sizes), sizes


def nested_union_gains(pairs, counts, a, weight=None):
    """`union_document_gains` of topics nested in one.

    Parameters
    ----------
    pairs : ndarray of int, shape (n_pairs, 2)
    counts : ndarray, shape (n, K)
        Counts of documents.
    a : ndarray, shape (K,)
        Parameters of the nested topics in the documents' prior.
    weight : ndarray, shape (n,), or None
        Weights of the documents.

    Returns
    -------
    ndarray, shape (n_pairs,)
        In nats.
    """
    topics, docs = np.nonzero(counts.T)
    ends = np.searchsorted(topics, np.arange(counts.shape[1] + 1)).astype(np.intp)
    times = None if weight is None else weight[docs]
    n_docs = len(counts) if weight is None else weight.sum()
    lengths = np.array([0.0]), np.array([n_docs])  # those of the documents do not matter for unions
    there = CountColumns(counts[docs, topics], ends, times, n_docs, lengths)
    return union_document_gains(pairs, docs, there, a)


def log_probability_of_counts(counts, a, weight=None):
    """Log probability of the ordered tokens of documents with counts (n, K), whose weights are Dir(a).

    It is summed over documents, each of which counts ``weight`` (n,) times.
    """
    total, whole = counts.sum(axis=1), a.sum()
    a = np.maximum(a, TINY)
    rises = np.where(counts > 0, gammaln(counts + a) - gammaln(a), 0.0).sum(axis=1)
    rises -= gammaln(total + whole) - gammaln(whole)
    return rises.sum() if weight is None else rises @ weight
