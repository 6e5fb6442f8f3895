"""Births of states of hidden Markov models: a state gives way to several."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval

from ..core.transitions import Transitions
from .base import AdoptTrial, Proposal
from .failures import Failures
from .nested_chain import NestedChain
from .state_creation import create_states


class StateBirth(Proposal):
    """Replace states by several, created by a hidden Markov model nested in each.

    The runs of rows that a state explains are sequences of a small model of their own. All states
    for which it finds several give way to these for one lap of ordinary local steps. At its end they
    stay if the objective of the whole data is higher than before the lap; otherwise all is as it
    was, and the more promising half of the targets is tried without the others.

    Parameters
    ----------
    max_states : int, default=10
        Most states that a target is replaced by.
    min_rows : float, default=10
        States with fewer rows are not split.
    n_rows : int, default=4000
        Rows of a target that are looked at.

    References
    ----------
    Hughes (2016), Sec. 6.5.2.

    Examples
    --------
    >>> from sklearn_bnp import HDPHMMVB, StateBirth
    >>> model = HDPHMMVB(proposals=(StateBirth(max_states=5), "merge", "delete"))
    """

    kind = "birth"
    _parameter_constraints = {
        "max_states": [Interval(Integral, 2, None, closed="left")],
        "min_rows": [Interval(Real, 0, None, closed="left")],
        "n_rows": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, max_states=10, min_rows=10, n_rows=4000):
        self.max_states = max_states
        self.min_rows = min_rows
        self.n_rows = n_rows

    def reset(self):
        """Forget all failures."""
        self._validate_params()
        self._failures = Failures(change=0.1, patience=2)
        self._whole = Failures(change=0.1)  # in which no several states were found
        self._resting = False
        self._gains = {}  # estimated gains of the targets on trial
        self._half = set()  # targets to be tried without others

    def wants(self, totals):
        """The states that may be split next."""
        if self._resting:
            return []
        return [
            uid
            for uid, n in zip(totals.uids.tolist(), totals.n.tolist(), strict=True)
            if n >= self.min_rows
            and not (self._failures.blocked(uid, n) or self._whole.blocked(uid, n))
        ]

    def sample_rows(self, n_statistics):
        """How many rows of each state to collect, at the most."""
        return self.n_rows

    def plan(self, context):
        """An adoption for each target."""
        totals, half = context.totals, self._half
        targets = [uid for uid in self.wants(totals) if uid in context.samples]
        self._resting, self._gains = False, {}
        if context.settling:
            return []
        self._half = set()
        if half.intersection(targets):
            targets = [uid for uid in targets if uid in half]
        trials, room = [], context.max_components - len(totals.uids)
        allocation = context.model.allocation
        for uid in targets:
            if room < 1:
                break
            k, sample = int(totals.positions([uid])[0]), context.samples[uid]
            n, others = float(totals.n[k]), np.delete(totals.s, k, axis=0)
            settings = NestedChain(allocation.concentration, allocation.stickiness, others)
            creation = create_states(
                context.model.likelihood, context.model.prior, sample, settings,
                int(min(self.max_states, room + 1)), context.rng, context.n_threads,
            )  # fmt: skip
            if creation is None:
                self._whole.note(uid, n)
                continue
            created = context.new_uids(len(creation.s))
            room -= len(created) - 1
            self._gains[uid] = creation.gain
            scale = n / sample.total
            counts = np.vstack([np.zeros(len(created)), scale * creation.counts])
            links = Transitions(created, counts)
            seeds = scale * creation.s
            trials.append(AdoptTrial(self.kind, uid, created, seeds, retires=True, docs=links))
        self._resting = len(trials) > 0
        return trials

    @property
    def pending(self):
        """Whether half of the targets of a lap that was taken back are still to be tried."""
        return bool(self._half)

    def new_data(self):
        """What failed before may succeed on more: try again."""
        self.reset()

    def last_resort(self):
        """Nothing is left to try: other states have moved on since births were taken back."""
        self._failures = Failures(change=0.1, patience=2)

    def judged(self, trial, accepted, mass):
        """Remember failures; of births that were taken back the better half is tried alone."""
        if accepted:
            return
        self._resting = False
        self._failures.note(trial.target, mass)
        best = sorted(self._gains, key=self._gains.get, reverse=True)
        self._half = set(best[: len(best) // 2])
