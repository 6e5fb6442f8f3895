"""Which documents that were seen are most like a new one (28)."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma

from .state import rows_of_statistics

# Numbers that are worked on at a time.
_BLOCK_NUMBERS = 2_000_000


def retrieval_scores(likelihood, coef, zeta, z):
    """Score (S,) of each document group for the rows ``z`` of one document.

    ``sum_i max_k {E[log p(x_i | k)] + psi(zeta_ks) - psi(sum_k zeta_ks)}``.

    Parameters
    ----------
    coef : ndarray, shape (K, P)
        Of E[log p(x | k)].
    zeta : ndarray, shape (K, S)
        Parameters of q(pi_s).
    z : ndarray, shape (n, D)
        Prepared rows.
    """
    log_pi = (digamma(zeta) - digamma(zeta.sum(axis=0))).T
    S, K = log_pi.shape
    scores = np.zeros(S)
    rows = max(1, _BLOCK_NUMBERS // max(K, coef.shape[1]))
    for lo in range(0, len(z), rows):
        log_lik = rows_of_statistics(likelihood, z[lo : lo + rows]) @ coef.T
        groups = max(1, _BLOCK_NUMBERS // log_lik.size)
        for first in range(0, S, groups):
            some = slice(first, first + groups)
            best = (log_lik + log_pi[some, np.newaxis]).max(axis=2)
            scores[some] += best.sum(axis=1)
    return scores
