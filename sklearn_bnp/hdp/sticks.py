"""Stick-breaking weights with Beta posteriors, for priors that share weights between groups.

Topics of documents and states of hidden Markov models have global weights pi_k = u_k prod_{l<k}
(1 - u_l) with u_k ~ Beta(1, gamma) and q(u_k) = Beta(rho_k omega_k, (1 - rho_k) omega_k). Their
objective is a sum of terms ``n_k E[log u_k] + m_k E[log(1 - u_k)]``, of the divergence of q(u), and
of functions of E[pi]. ``_kernels/_sticks.pyx`` says how it is computed for a million groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from ..likelihood.ascent import ascended

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
    """The objective, and its derivatives in logit rho, log omega, and logarithms of concentrations."""

    value: float
    logit_rho: np.ndarray  # (K,)
    log_omega: np.ndarray  # (K,)
    draws: np.ndarray  # (K,) >= 0: as many draws from pi have the curvature of the data
    log_concentrations: dict[str, float]  # by the prior's names


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
        Coefficients of ``E[log u_k]`` and ``E[log(1 - u_k)]``, or about these; see `beta_counts`.
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

    def balanced(logit_rho):
        """Logarithm of `balanced_omega`, and its derivative by logit rho."""
        of_u, of_left = ones * np.exp(-logit_rho), zeros * np.exp(logit_rho)
        return np.log(of_u + of_left), (of_left - of_u) / (of_u + of_left)

    def slopes_of(terms, derivative):
        """Derivatives of the objective by the coordinates, given that of `balanced`."""
        by_rho = (terms.logit_rho + terms.log_omega * derivative) * units
        return np.concatenate([by_rho, terms.log_omega])

    log_balanced, derivative = balanced(logit_rho)
    best = terms.value, (logit_rho, log_omega)
    at_origin = terms.value, slopes_of(terms, derivative), best[1]
    if np.abs(at_origin[1]).max() < _SLOPE:
        return start, terms.value
    origin = np.concatenate([logit_rho / units, log_omega - log_balanced])

    def at(point):
        if (point == origin).all():  # the search begins with a point that is known already
            return at_origin
        logit_rho = units * point[: len(units)]
        log_balanced, derivative = balanced(logit_rho)
        log_omega = point[len(units) :] + log_balanced
        terms = objective(logit_rho, log_omega)
        return terms.value, slopes_of(terms, derivative), (logit_rho, log_omega)

    most = np.concatenate([_MAX_LOGIT / units, np.full(len(units), _MAX_LOG_RATIO)])
    value, (logit_rho, log_omega) = ascended(
        at, np.clip(origin, -most, most), -most, most, best, max_iter=max_iter, slope=_SLOPE,
        relative_gain=_RELATIVE_GAIN,
    )  # fmt: skip
    return Sticks(expit(logit_rho), np.exp(log_omega)), value
