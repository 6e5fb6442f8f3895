"""Deletes of states of hidden Markov models: sequences do without one."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval

from .base import AdoptTrial, Failures, Proposal


class StateDelete(Proposal):
    """Remove a state: for one lap, no sequence may visit it.

    At its end the state is gone if the objective of the whole data is higher than before the lap;
    otherwise all is as it was.

    Parameters
    ----------
    max_targets : int, default=5
        The smallest states, one of which is tried at a time.

    References
    ----------
    Hughes (2016), Sec. 6.5.3.

    Examples
    --------
    >>> from sklearn_bnp import HDPHMMVB, StateDelete
    >>> model = HDPHMMVB(proposals=("birth", "merge", StateDelete(max_targets=3)))
    """

    kind = "delete"
    _parameter_constraints = {"max_targets": [Interval(Integral, 1, None, closed="left")]}

    def __init__(self, max_targets=5):
        self.max_targets = max_targets

    def reset(self):
        """Forget all failures."""
        self._validate_params()
        self._failures = Failures(change=0.2)

    def plan(self, context):
        """A lap without the smallest state that was not tried yet."""
        totals = context.totals
        if len(totals.uids) < 2 or context.settling:
            return []
        smallest = np.argsort(totals.n, kind="stable")[: self.max_targets]
        for k in smallest.tolist():
            uid = int(totals.uids[k])
            if not self._failures.blocked(uid, totals.n[k]):
                return [
                    AdoptTrial(self.kind, uid, (), np.empty((0, totals.s.shape[1])), retires=True)
                ]
        return []

    def new_data(self):
        """What failed before may succeed on more: try again."""
        self.reset()

    def last_resort(self):
        """Nothing is left to try: states have moved on since deletes failed."""
        self.reset()

    def judged(self, trial, accepted, mass):
        """Remember failures."""
        if not accepted:
            self._failures.note(trial.target, mass)
