"""The state of a fit between two calls, as a value that nothing changes.

Design note
-----------
(a) A `Learner` makes laps. It starts from a `LearnerState` and returns another. In between it changes only
    copies of its own: of the dicts that hold the memo and the findings, and of the proposals, which
    remember failures. Everything else is replaced, and never changed.
(b) A call that fails, or is interrupted, therefore leaves the state from which it started as it was, to the
    last bit. Nothing has to be put back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .evidence import KnownEvidence
from .memo import Memo
from .statistics import StatBag
from .trial_records import counted, counted_accepted


class Lap(NamedTuple):
    """A summary of one lap: an entry of ``history_``.

    Attributes
    ----------
    lap : int
        Its number, from 1.
    n_components : int
        Number of components at its end.
    lower_bound : float
        The objective at its end, in nats.
    seconds, proposal_seconds : float
        Wall time of the lap, and the part of it in which trials were judged and planned.
    tried, accepted : dict of str to int
        Trials that were judged, and those that were made, by kind.
    trials : tuple of TrialRecord
        Each of these trials. A history has those of its last laps, 2000 trials at the most.
    left_alone : dict of str to int
        Components, or groups of them, for which nothing was planned at the end of the lap since an attempt
        had failed and they have not changed, by kind of proposal.
    """

    lap: int
    n_components: int
    lower_bound: float
    seconds: float
    proposal_seconds: float
    tried: dict
    accepted: dict
    trials: tuple = ()
    left_alone: dict = {}

    def with_trials(self, records):
        """The record of the lap with records of more trials, which count."""
        return self._replace(
            tried=dict(Counter(self.tried) + counted(records)),
            accepted=dict(Counter(self.accepted) + counted_accepted(records)),
            trials=(*self.trials, *records),
        )


class LearnerSettings(NamedTuple):
    """Settings of a learner that may change from call to call.

    Attributes
    ----------
    max_components : float
        Births may not lead to more components.
    n_nonzero : int or None
        L of L-sparse responsibilities; dense if None.
    n_threads : int
        Number of threads of the kernels.
    """

    max_components: float = float("inf")
    n_nonzero: int | None = None
    n_threads: int = 1


class Snapshot(NamedTuple):
    """The state before a lap with components on trial, in case the objective does not exceed ``least``."""

    totals: StatBag
    memo: Memo
    model: Any
    least: float


class PoolSize(NamedTuple):
    """Rows of a pool, the numbers that these are stored in, and their mass."""

    rows: int = 0
    values: int = 0
    mass: float = 0.0

    @classmethod
    def of(cls, batches, n_features):
        """The size of batches; a row that is not sparse has ``n_features`` numbers."""
        out = cls()
        for batch in batches:
            out = out.changed(batch, n_features)
        return out

    def changed(self, batch, n_features, sign=1):
        """The size with a batch more, or less if ``sign`` is -1."""
        n, values = batch.n_entries, batch.n_values(n_features)
        mass = self.mass + sign * batch.total_weight
        return PoolSize(self.rows + sign * n, self.values + sign * values, mass)


class StreamState(NamedTuple):
    """The part of a stream that is still at hand, and how much of it was learned from; see ``streaming.py``.

    Attributes
    ----------
    pool : tuple of Batch
        The latest batches with their rows, so that laps go over them together.
    came : float
        Mass of all batches that came.
    learned : float
        The same when there were laps over the pool last.
    news : float
        The same before the last batch that had news.
    n_unlearned : int
        Number of batches since these laps.
    size : PoolSize or None
        Size of the pool; None if it has to be found anew.
    """

    pool: tuple = ()
    came: float = 0.0
    learned: float = 0.0
    news: float = 0.0
    n_unlearned: int = 0
    size: PoolSize | None = None

    def with_pool(self, pool):
        """Replace the pool by another, which may have fewer of the batches since the last laps."""
        return self._replace(pool=pool, size=None, n_unlearned=min(self.n_unlearned, len(pool)))


@dataclass(frozen=True, eq=False)
class ScheduleState:
    """Proposals with their memories, and the trials and findings of the present lap.

    Attributes
    ----------
    proposals : tuple of Proposal
        Their private attributes are their memories.
    trials : tuple of Trial
        Trials that are under way in the present lap, or are planned for the next.
    findings : tuple of dict
        For each trial: batch id -> what its probe found in this lap.
    sampling : object or None
        Samples that are being drawn in this lap. None if no lap is under way.
    sample_values, values_per_row : int
        Limit of the numbers that all samples hold together, and the numbers in a row.
    mean_weight : float or None
        Mean weight of rows, documents or sequences. None if none has had a weight.
    """

    proposals: tuple = ()
    trials: tuple = ()
    findings: tuple = ()
    sampling: Any = None
    sample_values: int = 0
    values_per_row: int = 1
    mean_weight: float | None = None


@dataclass(frozen=True, eq=False)
class LearnerState:
    """Everything that the next lap, or the next batch of a stream, depends on.

    Attributes
    ----------
    model : Model
    seed : int
        Seed of all random draws of the fit.
    schedule : ScheduleState
    totals : StatBag or None
        Statistics of the whole data; None before the start.
    coef : object
        Parameters of the local step.
    memo : Memo
        Statistics of each batch from its last visit.
    history : tuple of Lap
    converged : bool
    next_uid : int
        The name of the next new component.
    n_batches : int
        Batches that a stream has brought so far.
    n_steps : int
        Steps of the stochastic method so far.
    mass_seen : float
        Mass that stochastic steps stand for if no population is given: of their batches, and of what was
        remembered before.
    seen : frozenset
        Batches visited in the lap under way; empty if there is none.
    n_passes : int
        Passes over the data that the lap under way has begun.
    seconds : float
        Time that its visits took.
    before : Snapshot or None
        State to go back to if components on trial do not help.
    initial : tuple of StatBag
        Initial statistics of components on trial, which count rows twice.
    stream : StreamState
        The pool of a stream, and when it was last learned from.
    retried : int
        The lap after which proposals of a fit have had their last chance; 0 if they still have it.
    finishing : bool
        Whether trials of a fit have ended, and laps go on only until updates gain little.
    evidence : KnownEvidence or None
        Evidence of each component, if it was computed. It is left out of pickles and files.
    """

    model: Any
    seed: int
    schedule: ScheduleState = ScheduleState()
    totals: StatBag | None = None
    coef: Any = None
    memo: Memo = field(default_factory=Memo)
    history: tuple = ()
    converged: bool = False
    next_uid: int = 0
    n_batches: int = 0
    n_steps: int = 0
    mass_seen: float = 0.0
    seen: frozenset = frozenset()
    n_passes: int = 0
    seconds: float = 0.0
    before: Snapshot | None = None
    initial: tuple = ()
    stream: StreamState = field(default_factory=StreamState)
    retried: int = 0
    finishing: bool = False
    evidence: KnownEvidence | None = None

    def __getstate__(self):
        return {**vars(self), "evidence": None}

    @property
    def lower_bound(self):
        """The objective as things stand, in nats."""
        return self.model.elbo(self.totals)

    @property
    def n_laps(self):
        """Laps made, of which a stream may have forgotten the first."""
        return self.history[-1].lap if self.history else 0

    @property
    def lap_under_way(self):
        """Whether a lap has begun and not ended."""
        return bool(self.seen)

    @property
    def counted(self):
        """Totals without the initial statistics of components on trial, so that each row counts once."""
        totals = self.totals
        for rows in self.initial:
            totals = totals.less(rows)
        return totals
