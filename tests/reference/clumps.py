"""The memory bounded topic model, row by row and document by document.

Gomes, Welling and Perona (2008): the bound is E_q[log p(x, z, pi, eta | alpha)] + H[q] + log p(alpha) for
any q in which rows of a clump share q(z) and documents of a group share q(pi), written down term by term.
Nothing is summed beforehand and nothing is put in at its optimum but q(eta), the twin family's own.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import digamma, gammaln, logsumexp
from scipy.stats import gamma


def zeta_of_groups(resp, owner, group, alpha):
    """Parameters (S, K) of q(pi_s), the mean of what its documents want alone: (10) and (20)."""
    out = []
    for s in range(group.max() + 1):
        members = np.flatnonzero(group == s)
        out.append(alpha + sum(resp[owner == j].sum(axis=0) for j in members) / len(members))
    return np.array(out)


def log_dirichlet_constant(a):
    return gammaln(a.sum()) - gammaln(a).sum()


def document_bound(resp, owner, group, zeta, alpha):
    """E[log p(z | pi)] + E[log p(pi | alpha)] - E[log q(pi)], document by document."""
    total = 0.0
    for j, s in enumerate(group):
        log_pi = digamma(zeta[s]) - digamma(zeta[s].sum())
        total += resp[owner == j].sum(axis=0) @ log_pi
        total += log_dirichlet_constant(alpha) + (alpha - 1.0) @ log_pi
        total -= log_dirichlet_constant(zeta[s]) + (zeta[s] - 1.0) @ log_pi
    return total


def alpha_bound(alpha, shape, rate):
    """log p(alpha_k), less that of topics which are not there at their optimum (14)."""
    most = 0.0 if shape == 1.0 else (shape - 1.0) / rate
    peak = np.log(rate) if shape == 1.0 else gamma.logpdf(most, shape, scale=1.0 / rate)
    return (gamma.logpdf(alpha, shape, scale=1.0 / rate) - peak).sum()


def bound(family, z, resp, owner, group, alpha, shape, rate, zeta=None):
    """The bound of rows ``z`` (n, D) with responsibilities (n, K) of documents ``owner`` in groups."""
    if zeta is None:
        zeta = zeta_of_groups(resp, owner, group, alpha)
    total = -sum(r * np.log(r) for row in resp for r in row if r > 0)
    for r in resp.T:
        q = family.posterior(z, r)
        total += r @ family.expected_log_lik(q, z) - family.divergence(q)
    total += document_bound(resp, owner, group, zeta, alpha)
    return total + alpha_bound(alpha, shape, rate)


def updated_resp(family, z, clump, resp, owner, group, alpha):
    """(21): the best q(z) of each clump given all else, for each row."""
    zeta = zeta_of_groups(resp, owner, group, alpha)
    log_lik = np.column_stack([family.expected_log_lik(family.posterior(z, r), z) for r in resp.T])
    wanted = log_lik + digamma(zeta)[group[owner]]
    out = np.empty_like(resp)
    for c in np.unique(clump):
        w = wanted[clump == c].mean(axis=0)
        out[clump == c] = np.exp(w - logsumexp(w))
    return out


def log_evidence(evidence, owner, alpha):
    """log p(x | alpha), exactly: the sum over all assignments of a few rows.

    ``evidence(labels)`` is the log probability of the rows given their topics, ``sum_k log p(s_k)``.
    """
    K, terms = len(alpha), []
    for labels in product(range(K), repeat=len(owner)):
        labels = np.array(labels)
        log_p = evidence(labels)
        for j in range(owner.max() + 1):
            n = np.bincount(labels[owner == j], minlength=K)
            log_p += gammaln(alpha.sum()) - gammaln(alpha.sum() + n.sum())
            log_p += (gammaln(alpha + n) - gammaln(alpha)).sum()
        terms.append(log_p)
    return logsumexp(terms)
