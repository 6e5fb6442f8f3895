"""Dirichlet-process and finite symmetric Dirichlet priors of mixture models."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import digamma, gammaln


class MixtureAllocation(ABC):
    """Prior over the frequencies of the components of a mixture, with its variational posterior.

    Components have no order here: an implementation orders them as suits it best, and no result
    depends on the order in which counts are given. All methods are pure functions of the counts.
    """

    @abstractmethod
    def elbo(self, n):
        """Allocation term of the objective at its optimum given the counts.

        Parameters
        ----------
        n : ndarray, shape (..., K)
            Counts N_k >= 0 of the components, nan where there is no component, so that candidates
            with different numbers of components can be compared in one call.

        Returns
        -------
        ndarray, shape (...)
            ``E_q[log p(z, pi) - log q(pi)]`` in nats; the entropy of q(z) is kept elsewhere.
        """

    @abstractmethod
    def expected_log_weights(self, n):
        """``E_q[log pi_k]`` for counts ``n`` (K,)."""

    @abstractmethod
    def weights(self, n):
        """``E_q[pi_k]`` for counts ``n`` (K,), normalised over the K components."""


class DPMixture(MixtureAllocation):
    """Stick-breaking prior with concentration gamma: ``u_k ~ Beta(1, gamma)``.

    Hughes (2016), (3.43), (3.44) with the sign of the errata. With the Beta posteriors at their
    optimum, (3.44) telescopes to

        K log gamma + sum_k [lnG(1 + N_k) - log(gamma + N_k + N_k^>)] + lnG(gamma) - lnG(gamma + N),

    in which only the logarithms depend on the order of the components, and are smallest for
    decreasing counts. Components are therefore always taken in that order. An empty component
    adds exactly nothing.
    """

    def __init__(self, concentration=1.0):
        self.concentration = concentration

    def elbo(self, n):
        gamma = self.concentration
        n = np.where(np.isnan(n), 0.0, n)
        n.sort(axis=-1)
        tail = np.cumsum(n, axis=-1)  # N_k + N_k^>, smallest component first
        each = gammaln(1.0 + n) - np.log1p(tail / gamma)
        return each.sum(axis=-1) + gammaln(gamma) - gammaln(gamma + tail[..., -1])

    def _betas(self, n):
        order = np.argsort(-n, kind="stable")
        sorted_n = n[order]
        tail = np.cumsum(sorted_n[::-1])[::-1]
        return order, 1.0 + sorted_n, self.concentration + tail - sorted_n

    def expected_log_weights(self, n):
        order, a, b = self._betas(n)
        total = digamma(a + b)
        log_left = np.concatenate([[0.0], np.cumsum(digamma(b) - total)[:-1]])
        out = np.empty(len(n))
        out[order] = digamma(a) - total + log_left
        return out

    def weights(self, n):
        order, a, b = self._betas(n)
        left = np.concatenate([[1.0], np.cumprod(b / (a + b))[:-1]])
        out = np.empty(len(n))
        out[order] = a / (a + b) * left
        return out / out.sum()


class DirichletMixture(MixtureAllocation):
    """Finite symmetric Dirichlet prior; Hughes (2016), Sec. 2.5.

    Parameters
    ----------
    concentration : float or None
        Parameter of each component; ``None`` is 1 / K for the number K of components at the time.
    """

    def __init__(self, concentration=None):
        self.concentration = concentration

    def _concentration(self, k):
        return 1.0 / k if self.concentration is None else np.full_like(k, self.concentration)

    def elbo(self, n):
        n = np.asarray(n, dtype=float)
        k = np.sum(~np.isnan(n), axis=-1).astype(float)
        a = np.asarray(self._concentration(k))[..., np.newaxis]
        each = np.where(np.isnan(n), 0.0, gammaln(a + np.nan_to_num(n)) - gammaln(a))
        total = a[..., 0] * k
        return each.sum(axis=-1) + gammaln(total) - gammaln(total + np.nansum(n, axis=-1))

    def expected_log_weights(self, n):
        a = self._concentration(np.asarray(float(len(n)))) + n
        return digamma(a) - digamma(a.sum())

    def weights(self, n):
        a = self._concentration(np.asarray(float(len(n)))) + n
        return a / a.sum()


ALLOCATIONS = {"dp": DPMixture, "dirichlet": DirichletMixture}
