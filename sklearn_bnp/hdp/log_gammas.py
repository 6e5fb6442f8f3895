"""Bounds of expected log-gamma functions of the weights, for priors of groups about them.

Design note
-----------
The log normaliser of ``Dir(alpha pi)`` has terms lnG(alpha pi_k), whose expectations under q(u) have no
closed form. Let x be a weight times its concentration, a = E[x], and ``v = E[x^2] / a^2 - 1``. For s > 0,

    E[lnG(s + x)] <= lnG(s + a) + g_s(a) v,    g_s(a) = a psi(s + a) - lnG(s + a) + lnG(s).

This is the expectation of the quadratic that meets ``f(x) = lnG(s + x)`` at 0 and touches it at a. The
quadratic lies above f for all x >= 0, as the third derivative of f is negative (doc/formulas_hdp.rst has
the proof). The other part of the log normaliser, ``-lnG(x) = log x - lnG(1 + x)``, needs E[log x], which is
known. The first two moments of a weight are products over sticks, so that v has a closed form.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, expit, gammaln, zeta

from .sticks import beta_remainders

# Largest logarithm of E[x^2] / E[x]^2: beyond it the number would overflow. A weight that is so uncertain
# has a mean that underflows, and costs nothing.
_MOST_LOG = 700.0


class WeightSpreads:
    """Squared coefficients of variation of the weights, ``E[pi_k^2] / E[pi_k]^2 - 1``, and their slopes.

    Parameters
    ----------
    logit_rho, log_omega : ndarray, shape (K,)
        The sticks.

    Attributes
    ----------
    v : ndarray, shape (K + 1,)
        The last entry is for the mass of all components that are not there yet.
    """

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
    return np.maximum(cost, 0.0), a * a * zeta(2.0, above)  # zeta(2, .) is the trigamma function


def log_deficits(logit_rho, log_omega):
    """``E[log pi_k] - log E[pi_k]``, which is never positive; shape (K,)."""
    omega = np.exp(log_omega)
    a, b = omega * expit(logit_rho), omega * expit(-logit_rho)
    phi, _, _ = beta_remainders(np.concatenate([a, b, omega]))
    of_u, of_left, of_both = phi.reshape(3, -1)
    out = of_u - of_both
    out[1:] += np.cumsum(of_left - of_both)[:-1]
    return out
