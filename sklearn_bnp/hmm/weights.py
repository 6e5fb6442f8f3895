"""Priors of the transitions of Markov chains: sticky hierarchical Dirichlet process, and Dirichlet.

Design note
-----------
Row j of the transitions has q(pi_j) = Dir(theta_j); j = 0 stands for the start. Given the counts M_jl
the best theta is known, (6.40). With it the objective is a function of the counts and of the global sticks
alone, as for documents (topics/weights.py). With parameters ``a_jl = alpha_j pi_l`` of the rows' priors,
pi = E[pi^G] at the sticks,

    F = stick_terms(n_ones + 1, n_zeros + gamma) + constant
        + sum_jl h(M_jl, a_jl) + sum_j lnG(1 + a_j>) - sum_j lnG(M_j. + alpha_j + kappa_j),
    h(M, a) = lnG(M + a) + log a = lnG(1 + M + a) - log(1 + M / a),

in which the logarithms of the surrogate bound of ``E[c_Dir(alpha pi^G(u))]``, (6.28), have
cancelled against those of unused transitions. Under stickiness the diagonal has ``lnG(M_kk +
alpha pi_k + kappa)`` in place of h. What is left of the bound (6.30) there is ``E[log(alpha pi_k +
kappa)]``, for which there are two bounds. The chord (6.31) is linear in pi_k; it replaces the
logarithms of the diagonal, so that ``n_ones = K`` and ``n_zeros = K (K + 1 - k) + 1``: (6.33) is off
by one here (doc/formulas_chains.rst). Or kappa is left out, ``log(alpha pi_k)``: the better one for a
kappa that is small beside alpha pi_k, and the only one for kappa = 0, where ``n_ones = K + 1`` and
``n_zeros = (K + 1) (K + 1 - k)``. The objective is the greater of the two, so that it is
continuous at kappa = 0.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from scipy.special import digamma, expit, gammaln

from ..hdp.sticks import (
    Sticks,
    StickTerms,
    balanced_omega,
    beta_counts,
    chain_to_logits,
    log_weights,
    logits_of_weights,
    stick_terms,
)
from ..hdp.weights import EqualWeights, SharedWeights, StickBreakingWeights

# Least value of alpha pi_k: its logarithm stays finite.
_TINY = 1e-290
# L-BFGS iterations for the weights after a union.
_UNION_STEPS = 40


class ChainAllocation(SharedWeights):
    """Prior over the start and the transitions of Markov chains, with its variational posterior.

    Counts are arrays (K + 1, K): row 0 has the starts, row j the transitions from state j - 1. Rows of
    transitions are at their optimum given the counts.
    """

    start_concentration: float
    concentration: float
    stickiness: float

    @abstractmethod
    def start(self, mass):
        """`Sticks` to start from, for states of these masses (K,)."""

    @abstractmethod
    def of_weights(self, weights):
        """`Sticks` for which ``E[pi_k]`` is about ``weights`` (K,); the rest has what they leave of 1."""

    def prior(self, sticks):
        """Parameters (K + 1, K) of the Dirichlet priors of the rows, and those (K + 1,) of the rest."""
        weights, rest = self.weights(sticks), self.rest(sticks)
        alpha = np.full(len(weights) + 1, float(self.concentration))
        alpha[0] = self.start_concentration
        a = np.multiply.outer(alpha, weights)
        a[1:] += self.stickiness * np.eye(len(weights))
        return a, alpha * rest

    def expected_log_rows(self, sticks, counts):
        """``E[log pi_jl]`` (K + 1, K) of the start and the transitions; (6.17)."""
        a, rest = self.prior(sticks)
        theta = np.maximum(counts + a, _TINY)
        return digamma(theta) - digamma(theta.sum(axis=1) + rest)[:, np.newaxis]

    def union_gains(self, sticks, counts, pairs):
        """Estimated change of the objective by each union of two states, shape (P,).

        The change of the rows' terms, with weights that add up, is found for each pair. One weight less, and
        better weights for the other states, gain about the same for all pairs. This part is
        found for the first pair alone.

        Parameters
        ----------
        sticks : Sticks
        counts : ndarray, shape (K + 1, K)
        pairs : ndarray of intp, shape (P, 2)
        """
        gains = self.row_gains(sticks, counts, pairs)
        if len(pairs) == 0:
            return gains
        (i, j), states = pairs[0], np.arange(counts.shape[1])
        names = np.eye(len(states))
        names[j] = names[i]
        weights = (self.weights(sticks) @ names)[states != j]
        order = states[states != j][np.argsort(-weights, kind="stable")]
        there = np.vstack([counts[:1] @ names, names.T @ counts[1:] @ names])
        there = there[np.concatenate([[0], order + 1])][:, order]
        start = self.of_weights(-np.sort(-weights))
        _, value = self.optimise(there, start, _UNION_STEPS)
        return gains + (value - self.objective(sticks, counts) - gains[0])

    def row_gains(self, sticks, counts, pairs):
        """Change of the rows' terms (P,) by each union of two states, with weights that add up."""
        a, rest = self.prior(sticks)
        i, j = pairs.T
        p, kappa, rise = np.arange(len(pairs)), self.stickiness, log_rising_factorial
        own = rise(counts, a)
        # columns of the other rows
        both = rise(counts[:, i] + counts[:, j], a[:, i] + a[:, j]) - own[:, i] - own[:, j]
        both[i + 1, p] = both[j + 1, p] = 0.0
        # rows of the other columns; the prior of a row is the same for both but for the diagonal
        weights = np.maximum(self.concentration * self.weights(sticks), _TINY)
        row = rise(counts[i + 1] + counts[j + 1], weights) - own[i + 1] - own[j + 1]
        row[p, i] = row[p, j] = 0.0
        links = counts[i + 1, i] + counts[i + 1, j] + counts[j + 1, i] + counts[j + 1, j]
        square = rise(links, weights[i] + weights[j] + kappa)
        square -= own[i + 1, i] + own[i + 1, j] + own[j + 1, i] + own[j + 1, j]
        total, whole = counts.sum(axis=1), a.sum(axis=1) + rest
        size = -rise(total[i + 1] + total[j + 1], whole[i + 1])
        size += rise(total[i + 1], whole[i + 1]) + rise(total[j + 1], whole[j + 1])
        return both.sum(axis=0) + row.sum(axis=1) + square + size

    def mean_rows(self, sticks, counts):
        """``E[pi_jl]`` (K + 1, K), normalised over the K states that are there."""
        theta = counts + self.prior(sticks)[0]
        return theta / theta.sum(axis=1, keepdims=True)


