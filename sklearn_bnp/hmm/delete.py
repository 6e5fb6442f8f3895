"""Deletes of states of hidden Markov models: sequences do without one."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.edits import SplitEdit
from ..engine.failures import Failures
from ..engine.probe import Each, Observer, Probe
from ..engine.proposal import Context
from ..engine.statistics import added_up
from ..engine.trials import Expectation, Outcome, Policy, Trial
from .second_try import SecondTries, price_of_state

# Share of a state's rows that a delete has to have observed before it may be given up: other states change in
# all rows from one global step to the next, and that counts several times. It is given up if it is expected
# to lose this many times what the other states may regain.
_LEAST_SEEN, _ALLOWANCE = 0.2, 3.0


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
    foretells = True

    def __init__(self, target, step):
        self.target, self.created = target, tuple(step.uids.tolist())  # memories of them stay
        self.removed = (target, *self.created)
        self.probe = WithoutProbe(step)

    def expected(self, totals, observed, findings):
        """`Expectation` if the others change in proportion to the mass of the state that goes."""
        k = totals.positions([self.target])[0]
        mass, seen = totals.n[k], observed.n[k]
        if seen < _LEAST_SEEN * mass:
            return None
        found, scale = added_up(findings.values()), mass / seen
        now, others = (bag.take(bag.positions(self.created)) for bag in (observed, totals))
        change = found.add(now, -1.0).scaled(scale)
        # rows of the state in other batches may have other numbers of missing values
        missed = totals.s[k] - change.s.sum(axis=0)
        shares = change.n / change.n.sum()
        out = others.add(change._replace(s=change.s + shares[:, np.newaxis] * missed))
        if np.any(out.n <= 0):
            return None
        out = out._replace(extra=out.extra._replace(entropy=scale * found.extra.entropy))
        return Expectation(out, _ALLOWANCE * price_of_state(totals.s.shape[1], mass))

    def outcome(self, totals, findings, rest=None):
        """`Outcome`; None if not all batches were observed."""
        if rest is not None and rest.n.sum() > 0:
            return None
        edit = SplitEdit(self.removed, self.created, findings)
        return Outcome(added_up(findings.values()), edit)


class StateDelete(SecondTries):
    """Remove a state; its rows go to the other states.

    A delete is judged after one local step of all sequences. The other states have then not adapted to the
    rows that they take over. When nothing else is left to try, the most promising failed deletes are
    therefore made again, one at a time. A lap goes over the sequences without the state, and up to thirty
    passes more follow as long as the objective of the whole data rises fast. All is taken back unless the
    objective is higher than before.

    Parameters
    ----------
    max_targets : int, default=5
        The greatest number of states that are tried in a lap, the smallest first. Each costs a local step of
        all sequences.
    max_second_tries : int, default=3
        How many failed deletes are made again, each time that nothing else is left to try; 0 for none.
        Those that lost least for each row of the state come first.

    References
    ----------
    Hughes (2016), Sec. 6.5.3, with sequences free to change everywhere.

    Examples
    --------
    >>> from sklearn_bnp import HDPHMMVB, StateDelete
    >>> model = HDPHMMVB(proposals=("birth", "merge", StateDelete(max_targets=3)))
    """

    kind = "delete"
    _parameter_constraints = {
        "max_targets": [Interval(Integral, 1, None, closed="left")],
        **SecondTries._parameter_constraints,
    }

    def __init__(self, max_targets: int | None = 5, max_second_tries: int = 3) -> None:
        super().__init__(max_second_tries)
        self.max_targets = max_targets

    def reset(self) -> None:
        """Forget all failures."""
        super().reset()
        self._failures = Failures(change=0.2)
        self._losses = {}  # nats that deletes lost, by uids of their targets

    def plan(self, context: Context) -> list[Any]:
        """A trial for each of the smallest states that were not tried yet, or a second try."""
        totals = context.totals
        if len(totals.uids) < 2 or context.partial:
            self._n_left = 0
            return []  # of sequences that are gone, nobody knows where they would go
        if context.settling:
            return []
        smallest = np.argsort(totals.n, kind="stable").tolist()
        open_ = [
            k for k in smallest if not self._failures.blocked(int(totals.uids[k]), totals.n[k])
        ]
        if not open_:
            known = set(totals.uids.tolist())
            losses = {uids: loss for uids, loss in self._losses.items() if known.issuperset(uids)}
            return self._second_try(context, losses) if context.idle and self._n_left else []
        return [
            StateDeleteTrial(uid, context.model.without(totals, uid))
            for uid in totals.uids[open_[: self.max_targets]].tolist()
        ]

    def last_resort(self) -> None:
        """Nothing is left to try: states have moved on since deletes failed. Second tries follow."""
        super().last_resort()
        self._failures, self._losses = Failures(change=0.2), {}

    def judged(self, trial: Any, accepted: bool, mass: Any, gain: float) -> None:
        """Remember failures, and what was lost."""
        super().judged(trial, accepted, mass, gain)
        if trial.policy is Policy.WITH_LAP:
            return
        self._failures.judged(trial.target, accepted, mass)
        if np.isfinite(gain) and not accepted:
            self._losses[trial.target,] = -float(gain)
