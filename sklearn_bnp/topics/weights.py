"""Priors of the topics of documents: hierarchical Dirichlet process and symmetric Dirichlet.

Design note
-----------
A document's weights have q(pi_d) = Dir(theta_d), and given the counts N_dk the best theta_d is known,
(5.45), (5.46). With it the objective is a function of the counts and of the global sticks alone.
(Alternating between theta and the sticks, as in the thesis, ends tens of nats lower after a dozen
rounds.) For the HDP, with pi = E[beta], ``a_k = alpha pi_k``, and the terms Q of q(u) in which
``E[log u_k]`` and ``E[log(1 - u_k)]`` have these coefficients,

    F = Q(D + 1, D (K + 1 - k) + gamma) + D lnG(alpha) - sum_d lnG(T_d + alpha)
        + sum_{dk: N_dk > 0} [lnG(N_dk + a_k) - lnG(a_k)] - D sum_k g(a_k) v_k - D g(a_>) v_>.

Were the weights known, the terms after the first would be the log probability of the documents' topics. The
last two bound what the uncertainty of the weights costs (``_kernels/_sticks.pyx``, s = 1): hardly a nat, if
there are many documents. F is maximised jointly over rho and omega. With lnG(a) = lnG(1 + a) - log a no term
is large or undefined, however small pi_k is. The bound (5.23) of the thesis is looser. It gives away up to
0.58 nats a document at alpha = 1 wherever there are several topics, so that those of short texts would not
pay.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, expit, gammaln

from .._kernels import _sticks
from ..hdp.sticks import (
    Sticks,
    StickTerms,
    balanced_omega,
    beta_counts,
    log_weights,
    logits_of_weights,
)
from ..hdp.weights import EqualWeights, SharedWeights, StickBreakingWeights
from .document_terms import (
    TINY,
    count_terms,
    documents_using,
    group_sums,
)

# Nats that a union is assumed to gain beside the documents' terms: half of log D for one stick less, and
# more from better sticks. A candidate too many costs little, one too few is a merge that is never made.
_STICK_COST = 20.0


class DocumentAllocation(SharedWeights):
    """Prior over the topic weights of documents, with its variational posterior.

    Counts are `CountColumns`. The weights pi_d of a document are at their optimum given its counts N_dk.
    """

    @abstractmethod
    def start(self, mass, n_docs):
        """`Sticks` to start from, for topics of these masses (K,) in this many documents."""

    @abstractmethod
    def averaged(self, before, now, rate):
        """`Sticks` whose weights are averages, where there are weights to learn.

        Parameters
        ----------
        before : ndarray, shape (K + 1,)
            Weights, of which ``1 - rate`` is kept; the last one is for topics that are not there yet.
        now : Sticks
            Their weights enter at the ``rate``.
        rate : float
        """

    @abstractmethod
    def prior(self, sticks):
        """Parameters (K,) of the Dirichlet prior of a document's weights, for the local step."""

    @abstractmethod
    def union_gains(self, documents, columns, sticks):
        """Estimated change of the objective by each union of two topics, to choose candidates by.

        It is too high rather than too low for small topics.

        Parameters
        ----------
        documents : callable
            ``documents(a, union=None)`` are the gains (P,) of the documents' terms by unions of P pairs, as
            from `union_document_gains`.
        columns : CountColumns
        sticks : Sticks

        Returns
        -------
        ndarray, shape (P,)
        """


