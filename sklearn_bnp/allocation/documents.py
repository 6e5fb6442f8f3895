"""Priors of the topics of documents: hierarchical Dirichlet process and symmetric Dirichlet.

Design note. A document's weights have q(pi_d) = Dir(theta_d), and given the counts N_dk the best
theta_d is known, (5.45), (5.46). It is put into the objective, which leaves a function of the
counts and of the global sticks alone. (Alternating between theta and the sticks instead, as in the
thesis, ends tens of nats below after a dozen rounds.) For the HDP

    F = D K log alpha + sum_k [c_B(1, gamma) - c_B(a_k, b_k)] + sum_k (D + 1 - a_k) E[log u_k]
        + sum_k (D (K + 1 - k) + gamma - b_k) E[log(1 - u_k)]
        + sum_dk lnG(N_dk + alpha pi_k) + D lnG(alpha pi_>) - sum_d lnG(T_d + alpha),

(5.25) plus (5.27) at its optimum, with a = rho omega, b = (1 - rho) omega and pi = E[pi]. It is
maximised jointly over rho and omega. As written it is a difference of large numbers: each of the
D K terms lnG(alpha pi_k) of unused topics cancels against a log(alpha pi_k) of the surrogate bound
(5.23). With lnG(x) = lnG(1 + x) - log x it becomes what is computed here,

    F = stick_terms(D + 1, D (K + 1 - k) + gamma) - D log alpha - sum_d lnG(T_d + alpha)
        + sum_{dk: N_dk > 0} [lnG(N_dk + alpha pi_k) + log(alpha pi_k)]
        + sum_k (D - D_k) lnG(1 + alpha pi_k) + D lnG(1 + alpha pi_>),

for D_k documents that use topic k. Nothing in it is large, or undefined, for however small a pi_k.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, expit, gammaln

from .._kernels import _topics
from ._stick_breaking import (
    Sticks,
    StickTerms,
    balanced_omega,
    chain_to_logits,
    log_weights,
    logit,
    logits_of_weights,
    maximise_over_sticks,
    stick_terms,
)

# Least value of alpha pi_k beside a count: digamma stays finite, and lnG(N + a) is as for a = 0.
_TINY = 1e-290


class CountColumns(NamedTuple):
    """What a global step knows of the documents: how much each of them uses each topic."""

    values: np.ndarray  # (nnz,) float64 > 0: N_dk where topic k is used, grouped by topic
    indptr: np.ndarray  # (K + 1,) intp: values[indptr[k]:indptr[k + 1]] belong to topic k
    weight: np.ndarray | None  # (nnz,) weight of each value's document; None if all are 1
    n_docs: float  # weighted number of documents: the sum of lengths[1]
    lengths: tuple[np.ndarray, np.ndarray]  # (m,) lengths T, (m,) weighted counts of documents

    # An empty document may be left out, of n_docs and lengths both. It never raises the objective,
    # in which it has no part but the gap of the surrogate bound.


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
        What is added to each count of a topic.
    weight : ndarray, shape (nnz,), or None
        Weights of the documents.

    Returns
    -------
    lgamma_sums, digamma_sums : ndarray, shape (K,)
    """
    lgamma_sums, digamma_sums = np.empty(len(a)), np.empty(len(a))
    _topics.count_terms(values, indptr, a, lgamma_sums, digamma_sums, 1, weight)
    return lgamma_sums, digamma_sums


def _group_sums(x, indptr, weight=None):
    """Sums (K,) of the weighted entries of each group; 0 for an empty one."""
    out = np.zeros(len(indptr) - 1)
    used = np.diff(indptr) > 0  # reduceat takes an empty group for one entry
    if used.any():
        out[used] = np.add.reduceat(x if weight is None else x * weight, indptr[:-1][used])
    return out


def _documents_using(columns):
    """Weighted number D_k of documents that use each topic, shape (K,)."""
    if columns.weight is None:
        return np.diff(columns.indptr).astype(float)
    return _group_sums(columns.weight, columns.indptr)


class DocumentAllocation(ABC):
    """Prior over the topic weights of documents, with its variational posterior.

    The documents' weights pi_d are always at their optimum given the counts N_dk: the objective is
    a function of the counts and of the global parameters, which are held in ``Sticks``. All methods
    are pure functions. Topics are in the order in which the caller holds them; for the HDP that
    should be by decreasing mass.
    """

    @abstractmethod
    def objective(self, sticks, columns):
        """Allocation term of the objective, without the entropy of the assignments.

        Parameters
        ----------
        sticks : Sticks
            Global parameters.
        columns : CountColumns
            Counts of the documents.

        Returns
        -------
        float
            A lower bound of ``E_q[log p(z, pi, u) - log q(pi, u)]``, in nats.
        """

    @abstractmethod
    def optimise(self, columns, start=None, max_iter=100):
        """Global parameters that maximise the objective, and its value there.

        Parameters
        ----------
        columns : CountColumns
            Counts of the documents.
        start : Sticks or None, default=None
            Where to start; the value is never lower than the one there. By default, as ``start``
            has it for the masses in ``columns``.
        max_iter : int, default=100
            Largest number of iterations.

        Returns
        -------
        sticks : Sticks
        value : float
        """

    @abstractmethod
    def start(self, mass, n_docs):
        """Sticks to start from, for topics of these masses (K,) in this many documents."""

    @abstractmethod
    def prior(self, sticks):
        """Parameters (K,) of the Dirichlet prior of a document's weights, for the local step."""

    @abstractmethod
    def weights(self, sticks):
        """``E[pi_k]`` (K,); they leave ``rest(sticks)`` for topics that are not there yet."""

    @abstractmethod
    def rest(self, sticks):
        """``E[pi_>]``, the mass of all topics that are not there yet."""


