"""A small hidden Markov model nested in one state of a larger one.

Design note
-----------
(a) What the state explains are *runs* of rows; one of weight w counts as w runs. The nested model has J
    states, rows of transitions with prior Dir(alpha/J + kappa delta_k), and first states of runs with
    prior Dir(alpha/J). Transitions are always at their optimum given the counts, so that their term is
    a ratio of Gamma functions and a chain is known by three sums: statistics, counts of transitions,
    counts of first states.
(b) Logarithms that enter the posterior of states are clamped at -200 (likelihoods: relative to the row's
    best), and the entropy is that of the posterior so found, ``log Z - sum r log B - sum M log A``. A
    clamp thus moves the posterior, and the bound stays one.
(c) Unions of states are chosen without another pass. Their statistics and counts are sums; of the
    entropy of the chain with states renamed, rows one by one give a fair guess at a tenth of the
    cost. What is chosen so is then judged by a pass.

Symbols are those of ``doc/formulas_chains.rst``; source: Hughes (2016), Sec. 6.5.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from .._kernels._entropies import union_entropies
from .._kernels._forward_backward import backward, forward, log_sums
from ..engine.agglomeration import agglomerate

_LEAST_LOG = -200.0
# Numbers in the statistics of rows that are held at a time.
_TILE_NUMBERS = 2**17
# States with fewer rows, and with a smaller share of them, are dropped.
_LEAST_ROWS, _LEAST_SHARE = 1.0, 0.002
# Empirical Bayes: every so many passes, so many steps.
_ADAPT_EVERY, _ADAPT_STEPS = 3, 2


class NestedChain(NamedTuple):
    """Priors of the nested model.

    Attributes
    ----------
    concentration : float
        The alpha of Dir(alpha/J + kappa delta_k).
    stickiness : float
        Its kappa.
    others : ndarray, shape (K - 1, P), or None
        Statistics of the states that stay: the prior of emissions adapts to them and to the new ones
        together, where the likelihood adapts priors at all. None leaves the prior as it is.
    """

    concentration: float
    stickiness: float
    others: np.ndarray | None = None

    def transition_prior(self, n_states):
        """Parameters (J, J) of the rows of transitions."""
        return self.concentration / n_states + self.stickiness * np.eye(n_states)

    def start_prior(self, n_states):
        """Parameters (1, J) of the first states of runs."""
        return np.full((1, n_states), self.concentration / n_states)

    def transition_term(self, counts, start):
        """Log evidence of transitions (J, J) and first states (J,)."""
        J = len(start)
        first = _log_dirichlet(self.start_prior(J), start[np.newaxis])
        return first + _log_dirichlet(self.transition_prior(J), counts)

    def log_weights(self, counts, start):
        """Clamped ``E[log pi]``: of transitions (J, J), and of first states (1, J)."""
        J = len(start)
        parameters = (self.transition_prior(J) + counts, self.start_prior(J) + start)
        means = (digamma(p) - digamma(p.sum(axis=1, keepdims=True)) for p in parameters)
        return [np.maximum(mean, _LEAST_LOG) for mean in means]


def _log_dirichlet(prior, counts):
    """Log evidence of rows of counts under Dirichlet priors."""
    total = prior.sum(axis=1)
    rise = gammaln(prior + counts) - gammaln(prior)
    return float(rise.sum() - np.sum(gammaln(total + counts.sum(axis=1)) - gammaln(total)))


def _sum_over_runs(values, weight):
    """Sum of ``values`` (n_runs, ...), as often as the weights (n_runs,) say if there are any."""
    return values.sum(axis=0) if weight is None else weight @ values


class Chain(NamedTuple):
    """What a pass of the nested model leaves behind.

    Attributes
    ----------
    s : ndarray, shape (J, P)
    counts : ndarray, shape (J, J)
        Expected transitions within runs.
    start : ndarray, shape (J,)
        Expected first states of runs.
    entropy : float
        Of the posterior of states.
    resp : ndarray, shape (n, J), or None
        None unless the chain comes right from a pass.
    """

    s: np.ndarray
    counts: np.ndarray
    start: np.ndarray
    entropy: float = 0.0
    resp: np.ndarray | None = None

    def taken(self, keep):
        """The states ``keep`` alone, as something to start a pass from."""
        return Chain(self.s[keep], self.counts[np.ix_(keep, keep)], self.start[keep])

    def grouped(self, groups, entropy=0.0):
        """The chain of unions of states (lists of their indices)."""
        share = np.zeros((len(groups), len(self.s)))
        for i, group in enumerate(groups):
            share[i, list(group)] = 1.0
        return Chain(share @ self.s, share @ self.counts @ share.T, share @ self.start, entropy)


def feature_tiles(likelihood, z, edges):
    """Pairs (slice of rows, their s(x)), cut at some of the ``edges``, from 0 to n."""
    P = likelihood.n_statistics
    most = max(1, _TILE_NUMBERS // P)
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
        """Empirical Bayes on the other states and these."""
        if self.adapts:
            everything = np.concatenate([self.settings.others, s])
            self.prior = self.likelihood.update_prior(self.prior, everything, n_steps)

    def bound(self, chain):
        """Nested objective, without the states that stay."""
        term = self.settings.transition_term(chain.counts, chain.start)
        return float(self.evidence(chain.s).sum() + term + chain.entropy)

    def gain(self, chain, before):
        """Nested objective minus that of the one state under the prior ``before``."""
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
        table, _ = likelihood.likelihood_table(coef, z, np.exp(_LEAST_LOG), self.n_threads)
        log_trans, log_first = self.settings.log_weights(chain.counts, chain.start)
        (n, J), n_runs = table.shape, len(indptr) - 1
        trans, first = np.exp(log_trans), np.tile(np.exp(log_first), (n_runs, 1))
        scale, log_z, data = np.empty(n), np.empty(n_runs), np.empty(n_runs)
        counts, start = np.zeros((J, J)), np.empty((n_runs, J))
        forward(table, indptr, first, trans, scale, self.n_threads)
        backward(
            table, indptr, first, trans, scale, None, counts, start, None, data, self.n_threads, weight
        )  # fmt: skip
        log_sums(scale, indptr, log_z)
        s, start = np.empty((J, likelihood.n_statistics)), _sum_over_runs(start, weight)
        shares = table if weight is None else self.sample.row_weight[:, np.newaxis] * table
        likelihood.summarise(z, shares, s, coef=coef)
        paths = _sum_over_runs(log_z, weight) - _sum_over_runs(data, weight)
        entropy = paths - np.vdot(counts, log_trans) - np.vdot(start, log_first)
        return Chain(s, counts, start, float(entropy), table)

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
        """The best of the chains of two or more states met on agglomerating those of ``chain``.

        States are joined by what it costs their data a row; the bounds of unions are estimates.
        """
        groups = [(k,) for k in range(len(chain.s))]
        none = np.zeros(len(groups))
        tree = agglomerate(
            chain.s, none, lambda unions: np.zeros(len(unions)), self.evidence, lambda n: 0.0
        )
        unions = [node.members for node in tree.nodes]
        entropies = self._row_entropies(chain.resp, groups + unions)
        by_row = dict(zip(groups + unions, entropies, strict=True))
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

    def _row_entropies(self, resp, unions):
        """``-sum_n r log r`` of unions of states, as a list."""
        indptr = np.cumsum([0] + [len(u) for u in unions], dtype=np.intp)
        members = np.array([k for u in unions for k in u], dtype=np.intp)
        out = np.empty(len(unions))
        union_entropies(resp, self.sample.row_weight, indptr, members, out, self.n_threads)
        return out.tolist()

    def pruned(self, chain, n_tries):
        """``chain`` without small states whose rows do better with the others.

        What windows have in common of several states' worst rows may end as a wide state of its own,
        which no union mends.
        """
        i = 0  # of the states by size, which is tried next
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
