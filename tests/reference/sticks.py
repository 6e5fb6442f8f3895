"""Objectives of hierarchical Dirichlet processes and their slopes, as operations on arrays; `_sticks.pyx`."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, expit, gammaln, log_expit, zeta

from sklearn_bnp.hdp.sticks import log_weights

# For x above this the asymptotic series are exact to double precision: their next terms are < 1e-15.
_ASYMPTOTIC = 20.0
# Half of log(2 pi e): entropy of a standard normal variable.
_HALF_LOG_2PIE = 0.5 * (np.log(2.0 * np.pi) + 1.0)
# Largest logarithm of E[x^2] / E[x]^2: beyond it the number would overflow.
_MOST_LOG = 700.0
# Least value of alpha pi_k: its logarithm stays finite.
TINY = 1e-290


def beta_remainders(x):
    """``psi(x) - log x``, ``x psi'(x) - 1`` and ``lnG(x) - x psi(x) + x``."""
    small = x < _ASYMPTOTIC
    big = np.where(small, _ASYMPTOTIC, x)
    i1 = 1.0 / big
    i2 = i1 * i1
    phi = -i1 * (1 / 2 + i1 * (1 / 12 - i2 * (1 / 120 - i2 * (1 / 252 - i2 / 240))))
    h = i1 * (1 / 2 + i1 * (1 / 6 - i2 * (1 / 30 - i2 * (1 / 42 - i2 / 30))))
    g = i1 * (1 / 6 - i2 * (1 / 90 - i2 * (1 / 210 - i2 / 210)))
    g += _HALF_LOG_2PIE - 0.5 * np.log(big)
    if small.any():
        s = x[small]
        psi = digamma(s)
        phi[small] = psi - np.log(s)
        h[small] = s * zeta(2.0, s) - 1.0  # zeta(2, .) is the trigamma function
        g[small] = gammaln(s) - s * psi + s
    return phi, h, g


def stick_terms(logit_rho, log_omega, uses, gamma):
    """Terms of q(u) other than through E[pi], and their slopes in logit rho and log omega.

    ``uses`` (K + 1,) says how often each ``E[log pi_k]`` occurs.
    """
    ones, zeros = 1.0 + uses[:-1], gamma + np.cumsum(uses[::-1])[::-1][1:]
    omega = np.exp(log_omega)
    log_rho, log_left = log_expit(logit_rho), log_expit(-logit_rho)
    rho, left = np.exp(log_rho), np.exp(log_left)
    a, b = rho * omega, left * omega
    (phi_a, h_a, g_a), (phi_b, h_b, g_b), (phi, h, g) = map(beta_remainders, (a, b, omega))
    value = np.sum(np.log(gamma) + log_rho + gamma * log_left + g_a + g_b - g)
    value += np.sum(ones * (phi_a - phi) + zeros * (phi_b - phi))
    in_log_a, in_log_b = (ones - a) * h_a, (zeros - b) * h_b
    by_logit = left * (1.0 + in_log_a) - rho * (gamma + in_log_b)
    return value, by_logit, in_log_a + in_log_b - (ones + zeros - omega) * h


def chain_to_logits(slopes, logit_rho):
    """Slopes in logit rho (K,) of a function with the slopes (K + 1,) in log pi."""
    after = np.cumsum(slopes[::-1])[::-1][1:]
    return expit(-logit_rho) * slopes[:-1] - expit(logit_rho) * after


class WeightSpreads:
    """``v = E[pi_k^2] / E[pi_k]^2 - 1`` (K + 1,) and its slopes."""

    def __init__(self, logit_rho, log_omega):
        self._omega = np.exp(log_omega)
        # E[u^2] / E[u]^2 = 1 + x, and 1 + y is the same of 1 - u
        self._x = np.exp(-logit_rho) / (self._omega + 1.0)
        self._y = np.exp(logit_rho) / (self._omega + 1.0)
        logs = np.append(np.log1p(self._x), 0.0)
        logs[1:] += np.cumsum(np.log1p(self._y))
        self._logs = np.minimum(logs, _MOST_LOG)
        self.v = np.expm1(self._logs)

    def pulled_back(self, slopes):
        """Slopes in logit rho and log omega, each (K,), of a function with slopes (K + 1,) in ``v``."""
        each = slopes * np.exp(self._logs)
        after = np.cumsum(each[::-1])[::-1][1:]
        by_x = each[:-1] * self._x / (1.0 + self._x)
        by_y = after * self._y / (1.0 + self._y)
        return by_y - by_x, -self._omega / (self._omega + 1.0) * (by_x + by_y)


def spread_costs(a, s=1.0):
    """The factor g_s(a) of ``v`` in the bound of ``E[lnG(s + x)]``, and its slope in log a."""
    above = s + a
    cost = a * digamma(above) - gammaln(above) + gammaln(s)
    return np.maximum(cost, 0.0), a * a * zeta(2.0, above)