class HDPDocuments(DocumentAllocation):
    """Hierarchical Dirichlet process: ``pi_d ~ Dir(alpha pi)``, pi by stick-breaking.

    Hughes (2016), Sec. 5.1 to 5.3.2; (5.25) and (5.27) with theta at its optimum.

    Parameters
    ----------
    concentration : float, default=1.0
        gamma > 0: ``u_k ~ Beta(1, gamma)``; how many topics there are.
    doc_concentration : float, default=1.0
        alpha > 0: how much the documents' weights are like the global ones.
    """

    def __init__(self, concentration=1.0, doc_concentration=1.0):
        self.concentration = concentration
        self.doc_concentration = doc_concentration

    def objective(self, sticks, columns):
        return self._problem(columns)(logit(sticks.rho), np.log(sticks.omega)).value

    def optimise(self, columns, start=None, max_iter=100):
        if start is None:
            start = self.start(_group_sums(columns.values, columns.indptr), columns.n_docs)
        problem = self._problem(columns)
        return maximise_over_sticks(problem, start, problem.ones, problem.zeros, max_iter)

    def _problem(self, columns):
        return _StickProblem(columns, self.concentration, self.doc_concentration)

    def start(self, mass, n_docs):
        mass = np.asarray(mass, dtype=float)
        # About one document's share for what has no mass, and for what is not there yet.
        floor = 1.0 / (1.0 + n_docs)
        weights = np.append(np.maximum(mass / max(mass.sum(), _TINY), floor), floor)
        logit_rho = logits_of_weights(weights)
        ones, zeros = _beta_counts(n_docs, len(mass), self.concentration)
        return Sticks(expit(logit_rho), balanced_omega(logit_rho, ones, zeros))

    def prior(self, sticks):
        return self.doc_concentration * self.weights(sticks)

    def weights(self, sticks):
        left = np.concatenate([[1.0], np.cumprod(1.0 - sticks.rho)[:-1]])
        return sticks.rho * left

    def rest(self, sticks):
        return np.prod(1.0 - sticks.rho)


def _beta_counts(n_docs, n_topics, gamma):
    """``D + 1`` and ``D (K + 1 - k) + gamma`` for k = 1, ..., K: the coefficients of (5.25)."""
    return np.full(n_topics, n_docs + 1.0), n_docs * np.arange(n_topics, 0, -1.0) + gamma


class _StickProblem:
    """The objective of the HDP as a function of the sticks, for fixed counts."""

    def __init__(self, columns, gamma, alpha):
        self.columns, self.gamma, self.alpha = columns, gamma, alpha
        lengths, n = columns.lengths
        self.using = _documents_using(columns)
        self.ones, self.zeros = _beta_counts(columns.n_docs, len(self.using), gamma)
        # Documents that do not use each topic, nor the rest; rounding may not make it negative.
        unused = np.maximum(columns.n_docs - self.using, 0.0)
        self.unused = np.append(unused, columns.n_docs)
        self.constant = -columns.n_docs * np.log(alpha) - np.dot(n, gammaln(lengths + alpha))

    def __call__(self, logit_rho, log_omega):
        columns, alpha = self.columns, self.alpha
        log_pi = log_weights(logit_rho)
        a = alpha * np.exp(log_pi)
        lgammas, digammas = count_terms(
            columns.values, columns.indptr, np.maximum(a[:-1], _TINY), columns.weight
        )
        top = stick_terms(logit_rho, log_omega, self.ones, self.zeros, self.gamma)
        value = top.value + self.constant + lgammas.sum()
        value += np.dot(self.using, log_pi[:-1] + np.log(alpha))
        value += np.dot(self.unused, gammaln(1.0 + a))

        a_psi = a * digamma(1.0 + a)
        used = a[:-1] * digammas + self.using
        slopes = self.unused * a_psi
        slopes[:-1] += used
        return StickTerms(
            value=value,
            logit_rho=top.logit_rho + chain_to_logits(slopes, expit(logit_rho)),
            log_omega=top.log_omega,
            # The documents act like these tables of the Chinese restaurant franchise.
            draws=np.maximum(used - self.using * a_psi[:-1], 0.0),
        )


