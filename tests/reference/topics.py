"""Topic models token by token: local step, statistics, objective, and exact marginal likelihoods.

Entries are rows z (n, D) with a weight (n,) each and the number of their document, ``doc`` (n,); a
word is a row with a one at its type. Hughes (2016), Ch. 5.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

from . import hdp_topic, mixtures
from .partitions import partitions


def one_hot(indices, n_types):
    """Words as rows."""
    return np.eye(n_types)[indices]


def document_counts(resp, weight, doc, n_docs):
    """N_dk: what each document has of each topic."""
    out = np.zeros((n_docs, resp.shape[1]))
    np.add.at(out, doc, weight[:, np.newaxis] * resp)
    return out


# ---------------------------------------------------------------------- priors of documents


class HDP(hdp_topic.HDPTopics):
    """``pi_d ~ Dir(alpha pi)`` with topics without end; one object for any number of topics."""

    def allocation_term(self, counts, sticks):
        """(5.25) and (5.27) with explicit theta, for documents that are not empty."""
        counts = counts[counts.sum(axis=1) > 0]
        return self.objective(counts, np.asarray(sticks.rho), np.asarray(sticks.omega))

    def log_prior_partition(self, counts):
        """Chinese restaurant franchise: tokens in blocks, of which documents have counts (D, m).

        Documents seat their tokens of a block at t tables, in s(n, t) ways (Stirling numbers of the
        first kind); tables of all documents are seated again, with blocks for tables.
        """
        by_tables = np.ones(1)  # coefficient t: weight of t tables in all
        for block in counts.T:
            tables = np.ones(1)
            for n in block:
                ways = stirling(int(n)) * self.alpha ** np.arange(n + 1.0)
                tables = np.convolve(tables, ways)
            served = np.append(0.0, np.exp(gammaln(np.arange(1.0, len(tables)))))
            by_tables = np.convolve(by_tables, tables * served)
        t = np.flatnonzero(by_tables)
        out = logsumexp(gammaln(self.gamma) - gammaln(self.gamma + t), b=by_tables[t])
        out += counts.shape[1] * np.log(self.gamma)
        lengths = counts.sum(axis=1)
        return out + np.sum(gammaln(self.alpha) - gammaln(self.alpha + lengths))


class LDA:
    """``pi_d ~ Dir(a, ..., a)`` over K topics; 1 / K each if ``a`` is None."""

    def __init__(self, a, n_topics):
        self.a = 1.0 / n_topics if a is None else a
        self.K = n_topics

    def allocation_term(self, counts, sticks=None):
        """``E[log p(z | pi) + log p(pi) - log q(pi)]`` with explicit theta."""
        out = 0.0
        for n in counts:
            theta = n + self.a
            log_pi = digamma(theta) - digamma(theta.sum())
            out += (n + self.a - theta) @ log_pi - hdp_topic.dirichlet_cumulant(theta)
            out += hdp_topic.dirichlet_cumulant(np.full(self.K, self.a))
        return out

    def log_prior_partition(self, counts):
        """All ways to give the blocks different topics."""
        m = counts.shape[1]
        if m > self.K:
            return -np.inf
        counts = np.column_stack([counts, np.zeros((len(counts), self.K - m))])
        labels = gammaln(self.K + 1) - gammaln(self.K - m + 1)
        return labels + self.allocation_term(counts)


@cache
def _stirling(n):
    row = np.ones(1)
    for i in range(n):
        row = np.append(0.0, row) + np.append(i * row, 0.0)
    return row


def stirling(n):
    """Unsigned Stirling numbers of the first kind s(n, 0), ..., s(n, n)."""
    return _stirling(n)


# ---------------------------------------------------------------------- a corpus


def elbo_terms(family, prior, z, weight, doc, n_docs, resp, sticks):
    """The objective (5.29) summed over entries, with q(phi) and q(pi_d) explicit, at their best.

    ``family`` is a twin of `tests.reference.families`, ``prior`` an `HDP` or `LDA`. Topics are in the
    order of the sticks.
    """
    data = 0.0
    for r in resp.T:
        q = family.posterior(z, weight * r)
        data += (weight * r) @ family.expected_log_lik(q, z) - family.divergence(q)
    return {
        "data": data,
        "entropy": mixtures.entropies(resp, weight).sum(),
        "allocation": prior.allocation_term(document_counts(resp, weight, doc, n_docs), sticks),
    }


def log_marginal(family, prior, z, doc, n_docs):
    """``log p(x)`` by enumeration of every partition of the tokens into topics."""

    @cache
    def evidence(block):
        return family.evidence(z[list(block)], np.ones(len(block)))

    @cache
    def log_prior(columns):
        return prior.log_prior_partition(np.array(columns, dtype=float).T)

    terms = []
    for partition in partitions(len(z)):
        columns = [tuple(np.bincount(doc[list(block)], minlength=n_docs)) for block in partition]
        terms.append(log_prior(tuple(sorted(columns))) + sum(evidence(b) for b in partition))
    return float(logsumexp(terms))
