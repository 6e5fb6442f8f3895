"""What the learner asks of an allocation model."""

from __future__ import annotations

from abc import ABC, abstractmethod


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