class DirichletDocuments(DocumentAllocation):
    """Symmetric Dirichlet prior of each document: latent Dirichlet allocation.

    There is nothing global to learn. The sticks are those of equal weights, ``E[pi_k] = 1 / K``,
    and known (omega is infinite); of those that are given, only the number K is used.

    Parameters
    ----------
    doc_concentration : float or None, default=None
        Parameter of each topic; ``None`` is 1 / K for the number K of topics at the time.
    """

    def __init__(self, doc_concentration=None):
        self.doc_concentration = doc_concentration

    def _concentration(self, n_topics):
        return 1.0 / n_topics if self.doc_concentration is None else self.doc_concentration

    def objective(self, sticks, columns):
        n_topics = len(columns.indptr) - 1
        a = self._concentration(n_topics)
        lengths, n = columns.lengths
        used, _ = count_terms(columns.values, columns.indptr, np.full(n_topics, a), columns.weight)
        value = used.sum() - _documents_using(columns).sum() * gammaln(a)
        return value + np.dot(n, gammaln(n_topics * a) - gammaln(n_topics * a + lengths))

    def optimise(self, columns, start=None, max_iter=100):
        sticks = self.start(np.empty(len(columns.indptr) - 1), columns.n_docs)
        return sticks, self.objective(sticks, columns)

    def start(self, mass, n_docs):
        n_topics = len(mass)
        return Sticks(1.0 / np.arange(n_topics, 0, -1.0), np.full(n_topics, np.inf))

    def prior(self, sticks):
        n_topics = len(sticks.rho)
        return np.full(n_topics, self._concentration(n_topics))

    def weights(self, sticks):
        n_topics = len(sticks.rho)
        return np.full(n_topics, 1.0 / n_topics)

    def rest(self, sticks):
        return 0.0


def union_document_gains(pairs, docs, columns, a, n_docs=None):
    """Change of the documents' terms of the objective if two topics were one, with pi added up.

    Equivalent to, for each pair (A, B) and with ``c = a_A + a_B``::

        sum_d [lnG(N_dA + N_dB + c) - lnG(c)] - [lnG(N_dA + a_A) - lnG(a_A)]
              - [lnG(N_dB + a_B) - lnG(a_B)].

    Documents that use neither topic add nothing. That is with the exact normaliser of Dir(alpha
    pi). The objective of the HDP has the bound (5.23) instead, in which a union also gains
    ``lnG(1 + c) - lnG(1 + a_A) - lnG(1 + a_B)`` in every document of ``n_docs``.

    Parameters
    ----------
    pairs : ndarray, shape (P, 2)
        Topics A and B, different ones.
    docs : ndarray of int, shape (nnz,)
        The document of each of ``columns.values``; once at most in each topic.
    columns : CountColumns
        Counts of the documents; documents are weighted as they say.
    a : ndarray, shape (K,)
        Parameters of the documents' prior, as from ``prior``.
    n_docs : float or None, default=None
        Weighted number of documents, for the gain under the bound; None for the exact one.

    Returns
    -------
    ndarray, shape (P,)
        In nats.
    """
    values, indptr, weight = columns.values, columns.indptr, columns.weight
    a = np.maximum(a, _TINY)
    first, second = np.asarray(pairs, dtype=np.intp).reshape(-1, 2).T
    union = a[first] + a[second]
    using = _documents_using(columns)
    alone = count_terms(values, indptr, a, weight)[0] - using * gammaln(a)
    gain = -alone[first] - alone[second]

    def sums(x, entries, sizes, c):
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        return count_terms(x, ends, c, None if weight is None else weight[entries])[0]

    in_first = np.zeros(docs.max(initial=-1) + 1)  # N_dA of all documents, for one A at a time
    for topic in np.unique(first):
        partners = np.flatnonzero(first == topic)
        c, n_partners = union[partners], len(partners)
        of_a = np.arange(indptr[topic], indptr[topic + 1])
        in_first[docs[of_a]] = values[of_a]
        # All documents of A as if without B, then what changes in each document of B.
        each_a, sizes = np.tile(of_a, n_partners), np.full(n_partners, len(of_a))
        gain[partners] += sums(values[each_a], each_a, sizes, c) - using[topic] * gammaln(c)
        of_b, sizes = _ranges(indptr[second[partners]], indptr[second[partners] + 1])
        n_a = in_first[docs[of_b]]
        gain[partners] += sums(n_a + values[of_b], of_b, sizes, c) - sums(n_a, of_b, sizes, c)
        in_first[docs[of_a]] = 0.0
    if n_docs is not None:
        gain += n_docs * (gammaln(1.0 + union) - gammaln(1.0 + a[first]) - gammaln(1.0 + a[second]))
    return gain


def _ranges(starts, stops):
    """Indices of all the ranges, one after the other, and the length of each range."""
    sizes = stops - starts
    ends = np.cumsum(sizes)
    return np.arange(sizes.sum()) + np.repeat(starts - ends + sizes, sizes), sizes
