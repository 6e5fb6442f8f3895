"""A small hidden Markov model nested in one state of a larger one.

Design note
-----------
(a) The state explains *runs* of consecutive rows; a run of weight w counts as w runs. The nested model has J
    states. The prior of each row of transitions is Dir(alpha/J + kappa delta_k), that of the first states of
    runs is Dir(alpha/J). The posterior of transitions is always at its optimum given the counts, so
    that their term is a ratio of Gamma functions, and a chain is known by three sums: statistics, counts
    of transitions, and counts of first states.
(b) A pass is the forward-backward pass of whole sequences (``local.py``), with its floors of logarithms.
(c) Unions of states are chosen without another pass. Their statistics and counts are sums. Their entropy is
    that of single rows, scaled: this is a fair guess of the entropy of the chain with states renamed, at
    a tenth of the cost. The chain that is chosen so is then judged by a pass.

Symbols are those of ``doc/formulas_chains.rst``; source: Hughes (2016), Sec. 6.5.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma

from ..engine.agglomeration import agglomerate
from ..engine.unions import entropies_of_unions
from .local import LOG_FLOOR, filtered, over_sequences, smoothed
from .weights import log_rising_factorial

# Entries of the rows' statistics that are held at a time.
_TILE_ENTRIES = 2**17
# States with fewer rows, or with a smaller share of all rows, are dropped.
_LEAST_ROWS, _LEAST_SHARE = 1.0, 0.002
# Empirical Bayes: passes from one time to the next, and steps each time.
_ADAPT_EVERY, _ADAPT_STEPS = 3, 2


class NestedChain(NamedTuple):
    """Priors of the nested model.

    Attributes
    ----------
    concentration : float
        The alpha of Dir(alpha/J + kappa delta_k).
    stickiness : float
        The kappa of Dir(alpha/J + kappa delta_k).
    others : ndarray, shape (K - 1, P), or None
        Statistics of the states that stay. A prior that is learned adapts to these and to the
        new states together. None leaves the prior as it is.
    """

    concentration: float
    stickiness: float
    others: np.ndarray | None = None

    def row_priors(self, n_states):
        """Dirichlet parameters (J + 1, J) of first states and of the rows of transitions."""
        alpha = self.concentration / n_states
        return np.vstack([np.full(n_states, alpha), alpha + self.stickiness * np.eye(n_states)])

    def transition_term(self, counts, start):
        """Log evidence of transitions (J, J) and first states (J,)."""
        prior = self.row_priors(len(start))
        return _log_dirichlet(prior[:1], start[np.newaxis]) + _log_dirichlet(prior[1:], counts)

    def expected_log_rows(self, counts, start):
        """``E[log pi]`` (J + 1, J) of first states and transitions, no less than `LOG_FLOOR`."""
        theta = self.row_priors(len(start)) + np.vstack([start, counts])
        return np.maximum(digamma(theta) - digamma(theta.sum(axis=1, keepdims=True)), LOG_FLOOR)


def _log_dirichlet(prior, counts):
    """Log evidence of rows of counts under Dirichlet priors."""
    total = prior.sum(axis=1)
    each, rows = (
        log_rising_factorial(counts, prior),
        log_rising_factorial(counts.sum(axis=1), total),
    )
    return float(each.sum() - rows.sum())


class Chain(NamedTuple):
    """Statistics of the nested states, as a pass finds them or as a start for one.

    Attributes
    ----------
    s : ndarray, shape (J, P)
        Sums of s(x) over the rows of each state.
    counts : ndarray, shape (J, J)
        Expected transitions within runs.
    start : ndarray, shape (J,)
        Expected first states of runs.
    entropy : float
        Entropy of the joint posterior of the states.
    resp : ndarray, shape (n, J), or None
        Responsibilities; None unless the chain comes right from a pass.
    """

    s: np.ndarray
    counts: np.ndarray
    start: np.ndarray
    entropy: float = 0.0
    resp: np.ndarray | None = None

    def taken(self, keep):
        """The states ``keep`` alone, to start a pass from."""
        return Chain(self.s[keep], self.counts[np.ix_(keep, keep)], self.start[keep])

    def grouped(self, groups, entropy=0.0):
        """The chain of unions of states (lists of their indices)."""
        share = np.zeros((len(groups), len(self.s)))
        for i, group in enumerate(groups):
            share[i, list(group)] = 1.0
        return Chain(share @ self.s, share @ self.counts @ share.T, share @ self.start, entropy)


def feature_tiles(likelihood, z, edges):
    """Pairs (slice of rows, their s(x)) that cover all rows, each cut at one of the ``edges``."""
    P = likelihood.n_statistics
    most = max(1, _TILE_ENTRIES // P)
    lo = 0
    while lo < z.shape[0]:
        i = np.searchsorted(edges, lo + most, side="right") - 1
        hi = int(edges[i] if edges[i] > lo else edges[i + 1])
        yield slice(lo, hi), likelihood.features(z[lo:hi])
        lo = hi


class NestedModel:
    """Passes and bounds of a nested chain on one sample; only the prior of emissions changes."""

    def __init__(self, likelihood, prior, sample, settings, n_threads=1):
        self.likelihood, self.prior, self.sample = likelihood, prior, sample
        self.settings, self.n_threads = settings, n_threads
        self.adapts = settings.others is not None and likelihood.adapts_prior
        self.least = max(_LEAST_ROWS * sample.one_row, _LEAST_SHARE * sample.least_total)

    def evidence(self, s):
        return self.likelihood.evidence(self.prior, s)

    def adapt(self, s, n_steps):
        """Empirical Bayes on the states that stay and on the nested ones with statistics ``s``."""
        if self.adapts:
            everything = np.concatenate([self.settings.others, s])
            self.prior = self.likelihood.update_prior(self.prior, everything, n_steps)

    def bound(self, chain):
        """Objective of the nested model alone, without the states that stay."""
        term = self.settings.transition_term(chain.counts, chain.start)
        return float(self.evidence(chain.s).sum() + term + chain.entropy)

    def gain(self, chain, before):
        """Change of the objective if the nested states replace the one state under the prior ``before``."""
        whole = chain.s.sum(axis=0, keepdims=True)
        gain = self.bound(chain) - self.likelihood.evidence(before, whole)[0]
        others = self.settings.others
        if self.prior is not before and len(others):
            gain += self.evidence(others).sum() - self.likelihood.evidence(before, others).sum()
        return float(gain)

    def pass_over(self, chain):
        """The chain after a forward-backward pass with the parameters of ``chain``."""
        likelihood, (z, indptr, weight) = self.likelihood, self.sample
        coef = likelihood.coefficients(self.prior, chain.s)
        log_rows = self.settings.expected_log_rows(chain.counts, chain.start)
        rows = np.exp(log_rows)
        first = np.tile(rows[:1], (len(indptr) - 1, 1))
        passed = filtered(z, indptr, likelihood, coef, first, rows[1:], self.n_threads)
        counts, _, _, log_z, data = smoothed(passed, rows[1:], None, weight, self.n_threads)
        resp, s = passed.alpha, np.empty((len(coef), likelihood.n_statistics))
        shares = resp if weight is None else self.sample.row_weight[:, np.newaxis] * resp
        likelihood.summarise(z, shares, s, coef=coef)
        paths = over_sequences(log_z, weight) - over_sequences(data, weight)
        entropy = paths - np.vdot(counts[1:], log_rows[1:]) - np.vdot(counts[0], log_rows[0])
        return Chain(s, counts[1:], counts[0], float(entropy), resp)

    def iterate(self, chain, n_steps, tol):
        """Up to ``n_steps`` passes; states with hardly a row are dropped on the way.

        If fewer than two states are left there is no pass over them.
        """
        last = -np.inf
        for i in range(n_steps):
            chain = self.pass_over(chain)
            keep = np.flatnonzero(chain.s[:, -1] >= self.least)
            if len(keep) < len(chain.s):
                chain, last = chain.taken(keep), -np.inf
                if len(keep) < 2:
                    return chain
                continue
            if (i + 1) % _ADAPT_EVERY == 0:
                self.adapt(chain.s, _ADAPT_STEPS)
            value = self.bound(chain)
            if value - last < tol:
                break
            last = value
        return self.pass_over(chain) if chain.resp is None else chain

    def cut(self, chain):
        """The best of the chains of two or more states that agglomeration of ``chain`` leads through.

        The pair whose union loses the least evidence per row is joined first. Bounds of unions are estimates.
        """
        groups = [(k,) for k in range(len(chain.s))]
        none = np.zeros(len(groups))
        tree = agglomerate(
            chain.s, none, lambda unions: np.zeros(len(unions)), self.evidence, lambda n: 0.0
        )
        unions = [node.members for node in tree.nodes]
        entropies = entropies_of_unions(
            chain.resp, self.sample.row_weight, groups + unions, self.n_threads
        )
        by_row = dict(zip(groups + unions, entropies.tolist(), strict=True))
        alone = sum(by_row[group] for group in groups)
        share = chain.entropy / alone if alone > 0 else 0.0
        best, value = chain, self.bound(chain)
        data = self.evidence(chain.s).sum()
        gains = dict.fromkeys(groups, 0.0) | {node.members: node.gain for node in tree.nodes}
        for union in unions[:-1]:
            groups = [g for g in groups if g[0] not in union] + [union]
            merged = chain.grouped(groups, share * sum(by_row[group] for group in groups))
            bound = data + sum(gains[group] for group in groups) + merged.entropy
            bound += self.settings.transition_term(merged.counts, merged.start)
            if bound > value:
                best, value = merged, bound
        return best

    def pruned(self, chain, n_tries):
        """The chain without small states whose rows do better with the others.

        Rows that fit none of the states may end together as a wide state of their own, which no union
        mends.
        """
        i = 0  # rank, by size, of the state that is tried next
        for _ in range(n_tries):
            if i >= len(chain.s) or len(chain.s) < 3:
                break
            order = np.argsort(chain.s[:, -1], kind="stable")
            fewer = self.iterate(chain.taken(np.sort(np.delete(order, i))), 2, 0.0)
            if fewer.resp is not None and self.bound(fewer) > self.bound(chain):
                chain, i = fewer, 0
            else:
                i += 1
        return chain
