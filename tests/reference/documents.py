"""The local step of one document of a topic model, entry by entry and with logarithms everywhere.

Hughes (2016), Alg. 5.1 (fixed point), 5.2 (restarts) and 7.4 (at most L nonzeros an entry).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

DROP_BELOW = 1e-7  # of the document's tokens, in the first steps
DROP_STEPS = 4
DROP_LATER_BELOW, DROP_AT_MOST = 1e-4, 1e-2  # of the document's tokens; tokens
DROP_PRIOR = 0.5
RESTART_ABOVE = 0.1  # tokens
DENSE_STEPS = 5  # before shares become sparse
CHOOSE_EVERY = 10  # steps from then on


class Local(NamedTuple):
    """Log weights (K,), shares (U, K) that sum to 1, counts (K,) and the document's objective."""

    log_e: np.ndarray
    shares: np.ndarray
    counts: np.ndarray
    score: float


def score(log_table, c, prior, shares):
    """``sum c r (log table - log r)`` and the Dirichlet terms with theta = N + a; (5.40).

    Topics without prior are out.
    """
    counts, used = c @ shares, prior > 0
    assert np.all(counts[~used] == 0)
    positive = shares > 0
    r, gain = shares[positive], log_table[positive]
    each = np.broadcast_to(c[:, np.newaxis], shares.shape)[positive]
    terms = gammaln(counts[used] + prior[used]) - gammaln(prior[used])
    return np.sum(each * r * (gain - np.log(r))) + np.sum(terms)


def top(log_w, n_nonzero):
    """True at the largest weights of each row, of equal ones the first; (Alg. 7.2).

    ``n_nonzero`` is one number, or one a row.
    """
    rank = np.argsort(np.argsort(-log_w, axis=1, kind="stable"), axis=1)
    return (rank < np.reshape(n_nonzero, (-1, 1))) & (log_w > -np.inf)


def softmax(log_w):
    """Rows of weights to shares."""
    return np.exp(log_w - logsumexp(log_w, axis=1, keepdims=True))


class Document:
    """Entries with log likelihoods (U, K) and effective counts (U,), and how they are solved."""

    def __init__(self, log_table, c, prior, n_nonzero=None, max_iter=100, tol=1e-9):
        self.log_table, self.c, self.prior = log_table, c, prior
        self.K = len(prior)
        self.L = self.K if n_nonzero is None else n_nonzero  # or one number an entry
        self.sparse = np.ndim(self.L) > 0 or self.L < self.K
        self.max_iter, self.tol = max_iter, tol

    def choose(self, log_e):
        """Where shares may be positive."""
        return top(self.log_table + log_e, self.L)

    def shares(self, log_e, chosen):
        """Shares of the chosen weights ``log_table + log_e``."""
        return softmax(np.where(chosen, self.log_table + log_e, -np.inf))

    def drop(self, counts, active, later):
        """Topics that stay, of which there is always one."""
        tokens = self.c.sum()
        bar = min(DROP_LATER_BELOW * tokens, DROP_AT_MOST) if later else DROP_BELOW * tokens
        stay = active & ((counts >= bar) | (self.prior >= DROP_PRIOR))
        return stay if stay.any() else active

    def log_weights(self, counts, active):
        """``psi(N + a)``, and nothing for topics that have left."""
        return np.where(active, digamma(counts + self.prior), -np.inf)

    def iterate(self, counts, active, max_iter, tol, dense_steps=DENSE_STEPS):
        """Alternate shares and counts; returns the last weights and what was chosen last."""
        everything = np.ones(self.log_table.shape, dtype=bool)
        log_e, chosen = self.log_weights(counts, active), None
        for it in range(1, max_iter + 1):
            log_e = self.log_weights(counts, active)
            dense = not self.sparse or it <= dense_steps
            if not dense and (it - dense_steps) % CHOOSE_EVERY == 1:
                chosen = self.choose(log_e)
            last, counts = counts, self.c @ self.shares(log_e, everything if dense else chosen)
            if np.max(np.abs(counts - last)) < tol:
                if not self.sparse or not dense:
                    break
                dense_steps = it
            if it < max_iter:
                active = self.drop(counts, active, it >= DROP_STEPS)
        return np.where(self.drop(counts, active, True), log_e, -np.inf), chosen

    def local(self, log_e, chosen=None):
        """Shares, counts and score of weights; chosen anew unless told."""
        shares = self.shares(log_e, self.choose(log_e) if chosen is None else chosen)
        return Local(
            log_e, shares, self.c @ shares, score(self.log_table, self.c, self.prior, shares)
        )

    def from_counts(self, counts):
        """From counts on, with all topics."""
        if self.max_iter == 0:
            return None
        everyone = np.ones(self.K, dtype=bool)
        return self.local(self.iterate(counts, everyone, self.max_iter, self.tol)[0])

    def cold(self):
        """From shares proportional to table * prior."""
        log_e = np.log(self.prior)
        everything = np.ones(self.log_table.shape, dtype=bool)
        return self.from_counts(self.c @ self.shares(log_e, everything)) or self.local(log_e)

    def warm(self, start):
        """From counts; the first step, over their topics alone, is a candidate of its own."""
        first = self.local(self.log_weights(start, start > 0))
        last = self.from_counts(first.counts) or first
        return max(first, last, key=lambda local: local.score)

    def without(self, local, k):
        """Three steps from the counts without topic k."""
        active = local.counts > 0
        active[k] = False
        return self.local(*self.iterate(np.where(active, local.counts, 0.0), active, 3, 0.0, 0))

    def restart(self, local, n_restarts):
        """Try to do without each of the smallest topics."""
        best, half = local, 0.5 * self.c.sum()

        def eligible(k):
            return RESTART_ABOVE < best.counts[k] <= half and np.sum(best.counts > 0) > 1

        order = [k for k in np.argsort(local.counts, kind="stable") if eligible(k)][:n_restarts]
        for k in order:
            if eligible(k):
                other = self.without(best, k)
                if other.score > best.score:  # what counts are the shares chosen for its weights
                    best = max(best, self.local(other.log_e), key=lambda local: local.score)
        if best is not local:
            last, _ = self.iterate(best.counts, best.counts > 0, self.max_iter, self.tol, 0)
            best = max(best, self.local(last), key=lambda local: local.score)
        return self.local(best.log_e)

    def solve(self, start=None, cold=True, n_restarts=0):
        """The better of the warm and the cold start, after restarts."""
        candidates = []
        if start is not None and start.any():
            candidates.append(self.warm(start))
        if cold or not candidates:
            candidates.append(self.cold())
        return self.restart(max(candidates, key=lambda local: local.score), n_restarts)