def log_deficits(logit_rho, log_omega):
    """``E[log pi_k] - log E[pi_k]``, which is never positive; shape (K,)."""
    omega = np.exp(log_omega)
    of_u, of_left, of_both = (
        beta_remainders(x)[0] for x in (omega * expit(logit_rho), omega * expit(-logit_rho), omega)
    )
    out = of_u - of_both
    out[1:] += np.cumsum(of_left - of_both)[:-1]
    return out


def document_terms(logit_rho, log_omega, lgammas, digammas, using, n_docs, gamma, alpha):
    """Value, slopes (3, K) and slope in log alpha; as the kernel of this name."""
    log_pi = log_weights(logit_rho)
    a = alpha * np.exp(log_pi)
    used, spreads = a[:-1], WeightSpreads(logit_rho, log_omega)
    costs, cost_slopes = spread_costs(a)
    value, by_logit, by_omega = stick_terms(
        logit_rho, log_omega, np.full(len(a), float(n_docs)), gamma
    )
    value += lgammas.sum() - n_docs * np.dot(costs, spreads.v)
    value += np.dot(using, log_pi[:-1] + np.log(alpha) - gammaln(1.0 + used))
    draws = used * digammas + using * (1.0 - used * digamma(1.0 + used))
    total = np.append(draws, 0.0) - n_docs * cost_slopes * spreads.v
    of_spreads = spreads.pulled_back(-n_docs * costs)
    by_logit = by_logit + chain_to_logits(total, logit_rho) + of_spreads[0]
    slopes = np.stack([by_logit, by_omega + of_spreads[1], np.maximum(draws, 0.0)])
    return value, slopes, total.sum()


def chain_terms(logit_rho, log_omega, counts, gamma, alpha, start, kappa):
    """Value, slopes (3, K), and those in log alpha_0, log alpha and log kappa; as the kernel of this name."""
    n_states = len(logit_rho)
    k, row = np.arange(n_states), np.minimum(np.arange(n_states + 1), 1)
    concentrations = np.append(start, np.full(n_states, alpha))
    whole = concentrations + np.append(0.0, np.full(n_states, kappa))
    totals = counts.sum(axis=1) + whole
    by_size = digamma(whole) - digamma(totals)
    # entries of the start and of the other rows that have the bound with s = 1
    times = np.array([np.ones(n_states + 1), np.full(n_states + 1, n_states - 1.0)])
    times[1, -1] = n_states
    spreads, deficits = WeightSpreads(logit_rho, log_omega), log_deficits(logit_rho, log_omega)
    two = np.maximum(np.outer([start, alpha], np.exp(log_weights(logit_rho))), TINY)
    costs, cost_slopes = (times * each for each in spread_costs(two))

    # log rising factorials, from lnG(1 + a)
    a = two[row, :-1]
    entries = gammaln(1.0 + counts + a) - np.log1p(counts / a) - gammaln(1.0 + a)
    slopes = a * (digamma(1.0 + counts + a) - digamma(1.0 + a)) + counts / (counts + a)

    own, m = two[1, :-1], counts[k + 1, k]
    log_own = np.log(own) + deficits
    log_kappa = np.log(kappa) if kappa > 0 else -np.inf
    share = expit(log_own - log_kappa)
    diagonal = gammaln(m + kappa + own) - gammaln(1.0 + kappa + own) - share * deficits
    entries[k + 1, k] = diagonal + np.logaddexp(log_kappa, log_own)
    psi = digamma(1.0 + kappa + own)
    rise = digamma(m + kappa + own) - psi
    slopes[k + 1, k] = own * rise + share
    of_own, own_slopes = spread_costs(own, 1.0 + kappa)
    costs[1, :-1] += of_own
    cost_slopes[1, :-1] += own_slopes

    uses = np.append(n_states + share, n_states + 1.0)
    top, by_logit, by_omega = stick_terms(logit_rho, log_omega, uses, gamma)
    draws = slopes.sum(axis=0)
    total = np.append(draws, 0.0) - cost_slopes.sum(axis=0) * spreads.v
    of_spreads = spreads.pulled_back(-costs.sum(axis=0))
    by_row = slopes.sum(axis=1) + concentrations * by_size
    less = cost_slopes @ spreads.v
    # kappa in the logarithm, in the normalisers, on the diagonal, and in its cost there
    of_cost = own_slopes / own - psi + digamma(1.0 + kappa)
    by_kappa = 1.0 - share + kappa * (by_size[1:] + rise - of_cost * spreads.v[:-1])
    value = top + np.sum(gammaln(whole) - gammaln(totals)) + entries.sum()
    value -= np.sum(costs @ spreads.v)
    by_logit = by_logit + chain_to_logits(total, logit_rho) + of_spreads[0]
    slopes = np.stack([by_logit, by_omega + of_spreads[1], np.maximum(draws, 0.0)])
    return value, slopes, by_row[0] - less[0], by_row[1:].sum() - less[1], by_kappa.sum()
