"""The objective: minus the free energies (29) and (30), and the weights of topics, (22) and (25).

Design note
-----------
(a) The sign is turned: this is a lower bound of the log evidence, higher is better. The K_max of the
    paper cancels in every comparison and is left out: a topic counts ``log p(alpha_k)`` less what a topic
    that is not there has at its optimum, which is 0 for shape a = 1 but for ``-b alpha_k``.
(b) Only ``sum_s D_s [lnG(alpha) - lnG(alpha + N_s / D_s)]`` joins the topics. It is convex in alpha,
    and bounded from below by its tangent: given the slope, the ``price`` of alpha, each topic has a
    value of its own. (22) and (25) maximise these values; splits are judged by them, and what was found
    for one topic stays valid when another changes.
(c) Minka's bound, from which (22) and (25) come, needs counts of 1 or more. With fractions of rows his
    step passes the top of the value, and goes to and fro about it: by a factor that is at most
    the one by which it was missed, so that the geometric mean of both is between.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, xlogy

# Topics whose rows are all gone would have alpha 0 for a = 1.
LEAST_ALPHA = 1e-10


class Scale(NamedTuple):
    """How many times the data count: 1 in (29), the target's over what was seen in (30).

    Attributes
    ----------
    points, documents : float
    """

    points: float = 1.0
    documents: float = 1.0


def document_rises(counts, alpha, sizes):
    """``sum_s D_s [lnG(alpha_k + N_ks / D_s) - lnG(alpha_k)]`` for each topic (K,)."""
    a = alpha[:, np.newaxis]
    return (gammaln(a + counts / sizes) - gammaln(a)) @ sizes


def log_prior(alpha, shape, rate):
    """``log p(alpha_k)`` less its value at ``(a - 1) / b``, for each topic (12), (14)."""
    most = shape - 1.0
    peak = xlogy(most, most / rate) - most
    return xlogy(most, alpha) - rate * alpha - peak


def total_fall(lengths, sizes, alpha):
    """``sum_s D_s [lnG(alpha) - lnG(alpha + N_s / D_s)]`` for the sum of all alpha_k."""
    total = alpha.sum()
    return sizes @ (gammaln(total) - gammaln(total + lengths / sizes))


def objective(settings, topics, lengths, sizes):
    """The lower bound, minus (29) (up to what note (a) leaves out)."""
    return float(
        settings.likelihood.evidence(topics.prior, topics.s).sum()
        + topics.entropy.sum()
        + document_rises(topics.counts, topics.alpha, sizes).sum()
        + total_fall(lengths, sizes, topics.alpha)
        + log_prior(topics.alpha, settings.shape, settings.rate).sum()
    )


def price(lengths, sizes, total, rate, n_documents=1.0):
    """Denominator of (22) and (25): minus the slope of what all topics pay for ``total``."""
    return rate + n_documents * (sizes @ (digamma(total + lengths / sizes) - digamma(total)))


def _draws(counts, alpha, sizes):
    """``sum_s D_s [psi(alpha_k + N_ks / D_s) - psi(alpha_k)]`` (K,)."""
    a = alpha[:, np.newaxis]
    return (digamma(a + counts / sizes) - digamma(a)) @ sizes


def raised_alpha(counts, alpha, sizes, shape, cost, n_documents=1.0):
    """One step of (22) or (25) for topics with the given ``cost`` of alpha; see note (c)."""

    def step(alpha):
        raised = (shape - 1.0 + n_documents * alpha * _draws(counts, alpha, sizes)) / cost
        return np.maximum(raised, LEAST_ALPHA)

    raised = step(alpha)
    passed = (step(raised) > raised) != (raised > alpha)
    return np.where(passed, np.sqrt(raised * alpha), raised)


def update_alpha(settings, topics, lengths, sizes, n_iter):
    """Topics after steps of (22), none of which lowers the bound; ``bound`` is not set."""
    alpha = topics.alpha
    for _ in range(n_iter):
        cost = price(lengths, sizes, alpha.sum(), settings.rate)
        alpha = raised_alpha(topics.counts, alpha, sizes, settings.shape, cost)
    return topics._replace(alpha=alpha)


def topic_values(likelihood, prior, s, counts, entropy, alpha, sizes, shape, cost, scale):
    """Value (K,) of each topic at a given cost of alpha; see the module's note (b)."""
    return (
        likelihood.evidence(prior, scale.points * s)
        + scale.points * entropy
        + scale.documents * document_rises(counts, alpha, sizes)
        + xlogy(shape - 1.0, alpha)
        - cost * alpha
    )