@dataclass(frozen=True)
class HDPDocuments(StickBreakingWeights, DocumentAllocation):
    """Hierarchical Dirichlet process: ``pi_d ~ Dir(alpha pi)``, pi by stick-breaking.

    Hughes (2016), Sec. 5.1 to 5.3.2; (5.25) and (5.27) with theta at its optimum.

    Parameters
    ----------
    concentration : float, default=1.0
        gamma > 0 of ``u_k ~ Beta(1, gamma)``. The higher, the more topics.
    doc_concentration : float, default=1.0
        alpha > 0. The higher, the closer the documents' weights are to the global ones.
    """

    concentration: float = 1.0
    doc_concentration: float = 1.0

    def _problem(self, columns):
        return _StickProblem(columns, self.concentration, self.doc_concentration)

    def start_of(self, columns):
        return self.start(group_sums(columns.values, columns.indptr), columns.n_docs)

    def start(self, mass, n_docs):
        mass = np.asarray(mass, dtype=float)
        # topics without mass, and those that are not there yet, get the share of about one document
        floor = 1.0 / (1.0 + n_docs)
        weights = np.append(np.maximum(mass / max(mass.sum(), TINY), floor), floor)
        logit_rho = logits_of_weights(weights)
        ones, zeros = beta_counts(np.full(len(mass) + 1, n_docs), self.concentration)
        return Sticks(expit(logit_rho), balanced_omega(logit_rho, ones, zeros))

    def averaged(self, before, now, rate):
        weights = np.append(self.weights(now), self.rest(now))
        logit_rho = logits_of_weights((1.0 - rate) * before + rate * weights)
        return Sticks(expit(logit_rho), now.omega)

    def prior(self, sticks):
        return self.doc_concentration * self.weights(sticks)

    def union_gains(self, documents, columns, sticks):
        # the documents' terms are those of weights that add up; there may be better weights
        return _STICK_COST + documents(self.prior(sticks))


class _StickProblem:
    """The objective of the HDP as a function of the sticks, for fixed counts."""

    def __init__(self, columns, gamma, alpha):
        self.columns, self.gamma, self.alpha = columns, gamma, alpha
        lengths, n = columns.lengths
        self.using = documents_using(columns)
        self.ones, self.zeros = beta_counts(np.full(len(self.using) + 1, columns.n_docs), gamma)
        self.constant = columns.n_docs * gammaln(alpha) - np.dot(n, gammaln(lengths + alpha))
        self.by_size = columns.n_docs * digamma(alpha) - np.dot(n, digamma(lengths + alpha))

    def __call__(self, logit_rho, log_omega):
        columns, slopes = self.columns, np.empty((3, len(logit_rho)))
        a = np.maximum(self.alpha * np.exp(log_weights(logit_rho)[:-1]), TINY)
        sums = count_terms(columns.values, columns.indptr, a, columns.weight)
        value, by_alpha = _sticks.document_terms(
            logit_rho, log_omega, *sums, self.using, columns.n_docs, self.gamma, self.alpha, slopes
        )
        return StickTerms(
            self.constant + value, *slopes,
            {"doc_concentration": by_alpha + self.alpha * self.by_size},
        )  # fmt: skip


@dataclass(frozen=True)
class DirichletDocuments(EqualWeights, DocumentAllocation):
    """Symmetric Dirichlet prior of each document: latent Dirichlet allocation.

    The global weights are equal and known, ``E[pi_k] = 1 / K``.

    Parameters
    ----------
    doc_concentration : float or None, default=None
        Parameter of each topic; ``None`` is 1 / K for the present number K of topics.
    """

    doc_concentration: float | None = None

    def _concentration(self, n_topics):
        return 1.0 / n_topics if self.doc_concentration is None else self.doc_concentration

    def objective(self, sticks, columns):
        n_topics = len(columns.indptr) - 1
        return self._term(columns, n_topics, self._concentration(n_topics))

    @staticmethod
    def _term(columns, n_topics, a):
        """The objective if there were ``n_topics`` topics of parameter ``a``, whatever the counts."""
        every = np.full(len(columns.indptr) - 1, a)
        lengths, n = columns.lengths
        used, _ = count_terms(columns.values, columns.indptr, every, columns.weight)
        value = used.sum() - documents_using(columns).sum() * gammaln(a)
        return value + np.dot(n, gammaln(n_topics * a) - gammaln(n_topics * a + lengths))

    def start_of(self, columns):
        return self._equal(len(columns.indptr) - 1)

    def start(self, mass, n_docs):
        return self._equal(len(mass))

    def averaged(self, before, now, rate):
        return now

    def prior(self, sticks):
        n_topics = len(sticks.rho)
        return np.full(n_topics, self._concentration(n_topics))

    def union_gains(self, documents, columns, sticks):
        # parameters do not add up: all topics have the parameter that goes with one topic less
        n_topics = len(sticks.rho)
        a = np.full(n_topics, self._concentration(n_topics - 1))
        same = documents(a, union=a[0])
        then = self._term(columns, n_topics - 1, a[0])
        return same + then - self._term(columns, n_topics, self._concentration(n_topics))
