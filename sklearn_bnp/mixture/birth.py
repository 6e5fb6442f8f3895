"""Births: one component replaced by several, or several added for the data to adopt."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from ..engine.failures import Failures
from ..engine.proposal import Context, Proposal
from ..engine.samples import to_search
from ..engine.statistics import StatBag
from ..engine.trials import AdoptTrial, SplitTrial
from ..splits.creation import create
from ..splits.more_rows import most_rows_of_first
from ..splits.ways import tries_all_ways

# With this many components or fewer, the prior depends on each of them.
ADAPT_BELOW = 12
# Numbers (rows x P) that a target's sample may hold whatever P.
_SAMPLE_NUMBERS = 1_000_000
# Rows of a sample for each statistic, and when nothing was found in so few: a component of many statistics
# pays only with many rows. More of them are worth another attempt if there are so many times as many.
_ROWS_A_STATISTIC, _MORE_ROWS_A_STATISTIC, _WORTH = 4, 40, 2
# Larger samples have so many times the rows, but no more than so many a statistic: where ones are rare,
# most rows say little.
_TIMES_MORE, _ENOUGH_A_STATISTIC = 5, 1000
# Ways of seeding that are tried on the larger sample of a component that is alone.
_WAYS_OF_LARGER = 5


class Birth(Proposal):
    """Split components into several, created from a sample of their rows.

    Parameters
    ----------
    strategy : {"split", "adopt"}, default="split"
        "split" replaces a component, the target, by several. Their statistics on the whole data are found
        before it is decided whether they stay (Hughes 2016, Sec. 4.2). "adopt" adds new components to the
        model for one lap, in which any row may go over to them. They stay if the objective has risen at its
        end (Hughes and Sudderth 2013, supplement Sec. 2). There is one target a lap.
    n_seeds : int, default=10
        How many components, two or more, a target is first broken into. Those that do not pay are then
        joined.
    max_rows : int or None, default=None
        The greatest number of rows of a target's sample. None is a number between 2000 and 10000: fewer rows
        where a component has many statistics, but at least four for each of these. A component that is alone
        may have up to 48000: these are looked at if fewer rows do not show its clusters. When nothing else is
        left to try, a target of many more rows, in whose sample nothing was found, is tried again on up to
        five times as many, or on forty rows for each statistic if that is more.
    max_targets : int or None, default=None
        The greatest number of targets in a lap; no limit if None.
    patience : int, default=2
        Failures after which a component is not tried again until its mass has changed by 10 %. Where a
        sample is small, one failure is enough, since an attempt then tries everything that is promising.
    min_rows : float, default=4
        Components with fewer rows are not split. If rows have weights, it is enough that their number or
        the sum of their weights reaches this.

    References
    ----------
    Hughes (2016), Sec. 4.2; Hughes and Sudderth (2013), supplement Sec. 2.

    Examples
    --------
    >>> from sklearn_bnp import Birth, DPMixtureVB
    >>> model = DPMixtureVB(proposals=(Birth(n_seeds=5), "merge", "delete"))
    """

    kind = "birth"
    suits = ("mixture",)
    # Targets in which nothing was found, and of which there are many more rows; whether samples are larger.
    # Saved models of before know of neither.
    _in_few: frozenset = frozenset()
    _takes_more = False
    _parameter_constraints = {
        "strategy": [StrOptions({"split", "adopt"})],
        "n_seeds": [Interval(Integral, 2, None, closed="left")],
        "max_rows": [Interval(Integral, 2, None, closed="left"), None],
        "max_targets": [Interval(Integral, 1, None, closed="left"), None],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "min_rows": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        strategy: str = "split",
        *,
        n_seeds: int = 10,
        max_rows: int | None = None,
        max_targets: int | None = None,
        patience: int = 2,
        min_rows: float = 4,
    ) -> None:
        self.strategy = strategy
        self.n_seeds = n_seeds
        self.max_rows = max_rows
        self.max_targets = max_targets
        self.patience = patience
        self.min_rows = min_rows

    def reset(self) -> None:
        """Forget all failures."""
        self._validate_params()
        self._failures = Failures(change=0.1, patience=self.patience)
        self._waited = {}  # laps since a component was last a target, for "adopt"
        self._in_few, self._takes_more = frozenset(), False

    def wants(self, totals: StatBag) -> list[int]:
        """Components that may be split next, fewest failures first, then largest."""
        keyed = sorted(
            (self._failures.count(uid, n), -n, uid)
            for uid, n in totals.sizes.items()
            if (self.weighted or n >= self.min_rows) and not self._failures.blocked(uid, n)
        )
        return [uid for _, _, uid in keyed][: self.max_targets]

    def sample_rows(self, n_statistics: int) -> int:
        """Rows to collect of each target."""
        return self._rows(n_statistics, self._takes_more)

    def rows_of_each(self, totals: StatBag) -> int:
        """Rows to collect of each target: of one that is alone there may be more."""
        n_statistics = totals.s.shape[1]
        more = len(totals.uids) == 1 and self.max_rows is None
        return max(self.sample_rows(n_statistics), most_rows_of_first(n_statistics) if more else 0)

    def _rows(self, n_statistics, more):
        """Rows to collect of each target, of which there may be ``more`` than usual."""
        if self.max_rows is not None:
            return self.max_rows
        few = max(_ROWS_A_STATISTIC * n_statistics, _SAMPLE_NUMBERS // n_statistics)
        rows = int(np.clip(few, 2000, 10_000))
        if not more:
            return rows
        larger = min(_TIMES_MORE * rows, _ENOUGH_A_STATISTIC * n_statistics)
        return max(rows, larger, _MORE_ROWS_A_STATISTIC * n_statistics)

    def last_resort(self) -> None:
        """Nothing is left to try: larger samples may show what is too small for the ones so far."""
        self._takes_more = self._takes_more or bool(self._in_few)
        for uid in self._in_few:
            self._failures.forgive(uid)
        self._in_few = frozenset()

    def plan(self, context: Context) -> list[Any]:
        """Trials for targets whose estimate, on their samples, is a gain; others count as failures.

        None while the model settles: what a merge is about to remove need not be split.
        """
        if context.settling:
            return []
        if self.strategy == "adopt":
            return self._adoption(context)
        trials = []
        room = context.max_components - len(context.totals.uids)
        for uid in self.wants(context.totals):
            if room < 1:
                break
            creation = self._create(context, uid, room)
            if creation is None:
                continue
            room -= len(creation.coef) - 1
            created = context.new_uids(len(creation.coef))
            trials.append(SplitTrial(self.kind, [uid], created, creation.coef, creation.gain))
        return trials

    def _adoption(self, context):
        """One target, drawn with probability ``N_k * (laps since it was last one) ** 2`` (22)."""
        totals = context.totals
        uids = [uid for uid in self.wants(totals) if uid in context.samples]
        room = context.max_components - len(totals.uids)
        if not uids or room < 2:
            return []
        self._waited = {uid: self._waited.get(uid, 0) + 1 for uid in uids}
        odds = totals.n[totals.positions(uids)] * np.square([self._waited[uid] for uid in uids])
        uid = uids[int(context.rng.choice(len(uids), p=odds / odds.sum()))]
        self._waited[uid] = 0
        creation = self._create(context, uid, room - 1)
        if creation is None:
            return []
        created = context.new_uids(len(creation.s))
        return [AdoptTrial(self.kind, uid, created, creation.s, estimate=creation.gain)]

    def _create(self, context, uid, room):
        """`Creation` for a target, or None after noting a failure; ``room`` components may be added."""
        totals, sample = context.totals, context.samples.get(uid)
        if sample is None:
            return None
        k = int(totals.positions([uid])[0])
        n = float(totals.n[k])
        P, n_collected = totals.s.shape[1], sample.z.shape[0]
        sample = to_search(sample, context.model.likelihood, context.model.prior).standing_for(n)
        if max(sample.total, sample.mass.sum()) < self.min_rows:
            return None
        attempt, alone = self._failures.count(uid, n), len(totals.uids) == 1
        n_rows = n_first = sample.z.shape[0]
        goes_on = False
        if alone:
            n_first = min(n_rows, self._rows(P, self._takes_more))
            # if there are fewer rows than were wanted of all there are, memory is short; of rows with
            # weights nobody knows how many there are
            n_wanted = min(np.inf if self.weighted else n, self.rows_of_each(totals))
            goes_on = n_collected >= n_wanted - 1
        if n_first < n_rows and not goes_on:
            sample = sample.rows(context.rng.choice(n_rows, n_first, replace=False))
        for more in range(_WAYS_OF_LARGER if self._takes_more and alone else 1):
            creation = create(
                context.model, sample, totals.s[k], np.delete(totals.s, k, axis=0),
                int(min(self.n_seeds, room + 1)), attempt + more, context.rng,
                adapt=len(totals.uids) <= ADAPT_BELOW, n_most=int(min(room + 1, 10**6)),
                n_rows=n_first if goes_on else None, n_nonzero=context.n_nonzero,
            )  # fmt: skip
            if creation is not None and creation.gain > 0:
                return creation
        # all ways have failed; but a component that is alone was first tried from many seeds
        final = not alone and tries_all_ways(sample, P)
        self._failures.note(uid, n, self.patience if final else 1)
        if min(n, self._rows(P, more=True)) >= _WORTH * n_first:
            self._in_few |= {uid}
        return None

    def new_data(self) -> None:
        """New rows may hold what old ones did not: try again."""
        self.reset()

    def judged(self, trial: Any, accepted: bool, mass: Any, gain: float) -> None:
        """Remember failures."""
        self._failures.judged(trial.targets[0], accepted, mass)
