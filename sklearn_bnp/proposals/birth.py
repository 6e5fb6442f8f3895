"""Births: one component replaced by several."""

from __future__ import annotations

import numpy as np

from .base import Failures, Proposal, SplitTrial
from .creation import create, tries_all_ways

# With this many components or fewer, the prior depends on each of them.
_ADAPT_BELOW = 12


class Birth(Proposal):
    """Split components into several, created from a sample of their rows.

    Parameters
    ----------
    n_seeds : int, default=10
        How many components a target is first broken into; agglomeration then finds how many stay.
    max_rows : int, default=3000
        Rows of a target's sample, at the most.
    max_targets : int or None, default=None
        Targets a lap; all eligible components if None.
    patience : int, default=2
        Failures after which a component is left alone until its mass has changed by 10 %.
    min_rows : float, default=4
        Components with less mass are not split.

    References
    ----------
    Hughes (2016), Sec. 4.2.
    """

    kind = "birth"

    def __init__(self, n_seeds=10, max_rows=3000, max_targets=None, patience=2, min_rows=4):
        self.n_seeds = n_seeds
        self.max_rows = max_rows
        self.max_targets = max_targets
        self.patience = patience
        self.min_rows = min_rows

    def reset(self):
        """Forget all failures."""
        self._failures = Failures(change=0.1, patience=self.patience)

    def wants(self, totals):
        """Components that may be split next, fewest failures first, then largest."""
        keyed = sorted(
            (self._failures.count(uid, n), -n, uid)
            for uid, n in zip(totals.uids.tolist(), totals.n.tolist(), strict=True)
            if n >= self.min_rows and not self._failures.blocked(uid, n)
        )
        return [uid for _, _, uid in keyed][: self.max_targets]

    def plan(self, context):
        """Split trials whose estimate, on the sample, is a gain; the others count as failures.

        None while the model settles: what a merge is about to remove need not be split.
        """
        totals, trials = context.totals, []
        if context.settling:
            return trials
        n = dict(zip(totals.uids.tolist(), totals.n.tolist(), strict=True))
        room = context.max_components - len(totals.uids)
        for uid in self.wants(totals):
            sample = context.samples.get(uid)
            if sample is None or sample.total < self.min_rows or room < 1:
                continue
            k = int(totals.positions([uid])[0])
            creation = create(
                context.model, sample, totals.s[k], np.delete(totals.s, k, axis=0),
                int(min(self.n_seeds, room + 1)), self._failures.count(uid, n[uid]), context.rng,
                adapt=len(totals.uids) <= _ADAPT_BELOW,
            )  # fmt: skip
            if creation is None or creation.gain <= 0:
                every_way = tries_all_ways(sample, totals.s.shape[1])
                self._failures.note(uid, n[uid], self.patience if every_way else 1)
                continue
            room -= len(creation.coef) - 1
            trials.append(
                SplitTrial(
                    self.kind,
                    [uid],
                    context.new_uids(len(creation.coef)),
                    creation.coef,
                    context.model.likelihood,
                )  # fmt: skip
            )
        return trials

    def new_data(self):
        """New rows may hold what old ones did not: try again."""
        self.reset()

    def judged(self, trial, accepted, mass):
        """Remember failures."""
        if not accepted:
            self._failures.note(trial.removed[0], mass)
