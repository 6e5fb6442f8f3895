"""The engine of all models: laps over the data, proposals, trials and probes.

The names exported here are those that proposals, trials and probes of one's own need; "Add a proposal" in the
documentation shows how they work together. The other modules of this folder are private.

What is where
-------------
- A fit: `learner` makes laps, `stopping` ends them, and `progress` shows them. `state` is a fit between two
  calls, `checkpoint` one between two laps. Other ways to learn are `stochastic` and `streaming`, which uses
  `stream_news` and `forgetting`.
- Statistics: `statistics`, and `extra` for what is no sum over rows. `memo` has those of each batch, in
  `layers`, in which `edits` are made. `evidence` keeps what was computed from them.
- The local step: `task` runs it on a part of a batch. A `composite` batch has several parts, and
  `left_behind` names what stays beside their rows. `probe` observes rows on the way.
- Trials: a `proposal` plans `trials`, and `scheduler` judges them by their `trial_gains`. `trial_records`
  are for ``history_``. `failures` are remembered, and `last_resort` waits until nothing else is left.
- Samples of rows for proposals: `samples`, drawn by `random_keys`; `row_frequencies` says how often rows
  count.
- Which components belong together: `affinity`, `agglomeration`, `grouping`, `unions`,
  `matching_components`, and `merge` with `merge_losses`. `l_sparse` limits how many may share a row.
- `model` is the protocol of models, and `combining` makes one of several.
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
