"""Deletes of states of hidden Markov models: sequences do without one."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.edits import SplitEdit
from ..engine.failures import Failures
from ..engine.proposal import Proposal, Trial
from ..engine.statistics import added_up
from .observer import ChainObserver


class DeleteTrial(ChainObserver, Trial):
    """All states give way to all but one, by a local step of whole sequences without that one.

    Parameters
    ----------
    target : int
        Uid of the state that goes.
    others : ndarray of int
        Uids of the others.
    local_step : callable
        `PreparedRows` of a batch -> `StatBag` of the others on its sequences.
    """

    kind = "delete"

    def __init__(self, target, others, local_step):
        self.target, self.removed = target, (target, *others.tolist())
        self.created = tuple(others.tolist())  # memories of them stay
        self._local_step = local_step
        self.rows, self._bag = {}, None

    def revisit(self, rows):
        """A local step of its own."""
        self._bag = self._local_step(rows)

    def close(self, batch_id, bag):
        """End of a batch with statistics ``bag``; of the entropy what changes it, either way."""
        total, self._bag = self._bag, None
        change = total.extra.entropy - bag.extra.entropy
        self.rows[batch_id] = total._replace(extra=total.extra._replace(entropy=change))

    @property
    def seen(self):
        """Batches observed."""
        return self.rows.keys()

    def successors(self, totals, rest=None):
        """Statistics of the others afterwards; None if not all batches were observed."""
        if rest is not None and rest.n.sum() > 0:
            return None
        return added_up(self.rows.values())

    def edit(self):
        return SplitEdit(self.removed, self.created, self.rows)


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
            DeleteTrial(
                int(totals.uids[k]), np.delete(totals.uids, k),
                model.without(totals, int(totals.uids[k]), context.n_threads),
            )
            for k in open_[: self.max_targets]
        ]  # fmt: skip

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
