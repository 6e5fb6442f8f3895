"""Likelihoods with conjugate priors: one file a family, one line here."""

from .autoregressive import AutoregressiveObservation
from .base import Likelihood, Moments, ObservationModel
from .bernoulli import BernoulliObservation
from .gaussian import GaussianObservation
from .multinomial import MultinomialObservation

OBSERVATIONS = {
    "autoregressive": AutoregressiveObservation,
    "bernoulli": BernoulliObservation,
    "gaussian": GaussianObservation,
    "multinomial": MultinomialObservation,
}

__all__ = [
    "OBSERVATIONS",
    "AutoregressiveObservation",
    "BernoulliObservation",
    "GaussianObservation",
    "Likelihood",
    "Moments",
    "MultinomialObservation",
    "ObservationModel",
]
