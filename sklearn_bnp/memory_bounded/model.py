"""The model of an epoch: topics, their lower bound, and the global step.

Equations are those of Gomes, Welling and Perona (2008).

Design note
-----------
(a) The paper minimises free energies, (29) and (30). Here the sign is turned: the bound is a lower bound of
    the log evidence, and higher is better. The paper's K_max cancels in every comparison and is left out.
    Each topic counts ``log p(alpha_k)`` less the value that this has at the best alpha_k of an empty
    topic. For shape a = 1 the difference is ``-b alpha_k``.
(b) Only ``sum_s D_s [lnG(alpha) - lnG(alpha + N_s / D_s)]`` depends on all topics together. It is convex
    in alpha, so that its tangent is a lower bound. Given the tangent's slope, which makes the *cost* of
    alpha (`alpha_cost`), each topic has a value of its own (`halves.Rules.values`). (22) and (25) maximise
    these values, and splits are judged by them. The value of one topic stays valid when another one changes.
(c) (22) and (25) come from Minka's bound, which needs counts of 1 or more. With fractions of rows, his step
    may pass the maximum. It then passes it by at most the factor by which alpha missed it before, so
    that the geometric mean of both ends of the step lies between the start and the maximum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, xlogy

# A topic without rows would have alpha_k = 0 if a = 1.
LEAST_ALPHA = 1e-10
# Steps of (22) in each global step.
_ALPHA_STEPS = 3
# A topic with fewer rows than this is empty.
_LEAST_ROWS = 1e-6


class EpochSettings(NamedTuple):
    """Likelihood, prior and limits for the learning of an epoch.

    Attributes
    ----------
    likelihood : Likelihood
    shape, rate : float
        Shape a and rate b of the gamma prior of each alpha_k (12).
    tol : float
        Updates, and model building, end when the bound's relative change is below this.
    max_iter : int
        Most updates of all items in a row.
    max_topics : int
    n_threads : int
    """

    likelihood: object
    shape: float
    rate: float
    tol: float
    max_iter: int
    max_topics: int
    n_threads: int


class Topics(NamedTuple):
    """Topics by their sums over the items; q(pi) and q(eta) are optimal given these (18)-(20).

    Attributes
    ----------
    s : ndarray, shape (K, P)
        Statistics ``sum_c q_ck Phi^c`` (17); the last column is N_k (16).
    counts : ndarray, shape (K, S)
        Expected rows of each topic in each document group, N_ks (15).
    entropy : ndarray, shape (K,)
        ``-sum_c N_c q_ck log q_ck``.
    alpha : ndarray, shape (K,)
        Parameters of the documents' Dirichlet prior.
    prior : object
        Prior of the likelihood.
    bound : float
        The lower bound.
    """

    s: np.ndarray
    counts: np.ndarray
    entropy: np.ndarray
    alpha: np.ndarray
    prior: object
    bound: float

    def mapped(self, function):
        """Topics with ``function`` applied to each of the four sums, which have one row per topic."""
        names = ("s", "counts", "entropy", "alpha")
        return self._replace(**{name: function(getattr(self, name)) for name in names})

    def take(self, order):
        """The topics at these positions, or those for which a mask holds."""
        return self.mapped(lambda values: values[order])

    def zeta(self, sizes):
        """Parameters (K, S) of q(pi_s), for document groups of these sizes (20)."""
        return self.counts / sizes + self.alpha[:, np.newaxis]


class Scale(NamedTuple):
    """Times that rows (``points``) and documents count: 1 in (29); expected over seen in (30)."""

    points: float = 1.0
    documents: float = 1.0


# ---------------------------------------------------------------------- lower bound


def log_rising_factorials(counts, alpha, sizes):
    """``sum_s D_s [lnG(alpha_k + N_ks / D_s) - lnG(alpha_k)]`` for each topic (K,)."""
    a = alpha[:, np.newaxis]
    return (gammaln(a + counts / sizes) - gammaln(a)) @ sizes


def normaliser(lengths, sizes, total):
    """``sum_s D_s [lnG(A) - lnG(A + N_s / D_s)]`` for documents' weights whose alpha sum to A, ``total``."""
    return sizes @ (gammaln(total) - gammaln(total + lengths / sizes))


