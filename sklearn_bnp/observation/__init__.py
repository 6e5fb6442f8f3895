"""Likelihoods with conjugate priors: one file a family, one line here."""

from .base import Likelihood, Moments, ObservationModel
from .bernoulli import BernoulliObservation
from .gaussian import GaussianObservation

OBSERVATIONS = {"bernoulli": BernoulliObservation, "gaussian": GaussianObservation}

__all__ = [
    "OBSERVATIONS",
    "BernoulliObservation",
    "GaussianObservation",
    "Likelihood",
    "Moments",
    "ObservationModel",
]
