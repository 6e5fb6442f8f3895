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
from scipy.optimize import minimize
from scipy.special import digamma, expit, gammaln

from ._stick_breaking import (
    Sticks,
    balanced_omega,
    chain_to_logits,
    log_weights,
    logit,
    stick_terms,
)

# Least value of alpha pi_k beside a count: digamma stays finite, and lnG(N + a) is as for a = 0.
_TINY = 1e-290
# Sticks are searched in 1e-13 < rho < 1 - 1e-13: beyond it, rho as a number cannot tell 1 - rho.
_MAX_LOGIT = 30.0
# omega is searched within this factor (e^30) of what balances the terms.
_MAX_LOG_RATIO = 30.0
# Relative gain at which the search stops, and the slope at which it does: in the units of the
# search half the squared slope is about the gain that is left, in nats.
_RELATIVE_GAIN = 1e-10
_SLOPE = 1e-3


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
    x = values + np.repeat(a, np.diff(indptr))
    return _group_sums(gammaln(x), indptr, weight), _group_sums(digamma(x), indptr, weight)


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
        logit_rho = np.clip(logit(sticks.rho), -_MAX_LOGIT, _MAX_LOGIT)
        return self._problem(columns).evaluate(logit_rho, np.log(sticks.omega))[0]

    def optimise(self, columns, start=None, max_iter=100):
        if start is None:
            start = self.start(_group_sums(columns.values, columns.indptr), columns.n_docs)
        return self._problem(columns).maximise(start, max_iter)

    def _problem(self, columns):
        return _StickProblem(columns, self.concentration, self.doc_concentration)

    def start(self, mass, n_docs):
        mass = np.asarray(mass, dtype=float)
        # About one document's share for what has no mass, and for what is not there yet.
        floor = 1.0 / (1.0 + n_docs)
        w = np.append(np.maximum(mass / max(mass.sum(), _TINY), floor), floor)
        after = np.cumsum(w[::-1])[::-1][1:]
        logit_rho = np.clip(np.log(w[:-1] / after), -_MAX_LOGIT, _MAX_LOGIT)
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

    def evaluate(self, logit_rho, log_omega):
        """Value, gradients (K,) in logit rho and log omega, and slopes (K + 1,) in log pi."""
        columns, alpha = self.columns, self.alpha
        log_pi = log_weights(logit_rho)
        a = alpha * np.exp(log_pi)
        lgammas, digammas = count_terms(
            columns.values, columns.indptr, np.maximum(a[:-1], _TINY), columns.weight
        )
        terms = stick_terms(logit_rho, log_omega, self.ones, self.zeros, self.gamma)
        value = terms.value + self.constant + lgammas.sum()
        value += np.dot(self.using, log_pi[:-1] + np.log(alpha))
        value += np.dot(self.unused, gammaln(1.0 + a))

        slopes = a * self.unused * digamma(1.0 + a)
        slopes[:-1] += a[:-1] * digammas + self.using
        gradient = terms.logit_rho + chain_to_logits(slopes, expit(logit_rho))
        return value, gradient, terms.log_omega, slopes

    def maximise(self, start, max_iter):
        """Best Sticks found from a start, and the value there; see ``optimise``.

        The search is over logit rho, each in its own unit, and over log omega less the logarithm of
        ``balanced_omega``. This all but decouples the coordinates and gives them curvature 1.
        """
        x = np.clip(logit(start.rho), -_MAX_LOGIT, _MAX_LOGIT)
        log_omega = np.log(start.omega)
        value, in_x, in_omega, slopes = self.evaluate(x, log_omega)
        units = self._units(x, slopes)
        found = [value, x, log_omega]

        def turned(x, in_x, in_omega):
            balanced = balanced_omega(x, self.ones, self.zeros)
            drift = (self.zeros * np.exp(x) - self.ones * np.exp(-x)) / balanced
            return np.concatenate([(in_x + in_omega * drift) * units, in_omega])

        def descend(point):
            x, ratio = np.split(point, 2)
            x = x * units
            log_omega = ratio + np.log(balanced_omega(x, self.ones, self.zeros))
            value, in_x, in_omega, _ = self.evaluate(x, log_omega)
            if value > found[0]:
                found[:] = value, x, log_omega
            return -value, -turned(x, in_x, in_omega)

        if np.abs(turned(x, in_x, in_omega)).max() < _SLOPE:
            return start, value
        ratio = log_omega - np.log(balanced_omega(x, self.ones, self.zeros))
        bounds = np.concatenate([_MAX_LOGIT / units, np.full(len(x), _MAX_LOG_RATIO)])
        minimize(
            descend,
            np.clip(np.concatenate([x / units, ratio]), -bounds, bounds),
            method="L-BFGS-B",
            jac=True,
            bounds=np.column_stack([-bounds, bounds]),
            options={"maxiter": max_iter, "ftol": _RELATIVE_GAIN, "gtol": _SLOPE, "maxcor": 20},
        )
        value, x, log_omega = found
        return Sticks(expit(x), np.exp(log_omega)), value

    def _units(self, logit_rho, slopes):
        """Lengths (K,) over which the objective changes by about a nat, to scale the search.

        The counts of topic k act like ``t_k`` draws from pi (the tables of the Chinese restaurant
        franchise), and draws make up Beta counts of the sticks: their curvature in logit rho is
        ``rho (1 - rho) (t_k + t_>k)``.
        """
        a = self.alpha * np.exp(log_weights(logit_rho)[:-1])
        tables = np.maximum(slopes[:-1] - self.columns.n_docs * a * digamma(1.0 + a), 0.0)
        draws = np.cumsum(tables[::-1])[::-1]
        return 1.0 / np.sqrt(1.0 + expit(logit_rho) * expit(-logit_rho) * draws)


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
        used, _ = count_terms(
            columns.values, columns.indptr, np.full(n_topics, a), columns.weight
        )
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