def log_rising_factorial(counts, a):
    """``lnG(counts + a) - lnG(a)``, elementwise."""
    a = np.maximum(a, _TINY)
    return gammaln(counts + a) - gammaln(a)


class HDPChains(StickBreakingWeights, ChainAllocation):
    """Sticky hierarchical Dirichlet process; Hughes (2016), Sec. 6.1 to 6.3.

    Parameters
    ----------
    concentration : float, default=1.0
        gamma > 0 of ``u_k ~ Beta(1, gamma)``. The higher, the more states.
    transition_concentration : float, default=1.0
        alpha > 0. The higher, the closer the rows of transitions are to the global weights.
    start_concentration : float, default=1.0
        alpha_0 > 0. The higher, the closer the weights of first states are to the global ones.
    stickiness : float, default=50.0
        kappa >= 0: pseudo-count of the transition of each state to itself.
    """

    def __init__(
        self, concentration=1.0, transition_concentration=1.0, start_concentration=1.0,
        stickiness=50.0,
    ):  # fmt: skip
        self.gamma = concentration
        self.concentration = transition_concentration
        self.start_concentration = start_concentration
        self.stickiness = stickiness

    def _problems(self, counts):
        """`_Problem` under each bound of the diagonal that may be the better one."""
        if self.stickiness == 0:
            return [_Problem(self, counts, chord=False)]
        if self.stickiness >= self.concentration:
            return [_Problem(self, counts, chord=True)]
        return [_Problem(self, counts, chord=chord) for chord in (False, True)]

    def start_of(self, counts):
        return self.start(counts.sum(axis=0))

    def start(self, mass):
        mass = np.maximum(mass, 0.0)  # states that lost all their rows may be below 0 by rounding
        # states without mass, and those that are not there yet, get about this share of a row's prior
        floor = 0.1 / (1.0 + len(mass))
        share = mass / max(mass.sum(), _TINY)
        # the logarithms of the weights matter in a row's prior: masses themselves are too unequal
        weights = np.append(np.maximum(np.sqrt(share / max(share.max(), _TINY)), floor), floor)
        return self.of_weights(weights[:-1] / weights.sum())

    def of_weights(self, weights):
        rest = max(1.0 - weights.sum(), 1e-3 / (1.0 + len(weights)))
        logit_rho = logits_of_weights(np.append(np.maximum(weights, _TINY), rest))
        ones, zeros = _beta_counts(len(weights), self.gamma, self.stickiness > 0)
        return Sticks(expit(logit_rho), balanced_omega(logit_rho, ones, zeros))


