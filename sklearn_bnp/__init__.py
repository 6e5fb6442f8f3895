"""Bayesian nonparametric models that find their own number of components, for scikit-learn users."""

from .hmm.estimator import HDPHMMVB
from .likelihood import (
    AutoregressiveObservation,
    BernoulliObservation,
    CategoricalObservation,
    ColumnObservation,
    FixedVarianceGaussianObservation,
    GaussianObservation,
    MultinomialObservation,
    PoissonObservation,
)
from .memory_bounded.estimator import MemoryBoundedTopicVB
from .mixture.estimator import DPMixtureVB
from .proposals import (
    Birth,
    Delete,
    Merge,
    StateBirth,
    StateDelete,
    StateMerge,
    TopicBirth,
    TopicDelete,
)
from .topics.estimator import HDPTopicVB

__version__ = "0.1.0"

__all__ = [
    "HDPHMMVB",
    "AutoregressiveObservation",
    "BernoulliObservation",
    "Birth",
    "CategoricalObservation",
    "ColumnObservation",
    "DPMixtureVB",
    "Delete",
    "FixedVarianceGaussianObservation",
    "GaussianObservation",
    "HDPTopicVB",
    "MemoryBoundedTopicVB",
    "Merge",
    "MultinomialObservation",
    "PoissonObservation",
    "StateBirth",
    "StateDelete",
    "StateMerge",
    "TopicBirth",
    "TopicDelete",
]
