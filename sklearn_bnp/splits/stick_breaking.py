"""Stick-breaking priors of the weights of a mixture, as functions of the components' counts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln


def stick_breaking_term(n, concentration, discount=0.0):
    """Allocation term of weights with sticks ``u_k ~ Beta(1 - d, gamma + k d)``, in nats.

    The posteriors of the sticks are at their optimum given the counts; Hughes (2016), (3.44) with the sign of
    the errata.

    Parameters
    ----------
    n : ndarray, shape (..., K)
        Counts of the components, in ascending order.
    concentration : float
        gamma > 0.
    discount : float or ndarray of shape (..., 1), default=0
        d in [0, 1); 0 is that of a Dirichlet process.

    Returns
    -------
    term : ndarray, shape (...)
    """
    tail = np.cumsum(n, axis=-1)  # T_k, smallest component first
    before = np.arange(n.shape[-1])[::-1]
    each = gammaln(1.0 - discount + n) - gammaln(1.0 - discount)
    each -= np.log1p(tail / (concentration + before * discount))
    return each.sum(axis=-1) + gammaln(concentration) - gammaln(concentration + tail[..., -1])


class DirichletProcess:
    """Dirichlet process of concentration 1: a prior of weights where a model of rows has no other."""

    @staticmethod
    def elbo(n):
        """Allocation term (...) of the objective, for counts (..., K), NaN where there is no component."""
        return stick_breaking_term(np.sort(np.where(np.isnan(n), 0.0, n), axis=-1), 1.0)


class RowModel(NamedTuple):
    """A mixture of rows, for splits in a model that is no mixture, such as one of sequences.

    It has what `create` and `RestrictedMixture` read of a model.

    Attributes
    ----------
    likelihood : Likelihood
    prior : object
        The likelihood's prior as it stands.
    allocation : object
        The prior of the weights of the components, of which ``elbo`` is used.
    """

    likelihood: Any
    prior: Any
    allocation: Any = DirichletProcess
