"""scikit-learn's mixtures, as their users run them, for the same data in the same run."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.preprocessing import StandardScaler

from .report import Clock, fit_timed


class PeerFit(NamedTuple):
    model: BayesianGaussianMixture
    labels: NDArray[np.intp]
    n_kept: int  # components that own at least one row
    clock: Clock


class BestByBIC(NamedTuple):
    n_components: int
    labels: NDArray[np.intp]
    wall: float  # of the whole search


def bayesian_mixture(X, n_components: int, seed: int, max_iter: int = 200) -> PeerFit:
    """BayesianGaussianMixture, otherwise at its defaults (full covariance, k-means start)."""
    model = BayesianGaussianMixture(n_components=n_components, max_iter=max_iter, random_state=seed)
    clock = fit_timed(model, X)
    labels = model.predict(X)
    return PeerFit(model, labels, np.unique(labels).size, clock)


def best_by_bic(X, max_components: int, covariance_type: str = "full", seed: int = 0) -> BestByBIC:
    """GaussianMixture of least BIC over K = 1..max_components, on standardised columns."""
    Z = StandardScaler().fit_transform(X)
    with Clock() as clock, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [
            GaussianMixture(k, covariance_type=covariance_type, random_state=seed).fit(Z)
            for k in range(1, max_components + 1)
        ]
        best = min(fits, key=lambda fit: fit.bic(Z))
    return BestByBIC(best.n_components, best.predict(Z), clock.wall)
