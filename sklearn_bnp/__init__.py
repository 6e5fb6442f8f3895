"""Bayesian nonparametric models that find their own number of components, for scikit-learn users."""

from ._version import __version__ as __version__
from .engine import (
    AdoptTrial,
    Context,
    Proposal,
    Sample,
    SplitTrial,
    Trial,
    UnionTrial,
)
from .engine.merge import Merge
from .estimator.checkpoints import Checkpoint
from .estimator.combination import combine
from .estimator.saved_state import load
from .hmm.birth import StateBirth
from .hmm.delete import StateDelete
from .hmm.estimator import HDPHMMVB
from .hmm.merge import StateMerge
from .hmm.oversplit import StateOversplit
from .hmm.restart import StateRestart
from .inputs.files import open_batches
from .likelihood import (
    AutoregressiveObservation,
    BernoulliObservation,
    CategoricalObservation,
    ColumnObservation,
    CorrelatedGaussianObservation,
    FixedVarianceGaussianObservation,
    GaussianObservation,
    Likelihood,
    MultinomialObservation,
    NegativeBinomialObservation,
    ObservationModel,
    PoissonObservation,
)
from .memory_bounded.estimator import MemoryBoundedTopicVB
from .mixture.birth import Birth
from .mixture.delete import Delete
from .mixture.estimator import DPMixtureVB
from .mixture.oversplit import Oversplit
from .mixture.regroup import Regroup
from .mixture.relocate import Relocate
from .mixture.weights import (
    DirichletAllocation,
    DPAllocation,
    MixtureAllocation,
    PitmanYorAllocation,
)
from .topics.birth import TopicBirth
from .topics.delete import TopicDelete
from .topics.estimator import HDPTopicVB
from .topics.resettle import Resettle
from .topics.restart import TopicRestart

__all__ = [
    "HDPHMMVB",
    "AdoptTrial",
    "AutoregressiveObservation",
    "BernoulliObservation",
    "Birth",
    "CategoricalObservation",
    "Checkpoint",
    "ColumnObservation",
    "Context",
    "CorrelatedGaussianObservation",
    "DPAllocation",
    "DPMixtureVB",
    "Delete",
    "DirichletAllocation",
    "FixedVarianceGaussianObservation",
    "GaussianObservation",
    "HDPTopicVB",
    "Likelihood",
    "MemoryBoundedTopicVB",
    "Merge",
    "MixtureAllocation",
    "MultinomialObservation",
    "NegativeBinomialObservation",
    "ObservationModel",
    "Oversplit",
    "PitmanYorAllocation",
    "PoissonObservation",
    "Proposal",
    "Regroup",
    "Relocate",
    "Resettle",
    "Sample",
    "SplitTrial",
    "StateBirth",
    "StateDelete",
    "StateMerge",
    "StateOversplit",
    "StateRestart",
    "TopicBirth",
    "TopicDelete",
    "TopicRestart",
    "Trial",
    "UnionTrial",
    "combine",
    "load",
    "open_batches",
]
