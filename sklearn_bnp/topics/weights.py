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

import numpy as np
from scipy.special import digamma, expit, gammaln

from ..hdp.sticks import (
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
from .document_terms import (
    TINY,
    count_terms,
    dirichlet_rises,
    documents_using,
    group_sums,
    union_document_gains,
)

# What one topic less saves beside the documents' terms: half of log D, and what better sticks bring.
# A candidate too many costs little, one too few is a merge that is never made.
_STICK_COST = 20.0


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
    def averaged(self, before, now, rate):
        """Sticks whose weights ``E[pi]`` are those of ``now`` at a ``rate``, else those ``before``.

        Parameters
        ----------
        before : ndarray, shape (K + 1,)
            Weights; the last one is what they leave for topics that are not there yet.
        now : Sticks
        rate : float
        """

    @abstractmethod
    def prior(self, sticks):
        """Parameters (K,) of the Dirichlet prior of a document's weights, for the local step."""

    @abstractmethod
    def weights(self, sticks):
        """``E[pi_k]`` (K,); they leave ``rest(sticks)`` for topics that are not there yet."""

    @abstractmethod
    def rest(self, sticks):
        """``E[pi_>]``, the mass of all topics that are not there yet."""

    @abstractmethod
    def union_gains(self, pairs, docs, columns, sticks):
        """Change of the objective (P,) for each pair of topics (P, 2) joined, to choose candidates by.

        An estimate, too high rather than too low for small topics. ``docs`` (nnz,) are the documents of
        the counts.
        """

    @abstractmethod
    def nested_union_gains(self, pairs, docs, columns, a):
        """The same for topics nested in one, whose parameters ``a`` (K,) add up to its own."""

    @abstractmethod
    def nested_terms(self, counts, a, weight=None):
        """Documents' terms of the objective for nested topics with counts (n, K), up to a constant.

        ``weight`` (n,) says how many documents each stands for; one if None.
        """


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
            start = self.start(group_sums(columns.values, columns.indptr), columns.n_docs)
        problem = self._problem(columns)
        return maximise_over_sticks(problem, start, problem.ones, problem.zeros, max_iter)

    def _problem(self, columns):
        return _StickProblem(columns, self.concentration, self.doc_concentration)

    def start(self, mass, n_docs):
        mass = np.asarray(mass, dtype=float)
        # About one document's share for what has no mass, and for what is not there yet.
        floor = 1.0 / (1.0 + n_docs)
        weights = np.append(np.maximum(mass / max(mass.sum(), TINY), floor), floor)
        logit_rho = logits_of_weights(weights)
        ones, zeros = _beta_counts(n_docs, len(mass), self.concentration)
        return Sticks(expit(logit_rho), balanced_omega(logit_rho, ones, zeros))

    def averaged(self, before, now, rate):
        weights = np.append(self.weights(now), self.rest(now))
        logit_rho = logits_of_weights((1.0 - rate) * before + rate * weights)
        return Sticks(expit(logit_rho), now.omega)

    def prior(self, sticks):
        return self.doc_concentration * self.weights(sticks)

    def weights(self, sticks):
        left = np.concatenate([[1.0], np.cumprod(1.0 - sticks.rho)[:-1]])
        return sticks.rho * left

    def rest(self, sticks):
        return np.prod(1.0 - sticks.rho)

    def union_gains(self, pairs, docs, columns, sticks):
        # the documents' terms are exact at sticks that add up; better ones there may be
        return _STICK_COST + self.nested_union_gains(pairs, docs, columns, self.prior(sticks))

    def nested_union_gains(self, pairs, docs, columns, a):
        return union_document_gains(pairs, docs, columns, a, columns.n_docs)

    def nested_terms(self, counts, a, weight=None):
        rises = dirichlet_rises(counts, a, weight)  # the surrogate bound in place of Dir(alpha pi)
        n_docs = len(counts) if weight is None else weight.sum()
        return rises + n_docs * (gammaln(1.0 + a).sum() - gammaln(1.0 + a.sum()))


def _beta_counts(n_docs, n_topics, gamma):
    """``D + 1`` and ``D (K + 1 - k) + gamma`` for k = 1, ..., K: the coefficients of (5.25)."""
    return np.full(n_topics, n_docs + 1.0), n_docs * np.arange(n_topics, 0, -1.0) + gamma


class _StickProblem:
    """The objective of the HDP as a function of the sticks, for fixed counts."""

    def __init__(self, columns, gamma, alpha):
        self.columns, self.gamma, self.alpha = columns, gamma, alpha
        lengths, n = columns.lengths
        self.using = documents_using(columns)
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
            columns.values, columns.indptr, np.maximum(a[:-1], TINY), columns.weight
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
        return self._rises(columns, n_topics, self._concentration(n_topics))

    @staticmethod
    def _rises(columns, n_topics, a):
        """The documents' terms if ``n_topics`` topics have the parameter ``a`` each, for whatever counts."""
        every = np.full(len(columns.indptr) - 1, a)
        lengths, n = columns.lengths
        used, _ = count_terms(columns.values, columns.indptr, every, columns.weight)
        value = used.sum() - documents_using(columns).sum() * gammaln(a)
        return value + np.dot(n, gammaln(n_topics * a) - gammaln(n_topics * a + lengths))

    def optimise(self, columns, start=None, max_iter=100):
        sticks = self.start(np.empty(len(columns.indptr) - 1), columns.n_docs)
        return sticks, self.objective(sticks, columns)

    def start(self, mass, n_docs):
        n_topics = len(mass)
        return Sticks(1.0 / np.arange(n_topics, 0, -1.0), np.full(n_topics, np.inf))

    def averaged(self, before, now, rate):
        return now

    def prior(self, sticks):
        n_topics = len(sticks.rho)
        return np.full(n_topics, self._concentration(n_topics))

    def weights(self, sticks):
        n_topics = len(sticks.rho)
        return np.full(n_topics, 1.0 / n_topics)

    def rest(self, sticks):
        return 0.0

    def union_gains(self, pairs, docs, columns, sticks):
        # Topics do not add up: with one less, all have the parameter that this number has.
        n_topics = len(sticks.rho)
        a = np.full(n_topics, self._concentration(n_topics - 1))
        same = union_document_gains(pairs, docs, columns, a, union=a[0])
        now, then = (self._rises(columns, n, c) for n, c in (
            (n_topics, self._concentration(n_topics)), (n_topics - 1, a[0])
        ))  # fmt: skip
        return same + then - now

    def nested_union_gains(self, pairs, docs, columns, a):
        return union_document_gains(pairs, docs, columns, a)

    def nested_terms(self, counts, a, weight=None):
        return dirichlet_rises(counts, a, weight)