def _beta_counts(n_states, gamma, chord):
    """Coefficients of E[log u_k] and E[log(1 - u_k)], the prior's included; see the design note."""
    if not chord:
        return beta_counts(n_states + 1.0, n_states, gamma)
    ones, zeros = beta_counts(n_states, n_states, 1.0)
    return ones, zeros + gamma


class _Problem:
    """The objective of the HDP as a function of the sticks, for fixed counts, under one bound."""

    def __init__(self, allocation, counts, *, chord):
        n_states = counts.shape[1]
        alpha, kappa = allocation.concentration, allocation.stickiness
        self.counts, self.gamma, self.chord = counts, allocation.gamma, chord
        self.alpha = np.full(n_states + 1, float(alpha))
        self.alpha[0] = allocation.start_concentration
        self.kappa = kappa
        self.ones, self.zeros = _beta_counts(n_states, allocation.gamma, chord)
        extra = np.full(n_states + 1, float(kappa))
        extra[0] = 0.0
        self.constant = -np.sum(gammaln(counts.sum(axis=1) + self.alpha + extra))
        self.constant -= np.log(allocation.start_concentration)
        if chord:
            self.slope = np.log1p(alpha / kappa)
            self.constant -= n_states * self.slope
        else:
            # log(alpha / (alpha + kappa)) of (6.30) with kappa left out, and a log alpha: (5.23) has one
            # less of these than a row has entries
            self.slope = 0.0
            self.constant -= n_states * np.log(alpha + kappa)

    def __call__(self, logit_rho, log_omega):
        n_states = len(logit_rho)
        log_pi = log_weights(logit_rho)
        pi = np.exp(log_pi)
        a = np.maximum(np.multiply.outer(self.alpha, pi[:-1]), _TINY)
        rest = self.alpha * pi[-1]
        top = stick_terms(logit_rho, log_omega, self.ones, self.zeros, self.gamma)

        entries = gammaln(1.0 + self.counts + a) - np.log1p(self.counts / a)
        slopes = a * digamma(1.0 + self.counts + a) + self.counts / (self.counts + a)
        k = np.arange(n_states)
        if self.kappa > 0:
            own = a[k + 1, k]
            whole = self.counts[k + 1, k] + own + self.kappa
            entries[k + 1, k] = gammaln(whole)
            slopes[k + 1, k] = own * digamma(whole)
            if not self.chord:  # log(alpha pi_k), from the bound
                entries[k + 1, k] += np.log(own)
                slopes[k + 1, k] += 1.0
        value = top.value + self.constant + entries.sum() + np.sum(gammaln(1.0 + rest))
        value += self.slope * pi[:-1].sum()
        total = np.append(slopes.sum(axis=0) + self.slope * pi[:-1], rest @ digamma(1.0 + rest))
        return StickTerms(
            value=value,
            logit_rho=top.logit_rho + chain_to_logits(total, expit(logit_rho)),
            log_omega=top.log_omega,
            # the rows act like this many draws from pi
            draws=np.maximum(slopes.sum(axis=0) - np.sum(a * digamma(1.0 + a), axis=0), 0.0),
        )


class DirichletChains(EqualWeights, ChainAllocation):
    """Symmetric Dirichlet priors of the rows, sticky or not: the finite Bayesian HMM.

    The global weights are equal and known.

    Parameters
    ----------
    transition_concentration : float, default=1.0
        alpha > 0: sum of the parameters of a row, without the stickiness.
    start_concentration : float, default=1.0
        alpha_0 > 0: sum of the parameters of the first states.
    stickiness : float, default=50.0
    """

    def __init__(self, transition_concentration=1.0, start_concentration=1.0, stickiness=50.0):
        self.concentration = transition_concentration
        self.start_concentration = start_concentration
        self.stickiness = stickiness

    def objective(self, sticks, counts):
        a, _ = self.prior(sticks)
        value = np.sum(gammaln(counts + a)) - np.sum(gammaln(a))
        return value + np.sum(gammaln(a.sum(axis=1)) - gammaln((counts + a).sum(axis=1)))

    def start_of(self, counts):
        return self._equal(counts.shape[1])

    def start(self, mass):
        return self._equal(len(mass))

    of_weights = start
