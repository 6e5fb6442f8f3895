"""Splits of many components at once, of which those stay that pay.

Design note
-----------
(a) All components are searched together if enough rows of all of them can be looked at. Otherwise
    neighbours are: pools of a few components, which together hold all of them. What is outside of a pool
    stays as it is during the search, and the verdict on the whole data knows of it.
(b) Both kinds of searches are the same, from `Comparison` to trial. They differ in where the rows come from:
    a uniform sample, or the samples of the pool's components.
(c) Parameters from a sample of n of N rows fit all rows worse than those from all: by about P N / (2 n)
    nats a component, which may be more than a better number of components gains. If N / n is large, a
    trial is therefore a lap with the new components in place of the old ones, with more passes over the data
    for as long as these promise something.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.utils._param_validation import Interval

from ..engine.affinity import neighbourhoods, reassignment_loss
from ..engine.last_resort import SearchResort
from ..engine.proposal import Context
from ..engine.statistics import StatBag
from ..engine.trials import AdoptTrial, SplitTrial
from .birth import ADAPT_BELOW
from .comparison import Comparison, affordable_rows, shows_everything
from .pooled_rows import Pool
from .searches import Search

# Work is counted in numbers, not in seconds, so that a fit does not depend on the machine: a step takes
# rows x components x (P + this), and a search this beside its steps.
_NUMBERS_BESIDE_P, _NUMBERS_OF_A_SEARCH = 100, 2_000_000
# Numbers that a step of all parts may take.
_MOST_NUMBERS = 200_000_000
# Few components are split into so many parts in all, but each into no more than so many, and only as far as
# there are no more responsibilities (rows x parts) than this.
_LEAST_PARTS, _MOST_PARTS_OF_ONE, _SHARES_OF_PARTS = 24, 8, 100_000
# Searches of one round. The least number of them is made even if they take too many numbers.
_LEAST_SEARCHES, _MOST_SEARCHES = 3, 60
# No round ends because its searches come back to where they began before they have taken so many numbers.
_FREE_NUMBERS = 10_000_000
# All components are searched together if a sample has this part of all rows, or so many rows for each of
# their statistics. In fewer rows, parts fit what is particular to the sample.
_LEAST_PART, _ROWS_PER_NUMBER = 0.5, 40
# If a row of the sample stands for more rows than this, a trial gets passes over the data, and has to promise
# a gain of so many nats on the sample.
_MOST_SCALE, _LEAST_GAIN = 1.5, 2.0
# Components of a pool of neighbours, and searches without a gain after which it is given up. All searches of
# pools may take so many times the numbers of other searches.
_POOL, _PATIENCE_WITH_POOLS, _POOL_NUMBERS = 6, 2, 4


class Oversplit(SearchResort):
    """Split many components at once, let the parts compete for the rows, and keep what pays.

    A birth looks for new components among the rows of one component. It misses a cluster whose rows are
    spread over several components, since what each of these holds of it is too little to pay for a new
    component. When nothing else is left to try, all components are therefore split into several parts, in a
    sample of all rows. Collapsed steps follow, in which any row may go to any part. Then parts are joined to
    groups, and single parts change their group, for as long as that raises the objective. Groups are then
    deleted one after the other, even if that loses a little, and the best ones on the way are kept.
    This is one search. Others follow with other seeds, from the best components so far. In turns, they split
    all components, split a random half of them, and draw seeds among all rows, whatever the components. Now
    and then, the rows of a component that have about the same value in one column are a part of it. If the
    result of a search is worse as a whole, its new components are kept only for the blocks of rows that they
    explain better. A round ends when many searches in a row have found nothing better. The result replaces
    all components if that raises the objective of the whole data.

    With many components or many columns, a search of all components would take too long. Then a
    round goes through pools of six neighbours, and each pool is searched in this way on its own rows. Where a
    sample is a small part of the data, the trial gets several passes over all of it.

    Parameters
    ----------
    n_seeds : int, default=3
        Parts that each component is split into, two or more. There are fewer if components and their
        statistics are many. There are more if components and rows are few: twenty-four parts in all, but no
        more than eight of each.
    patience : int, default=32
        Searches without a gain, one after the other, after which a round ends. It ends earlier if searches
        are costly, or if most of them come back to where they began, and after sixty searches in any case. A
        pool is given up after two.
    max_rows : int, default=10_000
        Rows of a sample, at the most. All rows are taken if there are no more. If components and their
        statistics are many, a sample of all components has fewer rows. If that is less than half of all
        rows, and less than forty for each of their statistics, pools are searched instead.
    max_rounds : int, default=12
        How many rounds of searches a fit makes, at the most.

    References
    ----------
    This proposal is this package's own.

    Examples
    --------
    >>> from sklearn_bnp import DPMixtureVB, Oversplit
    >>> model = DPMixtureVB(proposals=("birth", "merge", "delete", Oversplit(n_seeds=6)))
    """

    kind = "oversplit"
    suits = ("mixture",)
    _parameter_constraints = {
        **SearchResort._parameter_constraints,
        "n_seeds": [Interval(Integral, 2, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
    }
    _moved = 0.02
    _numbers_of_fit = 1_500_000_000  # one step counted for each search: about ten seconds

    def __init__(
        self,
        n_seeds: int = 3,
        patience: int = 32,
        max_rows: int | None = 10_000,
        max_rounds: int = 12,
    ) -> None:
        super().__init__(max_rows, max_rounds)
        self.n_seeds = n_seeds
        self.patience = patience

    def wants(self, totals: StatBag) -> list[int]:
        """All components if a round is due: whether pools have to do is known when the lap ends."""
        return totals.uids.tolist() if self._due else []

    def sample_rows(self, n_statistics: int) -> int:
        """Rows to collect of each component, for pools."""
        return max(1, self.max_rows // _POOL)

    def uniform_rows(self, totals: Any) -> int:
        """All rows, or as many as are allowed, if a round is due."""
        return affordable_rows(totals, self.max_rows) if self._due else 0

    def plan(self, context: Context) -> list[Any]:
        """A trial in which all components give way to those of the best search, or such trials of pools."""
        totals, model = context.totals, context.model
        if not self._begins(context) or len(totals.uids) < 2:
            return []
        numbers = _numbers(context.uniform.resp.size, totals)
        n_more = min(-(-_LEAST_PARTS // len(totals.uids)), _MOST_PARTS_OF_ONE)
        n_more = min(n_more, _SHARES_OF_PARTS // max(1, context.uniform.resp.size))
        n_seeds = min(max(self.n_seeds, n_more), _MOST_NUMBERS // max(1, numbers))
        if n_seeds < 2 or not self._shows_all(context.uniform, totals):
            return self._trials_of_pools(context)
        if self._attempts.failed(self.kind, totals.sizes):
            return []
        self._rounds += 1
        self._attempts.begin(self.kind, totals.uids, totals.n)
        adapt = len(totals.uids) <= ADAPT_BELOW
        everything = Comparison.of_all(model, totals, context.uniform, adapt, context.n_nonzero)
        n_most = min(context.max_components, len(everything.resp))
        work = _NUMBERS_OF_A_SEARCH + n_seeds * numbers
        search = self._best(everything, n_seeds, n_most, work, context.rng)
        scale = totals.n.sum() / everything.small.sample.total
        trial = self._trial(context, totals.uids.tolist(), search, scale)
        return [] if trial is None else [trial]

    @staticmethod
    def _shows_all(uniform, totals):
        """Whether rows drawn from all show all components well enough for a search."""
        enough = len(uniform.resp) >= _ROWS_PER_NUMBER * totals.s.size
        return enough or shows_everything(uniform, totals, _LEAST_PART)

    def _trials_of_pools(self, context):
        """A trial for each pool of neighbours in which a search has found something better.

        Together they add no more components than there may be.
        """
        totals, trials = context.totals, []
        room = context.max_components - len(totals.uids)
        self._rounds += 1
        loss = reassignment_loss(context.model, totals)
        for positions in neighbourhoods(loss, _POOL, context.rng):
            uids = totals.uids[positions].tolist()
            tried = self._attempts.failed(tuple(uids), totals.sizes)
            if len(uids) < 2 or tried or not context.samples.keys() >= set(uids):
                continue
            self._attempts.begin(tuple(uids), totals.uids[positions], totals.n[positions])
            pool = Pool.of(context, positions)
            search = self._best_of_pool(context, pool, room)
            trial = None if search is None else self._trial(context, uids, search, pool.scale)
            if trial is not None:
                room -= max(0, len(trial.created) - len(uids))
                trials.append(trial)
        return trials

    def _best_of_pool(self, context, pool, room):
        """As `_best`, for a pool that may have ``room`` more components; None if it is too costly."""
        numbers = _numbers(len(pool.sample.mass) * len(pool.own), context.totals)
        n_seeds = min(self.n_seeds, _MOST_NUMBERS // numbers)
        work = (_NUMBERS_OF_A_SEARCH + n_seeds * numbers) // _POOL_NUMBERS
        n_most = min(room + len(pool.own), len(pool.sample.mass))
        if n_seeds < 2 or n_most < 2:
            return None
        compared = Comparison(
            context.model, pool.sample, pool.own, pool.others, n_nonzero=context.n_nonzero
        )
        search = Search(compared, n_seeds, n_most, context.rng)
        patience = min(self.patience, _PATIENCE_WITH_POOLS)
        while search.n_failures < patience and self._numbers_left >= work:
            self._numbers_left -= int(work)
            search.go_on()
        return search

    def _best(self, everything, n_seeds, n_most, numbers, rng):
        """The last of the searches for better components, each of which takes so many ``numbers``."""
        search = Search(everything, n_seeds, n_most, rng)
        for i in range(_MOST_SEARCHES):
            if self._numbers_left < numbers and i >= _LEAST_SEARCHES:
                break
            self._numbers_left = max(self._numbers_left - int(numbers), 0)
            search.go_on()
            returned = search.comes_back and (i + 1) * numbers >= _FREE_NUMBERS
            if search.n_failures == self.patience or returned:
                break
        return search

    def _trial(self, context, uids, search, scale):
        """The trial in which what a search has found replaces the components of these names; None if nothing.

        Each row of the sample stands for ``scale`` rows.
        """
        if search.coef is None:
            return None
        if scale <= _MOST_SCALE:
            created = context.new_uids(len(search.coef))
            gain = scale * search.gain
            return SplitTrial(self.kind, uids, created, search.coef, gain, n_targets=len(uids))
        if search.gain < _LEAST_GAIN:
            return None
        n = context.totals.n[context.totals.positions(uids)].sum()
        return AdoptTrial(
            self.kind, uids[0], context.new_uids(len(search.s)), search.s * (n / search.s[:, -1].sum()),
            retires=True, others=uids[1:], estimate=scale * search.gain, adapts=True,
        )  # fmt: skip


def _numbers(n_shares, totals):
    """Numbers that a step of all components reads, where there are so many shares of rows."""
    return n_shares * (totals.s.shape[1] + _NUMBERS_BESIDE_P)
