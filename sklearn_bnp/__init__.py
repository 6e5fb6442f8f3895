"""Bayesian nonparametric models that find their own number of components, for scikit-learn users."""

from ._version import __version__ as __version__
from .engine.merge import Merge
from .hmm.birth import StateBirth
from .hmm.delete import StateDelete
from .hmm.estimator import HDPHMMVB
from .hmm.merge import StateMerge
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
from .mixture.birth import Birth
from .mixture.delete import Delete
from .mixture.estimator import DPMixtureVB
from .mixture.weights import (
    DirichletAllocation,
    DPAllocation,
    MixtureAllocation,
    PitmanYorAllocation,
)
from .topics.birth import TopicBirth
from .topics.delete import TopicDelete
from .topics.estimator import HDPTopicVB

__all__ = [
    "HDPHMMVB",
    "AutoregressiveObservation",
    "BernoulliObservation",
    "Birth",
    "CategoricalObservation",
    "ColumnObservation",
    "DPAllocation",
    "DPMixtureVB",
    "Delete",
    "DirichletAllocation",
    "FixedVarianceGaussianObservation",
    "GaussianObservation",
    "HDPTopicVB",
    "MemoryBoundedTopicVB",
    "Merge",
    "MixtureAllocation",
    "MultinomialObservation",
    "PitmanYorAllocation",
    "PoissonObservation",
    "StateBirth",
    "StateDelete",
    "StateMerge",
    "TopicBirth",
    "TopicDelete",
]
