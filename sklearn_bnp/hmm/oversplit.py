"""Splits of many states at once, of which those stay that pay.

Design note
-----------
(a) A birth looks at the rows of one state, or of two. A state whose rows are spread over several others is
    not found so. Nor can several states change together. And states that differ in what follows them more
    than in their rows need many passes, and seeds that see what follows (``row_contexts.py``).
(b) So all states are searched together (``searches.py``), if a sample shows half of all rows or more.
    Otherwise pools of neighbours are, each on runs of its rows; the states before and after a run are known
    and stay as they are.
(c) The trial is a lap with the new states in place of the old ones, which is prolonged, judged and taken back
    as one with births is. Trials of several pools share a lap.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from sklearn.utils._param_validation import Interval

from ..engine.affinity import neighbourhoods, reassignment_loss
from ..engine.last_resort import SearchResort
from ..engine.proposal import Context
from ..engine.samples import to_search
from ..engine.statistics import StatBag
from ..engine.trials import AdoptTrial
from .sampling import sample_key, states_of
from .searches import PARTS_BY_CONTEXTS, StateSearch

# Work is counted in numbers: a pass takes rows x parts x (P + this + so much for each part). Unions of parts
# take so much for each pair and each part that it goes to.
_NUMBERS_BESIDE_P, _NUMBERS_PER_PART, _NUMBERS_PER_UNION = 100, 4, 40
# Numbers that a pass of all parts may take.
_MOST_NUMBERS = 1_000_000_000
# All states are searched together if a sample has this part of all rows.
_LEAST_PART = 0.5
# States of a pool, the part of ``max_rows`` that it may have, and searches without a gain after which it is
# given up.
_POOL, _ROWS_OF_POOL, _PATIENCE_WITH_POOLS = 6, 1 / 3, 2
# Searches of one round. The least number of them is made even if they take too many numbers.
_LEAST_SEARCHES, _MOST_SEARCHES = 2, 60


class StateOversplit(SearchResort):
    """Split many states at once, let the parts compete for the rows, and keep what pays.

    A birth looks for new states among the rows of one state, or of two. It misses a state whose rows are
    spread over several others, and changes of several states at once. When nothing else is left to try,
    all states are therefore split into several parts. A hidden Markov model of the parts is fitted to the
    sequences, in which any row may go to any part. Then pairs of parts are joined, and small parts are
    dropped, for as long as that raises the objective. If the result is worse as a whole, new states are
    kept only for the blocks of rows that they explain better. This is one search. Others follow with
    other seeds, from the best states so far. In turns, they split all states, and a random half of them.

    They take rows that are alike for one part, or rows whose neighbours in the sequence are alike as
    well, or are in the same states: two states may have the same emissions and differ in what follows.
    Where visits to a state do not end with the same probability at any time, rows of the same age are
    parts, too. If all states are searched, concentrations that are learned suit what is found. Where a
    search ends elsewhere than it began, the best states are also annealed: likelihoods are taken to a
    small power, which rises to one, so that rows leave states in which they are stuck. A round ends when
    many searches in a row have found nothing better. The result replaces all states for one lap, and
    stays if that raises the objective of the whole data.

    After several fits (``n_init``), the best one also tries the states of the others, as if a search of all
    states had found them.

    Of many rows or states, a search of all states would take too long. Then a round goes through pools of six
    neighbours, and each pool is searched in this way on its own rows.

    Parameters
    ----------
    n_seeds : int, default=4
        The greatest number of parts, two or more, that a state is split into. Where rows are told apart by
        their neighbours, few states may have more parts, of which there are 20 in all.
    patience : int, default=25
        Searches without a gain, one after the other, after which a round ends. It ends earlier if searches
        are costly, or if most of them come back to where they began. A pool is given up after two.
    max_rows : int, default=30_000
        Rows that are looked at, at the most. If there are more than twice as many, pools are searched, on a
        third of this for each.
    max_rounds : int, default=12
        How many rounds of searches a fit makes, at the most.

    References
    ----------
    This proposal is this package's own. Annealing is that of N. Ueda and R. Nakano (1998). Deterministic
    annealing EM algorithm. Neural Networks 11, 271-282.

    Examples
    --------
    >>> from sklearn_bnp import HDPHMMVB, StateOversplit
    >>> model = HDPHMMVB(proposals=("birth", "merge", "delete", StateOversplit(patience=20)))
    """

    kind = "oversplit"
    suits = ("hmm",)
    _parameter_constraints = {
        **SearchResort._parameter_constraints,
        "n_seeds": [Interval(Integral, 2, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
    }
    meets = True
    # States of other fits, which it is to meet; saved models of before do not know them.
    _others: Sequence[StatBag] = ()
    _moved = 0.02
    _numbers_of_fit = 6_000_000_000  # one pass counted for each search: about thirty seconds

    def __init__(
        self,
        n_seeds: int = 4,
        patience: int = 25,
        max_rows: int = 30_000,
        max_rounds: int = 12,
    ) -> None:
        super().__init__(max_rows, max_rounds)
        self.n_seeds = n_seeds
        self.patience = patience

    def reset(self) -> None:
        """Forget all attempts, and what they have cost."""
        super().reset()
        self._pools = []  # of uids, whose rows are being collected
        self._others = ()

    def meet(self, others: list[StatBag]) -> None:
        """Compare the states with those of other fits, and search on as if nothing had been searched yet."""
        if others:
            self.reset()
            self.last_resort()
        self._others = tuple(others)

    @property
    def pending(self) -> bool:
        """Whether its turn is to come, or there are pools to be searched."""
        return self._due or bool(self._pools)

    def wants_unions(self, totals: StatBag) -> list[tuple[int, ...]]:
        """The pools, or all states if a round is due."""
        if self._pools or not self._due or not self._may_show_all(totals):
            return self._pools
        return [tuple(totals.uids.tolist())]

    def _may_show_all(self, totals):
        """Whether a sample of all states may be large enough; of weighted rows nobody knows before."""
        return self.weighted or totals.n.sum() <= self.max_rows / _LEAST_PART

    def sample_rows(self, n_statistics: int) -> int:
        """Rows to collect of a pool, or of all states."""
        return max(2, int(_ROWS_OF_POOL * self.max_rows)) if self._pools else self.max_rows

    def plan(self, context: Context) -> list[Any]:
        """A trial in which all states give way to those of the best search, or such trials of pools."""
        if not (self._due or self._pools):
            return []
        if context.on_trial:
            self._miss()
            return []
        totals = context.totals
        room = context.max_components - len(totals.uids)
        if self._pools:
            self._take()
            return self._trials_of_pools(context, room)
        if not self._begins(context):
            return []
        states = map(states_of, context.samples)
        uids = next((x for x in states if set(x) == set(totals.uids.tolist())), None)
        if uids is None and self._may_show_all(totals):  # states have changed in this lap
            self.last_resort()
            return []
        self._rounds += 1
        others, self._others = self._others, ()
        if uids is None or not self._is_affordable(context.samples[sample_key(uids)], totals):
            loss = reassignment_loss(context.model, totals)
            pools = neighbourhoods(loss, _POOL, context.rng)
            least = min(2, len(totals.uids))
            self._pools = [
                tuple(totals.uids[pool].tolist()) for pool in pools if len(pool) >= least
            ]
            self.last_resort()
            return []
        trial = self._trial(context, uids, self.patience, room, others)
        return [] if trial is None else [trial]

    def _trials_of_pools(self, context, room):
        """Trials of the pools whose rows were collected; together they add no more states than ``room``."""
        pools, self._pools, trials = self._pools, [], []
        there = set(context.totals.uids.tolist())
        for pool in pools:
            if not there.issuperset(pool):  # a state has gone since its rows were asked for
                continue
            trial = self._trial(context, pool, _PATIENCE_WITH_POOLS, room)
            if trial is not None:
                room -= max(0, len(trial.created) - len(pool))
                trials.append(trial)
        return trials

    def _is_affordable(self, sample, totals):
        """Whether all states can be searched together on their sample."""
        if sample.total < _LEAST_PART * totals.n.sum():
            return False
        return _numbers(sample.n_rows, len(totals.uids), totals) <= _MOST_NUMBERS

    def _trial(self, context, uids, patience, room, others=()):
        """The trial of the best states that searches find in place of these; None if they find none.

        There may be ``room`` more of them. ``others`` are states of other fits, which come before searches.
        """
        totals, model, attempt = context.totals, context.model, tuple(sorted(uids))
        name = sample_key(uids)
        if name not in context.samples or self._attempts.failed(attempt, totals.sizes):
            return None
        rows = totals.positions(uids).tolist()
        n = float(totals.n[rows].sum())
        sample = context.samples[name].among(totals.uids)
        sample = to_search(sample, model.likelihood, model.prior).standing_for(n)
        numbers = _numbers(sample.n_rows, len(uids), totals)
        if self._numbers_left < numbers and len(uids) < len(totals.uids):
            return None
        self._attempts.begin(attempt, totals.uids[rows], totals.n[rows])
        search = StateSearch(
            model, totals, rows, sample, self.n_seeds, room + len(uids), context.rng,
            context.n_threads,
        )  # fmt: skip
        if not search.is_empty:
            for other in others:
                search.meet(other)
            self._go_on(search, numbers, patience)
        if search.best is None:
            return None
        created, made = context.new_uids(len(search.best.s)), search.best
        scale = n / made.s[:, -1].sum()
        return AdoptTrial(
            self.kind, uids[0], created, scale * made.s, retires=True,
            extra=made.transitions(created).scaled(scale), others=uids[1:],
            estimate=scale * search.gain, adapts=True, concentrations=search.concentrations,
        )  # fmt: skip

    def _go_on(self, search, numbers, patience):
        """Make searches, each of which takes so many ``numbers``, until there is little left to find."""
        for i in range(_MOST_SEARCHES):
            if self._numbers_left < numbers and i >= _LEAST_SEARCHES:
                break
            self._numbers_left = max(self._numbers_left - numbers, 0)
            search.go_on()
            if search.n_failures == patience or search.comes_back:
                break


def _numbers(n_rows, n_states, totals):
    """Numbers that a pass of the parts of so many states over so many rows reads, and their unions."""
    n_parts = max(2 * n_states, PARTS_BY_CONTEXTS)
    each = totals.s.shape[1] + _NUMBERS_BESIDE_P + _NUMBERS_PER_PART * n_parts
    return int(n_rows * n_parts * each + _NUMBERS_PER_UNION * n_parts**3)
