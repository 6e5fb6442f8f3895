"""Stick-breaking weights with Beta posteriors, for priors that share weights between groups.

Topics of documents and states of hidden Markov models have global weights pi_k = u_k prod_{l<k}
(1 - u_l) with u_k ~ Beta(1, gamma) and q(u_k) = Beta(rho_k omega_k, (1 - rho_k) omega_k). Their
objective is a sum of terms ``n_k E[log u_k] + m_k E[log(1 - u_k)]``, of the divergence of q(u), and
of functions of E[pi]. Two things make it computable for a million groups:

- With phi(x) = psi(x) - log x, ``E[log u] = log rho + phi(rho omega) - phi(omega)``. The logarithm
  of the mean, which cancels against the groups' own terms, is kept apart from the rest, which is
  O(1 / omega).
- The terms lnG(x) and x psi(x) of the entropy of a Beta cancel to all digits when omega is 1e12, as
  it is for the last stick of a million documents. The remainder has a short asymptotic series (DLMF
  5.11.1, 5.11.2), which is used directly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.special import digamma, expit, gammaln, log_expit, zeta

# For x above this the asymptotic series are exact to double precision: their next terms are < 1e-15.
_ASYMPTOTIC = 20.0
# Half of log(2 pi e): entropy of a standard normal variable.
_HALF_LOG_2PIE = 0.5 * (np.log(2.0 * np.pi) + 1.0)
# Sticks are searched in 1e-11 < rho < 1 - 1e-11: much closer to 1, 1 - rho has no digits left.
_MAX_LOGIT = 25.0
# omega is searched within this factor (e^30) of `balanced_omega`.
_MAX_LOG_RATIO = 30.0
# The search stops at this relative gain, or at this slope. In the units of the search half the squared slope
# is about the gain that is left, in nats.
_RELATIVE_GAIN = 1e-10
_SLOPE = 1e-3


class Sticks(NamedTuple):
    """Global parameters of q(u): means and concentrations of the Beta posteriors, (5.8).

    The caller chooses the order of the components, which is that of the sticks.
    """

    rho: np.ndarray  # (K,) in (0, 1): E[u_k]
    omega: np.ndarray  # (K,) > 0; infinite where u_k is known


class StickTerms(NamedTuple):
    """The objective, or a part of it, with its derivatives in logit rho and log omega.

    The whole objective also has derivatives in the logarithms of the prior's concentrations, by name.
    """

    value: float
    logit_rho: np.ndarray  # (K,)
    log_omega: np.ndarray  # (K,)
    draws: np.ndarray | float  # (K,) >= 0: as many draws from pi have the curvature of the data
    log_concentrations: dict[str, float] | None = None


def logit(rho):
    """``log rho - log(1 - rho)``, shape (K,), within the range of the search."""
    return np.clip(np.log(rho) - np.log1p(-rho), -_MAX_LOGIT, _MAX_LOGIT)


def logits_of_weights(weights):
    """Sticks (K,), as log odds, of K + 1 positive weights that need not add up to one."""
    after = np.cumsum(weights[::-1])[::-1][1:]
    return np.clip(np.log(weights[:-1] / after), -_MAX_LOGIT, _MAX_LOGIT)


def log_weights(logit_rho):
    """Logarithms of E[pi_1], ..., E[pi_K], E[pi_>]; (5.11).

    Parameters
    ----------
    logit_rho : ndarray, shape (K,)
        Means of the sticks, as log odds: 1 - rho has all its digits however small it is.

    Returns
    -------
    ndarray, shape (K + 1,)
        The last entry is for the mass of all components that are not there yet.
    """
    log_left = np.concatenate([[0.0], np.cumsum(log_expit(-logit_rho))])
    log_left[:-1] += log_expit(logit_rho)
    return log_left


def chain_to_logits(slopes, rho):
    """Gradient in logit rho (K,) of a function with the slopes (K + 1,) in log pi.

    Stick k raises log pi_k by 1 - rho_k, and lowers log pi of all later components, and of the rest,
    by rho_k.
    """
    after = np.cumsum(slopes[::-1])[::-1][1:]
    return (1.0 - rho) * slopes[:-1] - rho * after


def beta_remainders(x):
    """Remainders of functions of a Beta's parameters without their leading terms, which cancel.

    Parameters
    ----------
    x : ndarray of positive numbers

    Returns
    -------
    phi : ndarray
        ``psi(x) - log x``, about -1 / 2x.
    h : ndarray
        ``x phi'(x) = x psi'(x) - 1``, about 1 / 2x.
    g : ndarray
        ``lnG(x) - x psi(x) + x``, about ``log(2 pi e / x) / 2``; its derivative is -h.
    """
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


def beta_counts(uses, gamma):
    """Coefficients of ``E[log u_k]`` and ``E[log(1 - u_k)]``, each of shape (K,); (5.25).

    Parameters
    ----------
    uses : ndarray, shape (K + 1,)
        How often ``E[log pi_k]`` occurs in the objective for each component, and for the rest. It is the
        number of documents for all of these.
    gamma : float
        Concentration of the prior, of which the coefficients are 1 and gamma.
    """
    return 1.0 + uses[:-1], gamma + np.cumsum(uses[::-1])[::-1][1:]


def balanced_omega(logit_rho, ones, zeros):
    """Best omega given rho when omega is large, shape (K,).

    The objective depends on omega through ``ones phi(a) + zeros phi(b) - (ones + zeros) phi(omega)
    + g(a) + g(b) - g(omega)``. With the leading terms of phi and g its maximum is at
    ``omega = ones (1 - rho) / rho + zeros rho / (1 - rho)``. Where rho = ones / (ones + zeros),
    this is the rule of thumb (5.39), ``ones + zeros``; at the last stick it is far larger.
    """
    return ones * np.exp(-logit_rho) + zeros * np.exp(logit_rho)


def stick_terms(logit_rho, log_omega, ones, zeros, gamma):
    """Terms of the objective that depend on q(u) other than through E[pi].

    Equivalent to ``sum_k (ones_k - 1) (E[log u_k] - log rho_k) + (zeros_k - gamma)
    (E[log(1 - u_k)] - log(1 - rho_k)) - KL(q(u_k) || Beta(1, gamma))``, but exact for any omega.

    Parameters
    ----------
    logit_rho, log_omega : ndarray, shape (K,)
        The sticks.
    ones, zeros : ndarray, shape (K,)
        Coefficients of ``E[log u_k]`` and ``E[log(1 - u_k)]``, those of the prior included; see
        `beta_counts`.
    gamma : float
        Concentration of the prior.

    Returns
    -------
    StickTerms
    """
    n_sticks = len(logit_rho)
    omega = np.exp(log_omega)
    log_rho, log_left = log_expit(logit_rho), log_expit(-logit_rho)
    rho, left = np.exp(log_rho), np.exp(log_left)
    a, b = rho * omega, left * omega

    phi, h, g = beta_remainders(np.concatenate([a, b, omega]))
    phi_a, phi_b, phi_omega = phi.reshape(3, n_sticks)
    h_a, h_b, h_omega = h.reshape(3, n_sticks)
    g_a, g_b, g_omega = g.reshape(3, n_sticks)

    value = n_sticks * np.log(gamma) + np.sum(log_rho + gamma * log_left)
    value += np.sum(g_a + g_b - g_omega)
    value += np.sum(ones * (phi_a - phi_omega) + zeros * (phi_b - phi_omega))
    in_log_a, in_log_b = (ones - a) * h_a, (zeros - b) * h_b
    return StickTerms(
        value=value,
        logit_rho=left * (1.0 + in_log_a) - rho * (gamma + in_log_b),
        log_omega=in_log_a + in_log_b - (ones + zeros - omega) * h_omega,
        draws=0.0,
    )


def maximise_over_sticks(objective, start, ones, zeros, max_iter):
    """Maximum of an objective over rho and omega, by L-BFGS.

    The coordinates are logit rho, each in its own unit, and log omega minus the logarithm of
    ``balanced_omega``. They are nearly independent and have curvature 1: draws from pi add up to Beta
    counts of the sticks, whose curvature in logit rho is ``rho (1 - rho) (draws_k + draws_>k)``.

    Parameters
    ----------
    objective : callable
        From logit rho (K,) and log omega (K,) to StickTerms.
    start : Sticks
        Where to start.
    ones, zeros : ndarray, shape (K,)
        See ``stick_terms``.
    max_iter : int
        Largest number of iterations.

    Returns
    -------
    sticks : Sticks
    value : float
        Never lower than at the start. Sticks and value are those of the best point that was met.
    """
    logit_rho, log_omega = logit(start.rho), np.log(start.omega)
    terms = objective(logit_rho, log_omega)
    rho = expit(logit_rho)
    draws = np.cumsum(terms.draws[::-1])[::-1]
    units = 1.0 / np.sqrt(1.0 + rho * (1.0 - rho) * draws)

    def descent(logit_rho, terms):
        balanced = balanced_omega(logit_rho, ones, zeros)
        drift = (zeros * np.exp(logit_rho) - ones * np.exp(-logit_rho)) / balanced
        in_units = (terms.logit_rho + terms.log_omega * drift) * units
        return -np.concatenate([in_units, terms.log_omega])

    at_origin = -terms.value, descent(logit_rho, terms)
    if np.abs(at_origin[1]).max() < _SLOPE:
        return start, terms.value
    ratio = log_omega - np.log(balanced_omega(logit_rho, ones, zeros))
    origin = np.concatenate([logit_rho / units, ratio])
    best = [terms.value, logit_rho, log_omega]

    def negated(point):
        if np.array_equal(point, origin):  # the search begins with a point that is known already
            return at_origin
        logit_rho = units * point[: len(units)]
        log_omega = point[len(units) :] + np.log(balanced_omega(logit_rho, ones, zeros))
        terms = objective(logit_rho, log_omega)
        if terms.value > best[0]:
            best[:] = terms.value, logit_rho, log_omega
        return -terms.value, descent(logit_rho, terms)

    most = np.concatenate([_MAX_LOGIT / units, np.full(len(units), _MAX_LOG_RATIO)])
    minimize(
        negated,
        np.clip(origin, -most, most),
        method="L-BFGS-B",
        jac=True,
        bounds=Bounds(-most, most),
        options={"maxiter": max_iter, "ftol": _RELATIVE_GAIN, "gtol": _SLOPE},
    )
    value, logit_rho, log_omega = best
    return Sticks(expit(logit_rho), np.exp(log_omega)), value
