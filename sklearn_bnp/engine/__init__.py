"""The engine of all models: laps over the data, proposals, trials and probes.

The names exported here are those that proposals, trials and probes of one's own need; "Add a proposal" in the
documentation shows how they work together. The other modules of this folder are private.
"""

from .affinity import nearest, reassignment_loss
from .agglomeration import agglomerate
from .edits import SplitEdit, UnionEdit
from .failures import Failures
from .probe import Each, Observer, Probe
from .proposal import Context, Proposal
from .samples import Sample, UniformSample
from .statistics import StatBag
from .task import LocalResult, LocalTask
from .trials import (
    AdoptTrial,
    Expectation,
    KnownTrial,
    Outcome,
    Policy,
    SplitTrial,
    Trial,
    UndoTrial,
    UnionTrial,
)

__all__ = [
    "AdoptTrial",
    "Context",
    "Each",
    "Expectation",
    "Failures",
    "KnownTrial",
    "LocalResult",
    "LocalTask",
    "Observer",
    "Outcome",
    "Policy",
    "Probe",
    "Proposal",
    "Sample",
    "SplitEdit",
    "SplitTrial",
    "StatBag",
    "Trial",
    "UndoTrial",
    "UniformSample",
    "UnionEdit",
    "UnionTrial",
    "agglomerate",
    "nearest",
    "reassignment_loss",
]
