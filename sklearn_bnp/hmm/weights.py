"""Priors of the transitions of Markov chains: sticky hierarchical Dirichlet process, and Dirichlet.

Design note
-----------
Row j of the transitions has q(pi_j) = Dir(theta_j); j = 0 stands for the start. Given the counts M_jl
the best theta is known, (6.40). With it the objective is a function of the counts and of the global sticks
alone, as for documents (topics/weights.py). With ``a_jl = alpha_j pi_l``, pi = E[beta] at the sticks, K
states and their rest >, and the terms Q of q(u) in which ``E[log u_l]`` and ``E[log(1 - u_l)]`` have these
coefficients, it is

    F = Q(1 + n_l, gamma + sum_{m > l} n_m)
        + sum_j [lnG(alpha_j + kappa_j) - lnG(M_j. + alpha_j + kappa_j)]
        + sum_{j != l} [lnG(M_jl + a_jl) - lnG(a_jl)]
        + sum_k [lnG(M_kk + kappa + a_k) - lnG(1 + kappa + a_k) + log(kappa + a_k e^{d_k}) - share_k d_k]
        - sum_jl g(a_jl) v_l,

with kappa_0 = 0. The last sum bounds the cost of the uncertainty of the weights (``_kernels/_sticks.pyx``),
with s = 1 + kappa on the diagonal and s = 1 elsewhere and for the rest. ``E[log beta_l]`` occurs for the
start and for each row off the diagonal, that of the rest in all rows. On the diagonal, ``lnG(kappa + x) =
lnG(1 + kappa + x) - log(kappa + x)`` leaves ``E[log(kappa + x)] >= log(kappa + exp E[log x])``, as the
logarithm is convex in log x. With d_k = E[log beta_k] - log pi_k, its derivative in d_k is

    share_k = a_k e^{d_k} / (kappa + a_k e^{d_k}),

so that ``n_l = K + share_l`` and ``n_> = K + 1``. The term ``- share_k d_k`` takes back what Q adds. The
derivative of the whole in share_k is 0: slopes are those at fixed shares. For kappa = 0 the shares are 1, and
the bound of the logarithm is exact. The bounds (6.28) and (6.30) of the thesis are looser, by about
alpha log kappa nats a row.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, expit, gammaln

from .._kernels import _sticks
from ..hdp.sticks import Sticks, StickTerms, balanced_omega, beta_counts, logits_of_weights
from ..hdp.weights import EqualWeights, SharedWeights, StickBreakingWeights

# Least value of alpha pi_k: its logarithm stays finite.
TINY = 1e-290
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
        theta = np.maximum(counts + a, TINY)
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
        weights = np.maximum(self.concentration * self.weights(sticks), TINY)
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
    a = np.maximum(a, TINY)
    return gammaln(counts + a) - gammaln(a)


@dataclass(frozen=True)
class HDPChains(StickBreakingWeights, ChainAllocation):
    """Sticky hierarchical Dirichlet process; Hughes (2016), Sec. 6.1 to 6.3.

    Parameters
    ----------
    gamma : float, default=1.0
        gamma > 0 of ``u_k ~ Beta(1, gamma)``. The higher, the more states.
    concentration : float, default=1.0
        alpha > 0. The higher, the closer the rows of transitions are to the global weights.
    start_concentration : float, default=1.0
        alpha_0 > 0. The higher, the closer the weights of first states are to the global ones.
    stickiness : float, default=50.0
        kappa >= 0: pseudo-count of the transition of each state to itself.
    """

    gamma: float = 1.0
    concentration: float = 1.0
    start_concentration: float = 1.0
    stickiness: float = 50.0

    def _problem(self, counts):
        return _Problem(self, counts)

    def start_of(self, counts):
        return self.start(counts.sum(axis=0))

    def start(self, mass):
        mass = np.maximum(mass, 0.0)  # states that lost all their rows may be below 0 by rounding
        # states without mass, and those that are not there yet, get about this share of a row's prior
        floor = 0.1 / (1.0 + len(mass))
        share = mass / max(mass.sum(), TINY)
        # the logarithms of the weights matter in a row's prior: masses themselves are too unequal
        weights = np.append(np.maximum(np.sqrt(share / max(share.max(), TINY)), floor), floor)
        return self.of_weights(weights[:-1] / weights.sum())

    def of_weights(self, weights):
        rest = max(1.0 - weights.sum(), 1e-3 / (1.0 + len(weights)))
        logit_rho = logits_of_weights(np.append(np.maximum(weights, TINY), rest))
        ones, zeros = beta_counts(self.guessed_uses(len(weights)), self.gamma)
        return Sticks(expit(logit_rho), balanced_omega(logit_rho, ones, zeros))

    def guessed_uses(self, n_states):
        """About how often each ``E[log pi_l]`` (K + 1,) occurs in the objective, the last is the rest's."""
        share = self.concentration / (self.concentration + n_states * self.stickiness)
        return np.append(np.full(n_states, n_states + share), n_states + 1.0)


class _Problem:
    """The objective of the HDP as a function of the sticks, for fixed counts."""

    def __init__(self, allocation, counts):
        self.allocation, self.counts = allocation, np.ascontiguousarray(counts, dtype=float)
        uses = allocation.guessed_uses(counts.shape[1])
        self.ones, self.zeros = beta_counts(uses, allocation.gamma)

    def __call__(self, logit_rho, log_omega):
        own, slopes = self.allocation, np.empty((3, len(logit_rho)))
        value, by_start, by_alpha, by_kappa = _sticks.chain_terms(
            logit_rho, log_omega, self.counts, own.gamma, own.concentration,
            own.start_concentration, own.stickiness, slopes,
        )  # fmt: skip
        by_name = {
            "start_concentration": by_start,
            "concentration": by_alpha,
            "stickiness": by_kappa,
        }
        return StickTerms(value, *slopes, by_name)


@dataclass(frozen=True)
class DirichletChains(EqualWeights, ChainAllocation):
    """Symmetric Dirichlet priors of the rows, sticky or not: the finite Bayesian HMM.

    The global weights are equal and known.

    Parameters
    ----------
    concentration : float, default=1.0
        alpha > 0: sum of the parameters of a row, without the stickiness.
    start_concentration : float, default=1.0
        alpha_0 > 0: sum of the parameters of the first states.
    stickiness : float, default=50.0
    """

    concentration: float = 1.0
    start_concentration: float = 1.0
    stickiness: float = 50.0

    def objective(self, sticks, counts):
        a, _ = self.prior(sticks)
        value = np.sum(gammaln(counts + a)) - np.sum(gammaln(a))
        return value + np.sum(gammaln(a.sum(axis=1)) - gammaln((counts + a).sum(axis=1)))

    def start_of(self, counts):
        return self._equal(counts.shape[1])

    def start(self, mass):
        return self._equal(len(mass))

    of_weights = start
