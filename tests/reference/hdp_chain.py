"""Allocation term of hidden Markov models, from the definitions: rows one by one, explicit bounds.

Hughes (2016), Sec. 6.2; counts are (K + 1, K), row 0 is the start.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from .allocations import beta_divergence
from .hdp_topic import dirichlet_cumulant, mean_of_quadratic, moments, stick_weights


class HDPChainRows:
    """Rows ``pi_j ~ Dir(alpha pi + kappa delta_j)``, and ``Dir(alpha_0 pi)`` of the start."""

    def __init__(self, gamma, alpha, start, kappa):
        self.gamma, self.alpha, self.start, self.kappa = gamma, alpha, start, kappa

    def rows(self, n_states):
        """For each row: its alpha, and its kappa for every state and the rest."""
        yield self.start, np.zeros(n_states + 1)
        for k in range(n_states):
            yield self.alpha, self.kappa * (np.arange(n_states + 1) == k)

    def objective(self, counts, rho, omega):
        """With the quadratic bound of each log-gamma function, and that of log(kappa + x)."""
        return self._of(counts, rho, omega, self._normaliser)

    def loose_objective(self, counts, rho, omega):
        """With the bounds (6.28) and (6.30), and the better one of two bounds of log(kappa + x)."""
        chord = self._of(counts, rho, omega, self._by_chord) if self.kappa else -np.inf
        return max(chord, self._of(counts, rho, omega, self._by_logarithm))

    def _of(self, counts, rho, omega, normaliser):
        a, b = rho * omega, (1.0 - rho) * omega
        out = -sum(beta_divergence(x, y, 1.0, self.gamma) for x, y in zip(a, b, strict=True))
        mean = stick_weights(rho)
        for (alpha, kappa), n in zip(self.rows(len(rho)), counts, strict=True):
            theta = np.append(n, 0.0) + alpha * mean + kappa
            out += normaliser(alpha, kappa, rho, omega) - dirichlet_cumulant(theta)
        return out

    @staticmethod
    def _normaliser(alpha, kappa, rho, omega):
        """Lower bound of the expected ``c_Dir(alpha pi + kappa)`` of one row."""
        out = gammaln(alpha + kappa.sum())
        for m, m2, log, k in zip(*moments(rho, omega), kappa, strict=True):
            out -= mean_of_quadratic(1.0 + k, alpha * m, m2 / m**2)
            out += np.logaddexp(np.log(k), np.log(alpha) + log) if k else np.log(alpha) + log
        return out

    @staticmethod
    def _by_logarithm(alpha, kappa, rho, omega):
        """(6.30) with kappa left out of the logarithm."""
        _, _, logs = moments(rho, omega)
        return (len(rho) + 1) * np.log(alpha) - np.log(alpha + kappa.sum()) + logs.sum()

    @staticmethod
    def _by_chord(alpha, kappa, rho, omega):
        """(6.30) with the chord (6.31)."""
        mean, _, logs = moments(rho, omega)
        whole, sticky = np.log(alpha + kappa.sum()), kappa > 0
        out = len(rho) * np.log(alpha) - whole + logs[~sticky].sum()
        if not sticky.any():
            return out + np.log(alpha)
        [k] = np.log(kappa[sticky])
        return out + k + mean[sticky][0] * (whole - k)
