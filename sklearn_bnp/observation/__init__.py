"""Likelihoods with conjugate priors: one file a family, one line here."""

from .base import Likelihood, Moments, ObservationModel
from .bernoulli import BernoulliObservation
from .gaussian import GaussianObservation
from .multinomial import MultinomialObservation

OBSERVATIONS = {
    "bernoulli": BernoulliObservation,
    "gaussian": GaussianObservation,
    "multinomial": MultinomialObservation,
}

__all__ = [
    "OBSERVATIONS",
    "BernoulliObservation",
    "GaussianObservation",
    "Likelihood",
    "Moments",
    "MultinomialObservation",
    "ObservationModel",
]
