"""Births of states of hidden Markov models: a state gives way to several."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from ..engine.failures import Failures
from ..engine.proposal import Context, Proposal
from ..engine.samples import to_search
from ..engine.statistics import StatBag
from ..engine.trials import AdoptTrial
from ..splits.more_rows import most_rows_of_first
from .creation import create_states
from .nested_chain import NestedModel
from .pair_births import create_from_pair, likely_pairs
from .sampling import sample_key
from .without_time import better_without_time, rows_without_time

# Most states that take the place of one, if the parameter is None and other states are there.
_MOST_STATES = 10


class StateBirth(Proposal):
    """Replace states by several, created by a hidden Markov model nested in each.

    A small model is fitted to the runs of rows of a state. It also knows the states before and after each
    run. If it finds several states, these take the place of the one for one lap of ordinary local steps. This
    is tried for all states together. At the end of the lap the new states stay if the objective of the
    whole data is higher than before the lap. Otherwise all is as it was, and the more promising half of
    the splits is tried without the others.

    When no single state is left to try, pairs of states are. The two states that are most likely to divide
    their rows wrongly are replaced by states created from the rows of both.

    Parameters
    ----------
    max_states : int or None, default=None
        The greatest number of states that may take the place of one. None is 10, but without a limit for the
        first state, which has all rows, in families whose rows are clustered (more than 25 statistics).
    min_rows : float, default=10
        States with fewer rows are not split. If sequences have weights, it is enough that the number of rows
        or the sum of their weights reaches this.
    n_rows : int, default=4000
        How many rows of a state are looked at. The first state is looked at in up to 48,000 rows, if clusters
        of rows explain the first ones clearly better than windows of successive rows do.
    pairs_per_state : float, default=1
        How many pairs of states are looked at in a round, as a multiple of the number of states; 0 for none.
        The likeliest pairs are taken. There is another round only when the states have changed, without
        pairs that failed before.

    References
    ----------
    Hughes (2016), Sec. 6.5.2.

    Examples
    --------
    >>> from sklearn_bnp import HDPHMMVB, StateBirth
    >>> model = HDPHMMVB(proposals=(StateBirth(max_states=5), "merge", "delete"))
    """

    kind = "birth"
    suits = ("hmm",)
    _parameter_constraints = {
        "max_states": [Interval(Integral, 2, None, closed="left"), None],
        "min_rows": [Interval(Real, 0, None, closed="left")],
        "n_rows": [Interval(Integral, 1, None, closed="left")],
        "pairs_per_state": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        max_states: int | None = None,
        min_rows: float = 10,
        n_rows: int = 4000,
        pairs_per_state: int = 1,
    ) -> None:
        self.max_states = max_states
        self.min_rows = min_rows
        self.n_rows = n_rows
        self.pairs_per_state = pairs_per_state

    def reset(self) -> None:
        """Forget all failures."""
        self._validate_params()
        # by uids: of births that were taken back, and of targets in which nothing better was found
        self._failures = Failures(change=0.1, patience=2)
        self._barren = Failures(change=0.1)
        self._resting = False
        self._gains = {}  # estimated gains of the targets on trial
        self._half = set()  # targets to be tried without others
        self._pairs = []  # of uids, whose rows are being collected
        self._paired = None  # the states when pairs were last chosen
        self._due = False  # whether pairs are to be chosen as soon as no single state will do

    def _open(self, totals, targets):
        """Targets (tuples of uids) that are large enough and have not failed, of those given."""
        counts, out = totals.sizes, []
        for uids in targets:
            n = sum(counts.get(uid, -np.inf) for uid in uids)
            failed = self._failures.blocked(uids, n) or self._barren.blocked(uids, n)
            if (self.weighted or n >= self.min_rows) and not failed:
                out.append(uids)
        return out

    def wants(self, totals: StatBag) -> list[int]:
        """The states that may be split next."""
        if self._resting:
            return []
        return [uid for (uid,) in self._open(totals, [(uid,) for uid in totals.uids.tolist()])]

    def wants_unions(self, totals: StatBag) -> list[tuple[int, ...]]:
        """The pairs that may be made anew next."""
        return [] if self._resting else self._open(totals, self._pairs)

    def sample_rows(self, n_statistics: int) -> int:
        """How many rows of each state to collect, at the most."""
        return self.n_rows

    def rows_of_each(self, totals: StatBag) -> int:
        """How many rows of each state to collect, at the most: of one that is alone there may be more."""
        more = most_rows_of_first(totals.s.shape[1]) if len(totals.uids) == 1 else 0
        return max(self.n_rows, more)

    def plan(self, context: Context) -> list[Any]:
        """An adoption for each target; pairs are only chosen, so that their rows be collected."""
        totals, samples, resting = context.totals, context.samples, self._resting
        single = [(uid,) for uid in self.wants(totals) if uid in samples]
        pairs = [pair for pair in self.wants_unions(totals) if pair in samples]
        half, self._half, self._pairs = self._half, set(), []
        self._resting, self._gains = False, {}
        if context.settling:
            return []
        trials = []
        for targets in (single, pairs):
            if half.intersection(targets):
                targets = [uids for uids in targets if uids in half]
            trials = trials or self._trials(context, targets)
        self._resting = len(trials) > 0
        if not (trials or pairs or resting) and (self._due or not single):
            self._choose_pairs(context)
        return trials

    def _trials(self, context, targets):
        """Adoptions for those of the targets that have a creation, the best of those that overlap."""
        totals = context.totals
        made = []
        room = context.max_components - len(totals.uids)
        for uids in targets:
            if room < 1 and len(uids) == 1:
                break
            creation = self._create(context, uids, int(min(room + len(uids), 10**6)))
            if creation is None:
                self._barren.note(uids, float(totals.n[totals.positions(uids)].sum()))
                continue
            room -= max(0, len(creation.s) - len(uids))
            made.append((uids, creation))
        used = set()
        for uids, creation in sorted(made, key=lambda one: -one[1].gain):
            if used.isdisjoint(uids):
                used.update(uids)
                self._gains[uids] = creation.gain
        return [self._adoption(context, *one) for one in made if one[0] in self._gains]

    def _create(self, context, uids, room):
        """`StateCreation` for a target, or None; ``room`` states may take its place."""
        totals, model = context.totals, context.model
        rows = totals.positions(uids).tolist()
        sample = context.samples[sample_key(uids)].among(totals.uids)
        sample = to_search(sample, model.likelihood, model.prior).standing_for(
            float(totals.n[rows].sum())
        )
        if self.weighted and max(sample.total, sample.n_rows) < self.min_rows:
            return None
        first = len(totals.uids) == 1 and rows_without_time(model.likelihood) > 0
        n_most = min(self.max_states or (room if first else _MOST_STATES), room)
        if len(uids) > 1:
            return create_from_pair(
                model, totals, rows, sample, n_most, context.rng, context.n_threads
            )
        few = sample.within(self.n_rows, context.rng)
        nested = NestedModel.in_place_of(rows, model, totals, few, context.n_threads)
        made = create_states(nested, n_most, context.rng)
        if not first:
            return made
        return better_without_time(nested, sample, made, n_most, context.rng)

    def _adoption(self, context, uids, creation):
        """Trial of a creation's states in place of ``uids``."""
        totals = context.totals
        sample = creation.s[:, -1].sum()
        scale = totals.n[totals.positions(uids)].sum() / sample
        created = context.new_uids(len(creation.s))
        if len(uids) > 1:  # how many states there are in these rows has just been found out
            for uid, n in zip(created, scale * creation.s[:, -1], strict=True):
                self._barren.note((uid,), float(n))
        return AdoptTrial(
            self.kind, uids[0], created, scale * creation.s, retires=True,
            extra=creation.transitions(created).scaled(scale), others=uids[1:],
            estimate=creation.gain,
        )  # fmt: skip

    def _choose_pairs(self, context):
        """Choose pairs whose rows to collect, once for the states as they are."""
        self._due, states = False, frozenset(context.totals.uids.tolist())
        if states == self._paired or len(states) < 2:
            return
        self._paired = states
        uids = context.totals.uids
        pairs = [tuple(uids[list(p)].tolist()) for p in likely_pairs(context.model, context.totals)]
        n_most = int(self.pairs_per_state * len(states))
        self._pairs = self._open(context.totals, pairs[:n_most])

    @property
    def pending(self) -> bool:
        """Whether there are pairs to be tried, or half of the targets of a lap that was taken back."""
        return bool(self._half or self._pairs or self._due)

    def new_data(self) -> None:
        """Forget failures, since a proposal that failed may succeed on more data."""
        self.reset()

    def last_resort(self) -> None:
        """Nothing is left to try: other states have moved on since births were taken back."""
        self._failures = Failures(change=0.1, patience=2)
        self._due = self.pairs_per_state > 0

    def judged(self, trial: Any, accepted: bool, mass: Any, gain: float) -> None:
        """Remember failures; of births that were taken back the better half is tried alone."""
        if accepted:
            return
        self._resting = False
        self._failures.note(trial.targets, mass)
        best = sorted(self._gains, key=self._gains.__getitem__, reverse=True)
        self._half = set(best[: len(best) // 2])
        self._pairs = [uids for uids in self._half if len(uids) > 1]
