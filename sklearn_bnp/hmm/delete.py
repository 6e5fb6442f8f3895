"""Deletes of states of hidden Markov models: sequences do without one."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.edits import SplitEdit
from ..engine.failures import Failures
from ..engine.probe import Each, Observer, Probe
from ..engine.proposal import Proposal
from ..engine.statistics import added_up
from ..engine.trials import Outcome, Trial


@dataclass(frozen=True, eq=False)
class WithoutProbe(Probe):
    """A local step of whole sequences without one of the states.

    Its finding is the `StatBag` of the others, whose entropy is the change of that of the sequences.

    Attributes
    ----------
    step : StepWithout
    """

    step: object

    @classmethod
    def observer(cls, probes, task):
        return Each(_WithoutObserver(probe.step, task.n_threads) for probe in probes)

    def added(self, first, second):
        return first.add(second)


class _WithoutObserver(Observer):
    """Makes a local step of its own, when the pass is over."""

    def __init__(self, step, n_threads):
        self._step, self._n_threads, self._statistics = step, n_threads, None

    def revisit(self, rows):
        self._statistics = self._step(rows, self._n_threads)

    def finding(self, statistics):
        own = self._statistics
        change = own.extra.entropy - statistics.extra.entropy
        return own._replace(extra=own.extra._replace(entropy=change))


class StateDeleteTrial(Trial):
    """All states give way to all but one, by a local step of whole sequences without that one.

    Parameters
    ----------
    target : int
        Uid of the state that goes.
    step : StepWithout
        The local step of the others.
    """

    kind = "delete"

    def __init__(self, target, step):
        self.target, self.created = target, tuple(step.uids.tolist())  # memories of them stay
        self.removed = (target, *self.created)
        self.probe = WithoutProbe(step)

    def outcome(self, totals, findings, rest=None):
        """`Outcome`; None if not all batches were observed."""
        if rest is not None and rest.n.sum() > 0:
            return None
        edit = SplitEdit(self.removed, self.created, findings)
        return Outcome(added_up(findings.values()), edit)


class StateDelete(Proposal):
    """Remove a state; sequences go through the others where they went through it.

    Parameters
    ----------
    max_targets : int, default=5
        Targets a lap, the smallest states first. Each costs a local step of all sequences.

    References
    ----------
    Hughes (2016), Sec. 6.5.3, with sequences free to change everywhere.

    Examples
    --------
    >>> from sklearn_bnp import HDPHMMVB, StateDelete
    >>> model = HDPHMMVB(proposals=("birth", "merge", StateDelete(max_targets=3)))
    """

    kind = "delete"
    suits = ("hmm",)
    _parameter_constraints = {"max_targets": [Interval(Integral, 1, None, closed="left")]}

    def __init__(self, max_targets=5):
        self.max_targets = max_targets

    def reset(self):
        """Forget all failures."""
        self._validate_params()
        self._failures = Failures(change=0.2)

    def plan(self, context):
        """A trial for each of the smallest states that were not tried yet."""
        totals, model = context.totals, context.model
        if len(totals.uids) < 2 or context.settling or context.partial:
            return []  # of sequences that are gone, nobody knows where they would go
        smallest = np.argsort(totals.n, kind="stable").tolist()
        open_ = [
            k for k in smallest if not self._failures.blocked(int(totals.uids[k]), totals.n[k])
        ]
        return [
            StateDeleteTrial(uid, model.without(totals, uid))
            for uid in totals.uids[open_[: self.max_targets]].tolist()
        ]

    def new_data(self):
        """Forget failures, since a proposal that failed may succeed on more data."""
        self.reset()

    def last_resort(self):
        """Nothing is left to try: states have moved on since deletes failed."""
        self.reset()

    def judged(self, trial, accepted, mass, gain):
        """Remember failures."""
        self._failures.judged(trial.target, accepted, mass)