def log_prior(alpha, shape, rate):
    """``log p(alpha_k)`` less its value at ``(a - 1) / b``, for each topic (12), (14)."""
    return xlogy(shape - 1.0, alpha) - rate * alpha - prior_peak(shape, rate)


def prior_peak(shape, rate):
    """``(a - 1) log alpha_k - b alpha_k`` at its highest, at (a - 1) / b."""
    most = shape - 1.0
    return xlogy(most, most / rate) - most


def _terms(settings, topics, lengths, sizes):
    """Data, entropy, and three terms of the topics' weights; ``lengths`` (S,) are N_s."""
    total = topics.alpha.sum()
    return (
        settings.likelihood.evidence(topics.prior, topics.s).sum(),
        topics.entropy.sum(),
        log_rising_factorials(topics.counts, topics.alpha, sizes).sum(),
        normaliser(lengths, sizes, total),
        log_prior(topics.alpha, settings.shape, settings.rate).sum(),
    )


def objective(settings, topics, lengths, sizes):
    """The lower bound: minus (29), but for what note (a) leaves out."""
    return float(sum(_terms(settings, topics, lengths, sizes)))


def elbo_terms(settings, topics, lengths, sizes):
    """The lower bound in three terms, named as in the other models."""
    data, entropy, *weights = _terms(settings, topics, lengths, sizes)
    return {"data": float(data), "entropy": float(entropy), "allocation": float(sum(weights))}


def threshold(settings, topics, items):
    """Least change of the bound that counts: relative to the bound, or to the rows if it is near 0."""
    return settings.tol * max(abs(topics.bound), items.n.sum())


# ---------------------------------------------------------------------- alpha


def alpha_cost(lengths, sizes, total, rate, n_documents=1.0):
    """Denominator of (22) and (25): nats that all topics lose per unit of alpha, if it sums to ``total``."""
    return rate + n_documents * (sizes @ (digamma(total + lengths / sizes) - digamma(total)))


def _draws(counts, alpha, sizes):
    """``sum_s D_s [psi(alpha_k + N_ks / D_s) - psi(alpha_k)]`` (K,)."""
    a = alpha[:, np.newaxis]
    return (digamma(a + counts / sizes) - digamma(a)) @ sizes


def raised_alpha(counts, alpha, sizes, shape, cost, n_documents=1.0):
    """alpha (K,) after one step of (22) or (25) at a given `alpha_cost`; see note (c)."""

    def step(alpha):
        raised = (shape - 1.0 + n_documents * alpha * _draws(counts, alpha, sizes)) / cost
        return np.maximum(raised, LEAST_ALPHA)

    raised = step(alpha)
    passed = (step(raised) > raised) != (raised > alpha)
    return np.where(passed, np.sqrt(raised * alpha), raised)


def update_alpha(settings, topics, lengths, sizes, n_iter):
    """Topics after steps of (22), none of which lowers the bound; ``bound`` is not updated."""
    alpha = topics.alpha
    for _ in range(n_iter):
        cost = alpha_cost(lengths, sizes, alpha.sum(), settings.rate)
        alpha = raised_alpha(topics.counts, alpha, sizes, settings.shape, cost)
    return topics._replace(alpha=alpha)


# ---------------------------------------------------------------------- topics


def global_step(settings, topics, items):
    """Topics with alpha, the likelihood's prior and the bound updated from the sums."""
    lengths, likelihood = items.lengths, settings.likelihood
    topics = update_alpha(settings, topics, lengths, items.sizes, _ALPHA_STEPS)
    if likelihood.adapts_prior:
        topics = topics._replace(prior=likelihood.update_prior(topics.prior, topics.s, 1))
    return topics._replace(bound=objective(settings, topics, lengths, items.sizes))


def joined_topics(first, *others):
    """Topics of all of these; prior and bound are those of the first."""
    parts = (first, *others)
    names = ("s", "counts", "entropy", "alpha")
    sums = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return first._replace(**sums)


def alive(topics):
    """Boolean (K,): topics that have any rows; the first one if none has."""
    n = topics.s[:, -1]
    if not n.max() > 0:
        return np.arange(len(n)) == 0
    return n > min(_LEAST_ROWS, n.max() / 2)
