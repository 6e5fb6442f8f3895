"""Likelihoods with conjugate priors: one file a family, one line here."""

from ..inputs.moments import Moments
from .autoregressive import AutoregressiveObservation
from .base import Likelihood, ObservationModel
from .bernoulli import BernoulliObservation
from .categorical import CategoricalObservation
from .columns import ColumnObservation
from .fixed_variance import FixedVarianceGaussianObservation
from .gaussian import GaussianObservation
from .multinomial import MultinomialObservation
from .poisson import PoissonObservation

OBSERVATIONS = {
    "autoregressive": AutoregressiveObservation,
    "bernoulli": BernoulliObservation,
    "categorical": CategoricalObservation,
    "fixed_variance_gaussian": FixedVarianceGaussianObservation,
    "gaussian": GaussianObservation,
    "multinomial": MultinomialObservation,
    "poisson": PoissonObservation,
}

__all__ = [
    "OBSERVATIONS",
    "AutoregressiveObservation",
    "BernoulliObservation",
    "CategoricalObservation",
    "ColumnObservation",
    "FixedVarianceGaussianObservation",
    "GaussianObservation",
    "Likelihood",
    "Moments",
    "MultinomialObservation",
    "ObservationModel",
    "PoissonObservation",
]
