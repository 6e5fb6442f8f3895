"""The lap loop of memoized variational inference (Hughes 2016, Alg. 3.3) with proposals (Ch. 4)."""

from __future__ import annotations

import time
from collections import Counter
from copy import copy, deepcopy
from typing import NamedTuple

import numpy as np

from .memo import Memo
from .proposal import Context
from .scheduler import Scheduler, resolution
from .statistics import StatBag, UidCounter

# Steps of empirical Bayes at the end of the first lap and of the others, and how far the prior may
# move (in log) before failures that were noted under the old one are forgotten.
_FIRST_ADAPT_STEPS, _ADAPT_STEPS = 20, 4
_PRIOR_MOVED = 0.7
# Passes over the data that adopted components may have besides the first, while what the last one
# gained, so many times, would make up for what is missing.
_MORE_PASSES = 10
# Mass under which a component counts as empty: less than a sum over the data can resolve.
_EMPTY = 1e-8
# Name of what batches left behind that will not be seen again; no user's batch_id equals it.
_PAST = ("sklearn_bnp", "batches that are gone")


class Lap(NamedTuple):
    """What one lap did: an entry of ``history_``."""

    lap: int
    n_components: int
    lower_bound: float
    seconds: float
    proposal_seconds: float
    tried: dict
    accepted: dict


class _Snapshot(NamedTuple):
    """State to go back to unless a lap with adopted components raises the objective above ``least``."""

    totals: StatBag
    memo: Memo
    model: object
    least: float


class Learner:
    """State of a fit: model, totals, memo, and proposals under way.

    Parameters
    ----------
    model : Model
    proposals : list of Proposal
        Not shared with anybody: they keep memories.
    rng : numpy.random.RandomState
    collector_type : type
        What collects samples for the proposals.
    max_components : float
        Births do not lead beyond.
    n_nonzero : int or None
        L of L-sparse responsibilities.
    n_threads : int
    """

    def __init__(
        self, model, proposals, rng, collector_type, *, max_components=np.inf, n_nonzero=None,
        n_threads=1,
    ):  # fmt: skip
        self.model, self.rng = model, rng
        self.n_nonzero, self.n_threads = n_nonzero, n_threads
        self.new_uids = UidCounter()
        self.scheduler = Scheduler(
            proposals, self.new_uids, max_components, rng, n_threads, collector_type
        )
        self.memo = Memo()
        self.totals = None
        self.coef = None
        self.history = []
        self.converged = False
        self.n_steps, self.mass_seen = 0, 0.0  # of the stochastic method
        self._observers, self._seen, self._seconds = [], set(), 0.0
        self._before, self.seeds = None, []

    @property
    def lower_bound(self):
        """The objective as things stand, in nats."""
        return self.model.elbo(self.totals)

    @property
    def n_laps(self):
        """Laps made, of which a stream may have forgotten the first."""
        return self.history[-1].lap if self.history else 0

    def copy(self):
        """A learner that goes on from here without changing this one.

        It shares what is never changed in place: models, statistics and the rows of samples. What proposals,
        trials and observers remember is copied at once, so that they still know each other.
        """
        other = copy(self)
        other.new_uids, other.rng, other.scheduler, other._observers = deepcopy(
            (self.new_uids, self.rng, self.scheduler, self._observers)
        )
        other.memo, other._seen = self.memo.copy(), set(self._seen)
        other.history, other.seeds = list(self.history), list(self.seeds)
        if self._before is not None:
            other._before = self._before._replace(memo=self._before.memo.copy())
        return other

    def start(self, s):
        """Begin from statistics ``s`` (K, P), which give the first parameters.

        The first lap counts everything anew. Stochastic steps average what they find with ``s``.
        """
        uids = np.array(self.new_uids(len(s)), dtype=np.int64)
        self.totals = StatBag(uids, s, np.zeros(len(s)))
        self.coef = self.model.coefficients(self.totals)

    def go_on_with(self, likelihood, change):
        """Go on with another likelihood, whose statistics are ``change`` of the present one's.

        A lap under way ends here: what it tried is in terms of the present one.
        """
        if self.lap_under_way or self._before is not None:
            self.abandon_lap()
        self.scheduler.drop_trials()
        self.model = self.model.with_likelihood(likelihood)
        self.memo = self.memo.mapped(lambda bag: bag._replace(s=change(bag.s)))
        self.totals = self.totals._replace(s=change(self.totals.s))
        self.coef = self.model.coefficients(self.totals)

    # ------------------------------------------------------------------ one lap

    def begin_lap(self, expected_mass=None):
        """Ready for a pass over all batches; ``expected_mass`` is their weight if none was seen yet."""
        if len(self.memo) == 0:  # a start gave the parameters, but nothing is counted yet
            self.totals = StatBag.zeros(self.totals.uids, self.totals.s.shape[1])
        totals = self.totals
        if expected_mass is not None:
            s = totals.s.copy()
            s[:, -1] = expected_mass / len(s)
            totals = totals._replace(s=s)
        self._observers = self.scheduler.observers(totals)
        self._seen, self._seconds = set(), 0.0
        self._before, self.seeds = None, [trial.seeds for trial in self.scheduler.adoptions]
        if self.seeds:
            least = self.lower_bound + resolution(self.model, self.totals)
            self._before = _Snapshot(self.totals, self.memo.copy(), self.model, least)
            for seeds in self.seeds:
                self.totals = self.totals.concatenated(seeds)
            self._adopt()

    def _adopt(self):
        """The model as it suits the components on trial, and its parameters."""
        adoptions = self.scheduler.adoptions
        retired = {uid: t.created for t in adoptions if t.retires for uid in t.targets}
        self.model = self.model.adopting(self.totals, retired)
        self.coef = self.model.coefficients(self.totals)

    def visit(self, batch, *, update=True):
        """Local and summary step of one batch, increment of the totals, and a global step."""
        start = time.perf_counter()
        old = self.memo.get(batch.batch_id, self.totals.uids)
        bag = self.model.local_pass(
            batch, self.coef, self.totals.uids, self._observers,
            old=old, lap=self.n_laps, n_nonzero=self.n_nonzero, n_threads=self.n_threads,
        )  # fmt: skip
        for observer in self._observers:
            observer.close(batch.batch_id, bag)
        self.totals = self.totals.exchanged(old, bag)
        self.memo.put(batch.batch_id, bag)
        self._seen.add(batch.batch_id)
        if update:
            if self._before is None:
                self.model = self.model.updated(self.totals)
            self.coef = self.model.coefficients(self.totals)
        self._seconds += time.perf_counter() - start

    @property
    def lap_under_way(self):
        """Whether a lap has begun and not ended."""
        return bool(self._seen)

    @property
    def lap_is_complete(self):
        """Whether every batch in memory was visited since the lap began."""
        # by hash: numbers of NumPy are compared with tuples item by item
        return self._seen.issuperset(set(self.memo.batch_ids) - {_PAST})

    def end_lap(self, *, propose=True, first=False, resum=False):
        """Verdict on the proposals that watched, empirical Bayes, and new plans.

        Parameters
        ----------
        propose : bool
            Plan trials for another lap.
        first : bool
            This was the first lap.
        resum : bool
            Add up all batches anew, so that rounding does not build up over laps.

        Returns
        -------
        Lap
        """
        start = time.perf_counter()
        self._take_out_seeds()
        if resum:
            self.totals = self.memo.total(self.totals.uids, self.totals.s.shape[1])
        uids = self.totals.uids
        self._tidy()  # verdicts are about what is left, in the order that suits it
        verdict = self.scheduler.judge(self.model, self.totals, self.memo)
        for trial in verdict.accepted:
            self.memo.record(trial.edit())
        self.model, self.totals = verdict.model, verdict.totals
        if verdict.partial:  # batches unseen by a trial know their own bounds, and better ones
            self.totals = self.memo.total(self.totals.uids, self.totals.s.shape[1])
        adopted, n_kept, took_back = self._end_adoptions()
        judged = time.perf_counter()
        self._adapt_prior(_FIRST_ADAPT_STEPS if first else _ADAPT_STEPS)
        self._tidy()
        adapted = time.perf_counter()
        if propose:
            self.scheduler.plan(self._context, uids, verdict.accepted, first=first)
        end = time.perf_counter()
        self.coef = self.model.coefficients(self.totals)
        lap = Lap(
            self.n_laps + 1, len(self.totals.uids), self.lower_bound,
            self._seconds + time.perf_counter() - start, end - adapted + judged - start,
            dict(verdict.tried + adopted),
            {} if took_back else dict(verdict.n_accepted + n_kept - verdict.undone),
        )  # fmt: skip
        self.history.append(lap)
        self._observers, self._seen = [], set()
        return lap

    def abandon_lap(self):
        """End a lap that broke off: without trials, and without components on trial."""
        if self._before is not None:
            before = self._before
            self.totals, self.memo, self.model = before.totals, before.memo, before.model
        self._before, self.seeds = None, []
        self.scheduler.drop_trials()
        if len(self.memo):
            self.end_lap(propose=False)

    def _take_out_seeds(self):
        """Adopted components counted rows twice while the lap went on."""
        for seeds in self.seeds:
            self.totals = self.totals.less(seeds)
        self.seeds = []

    def _end_adoptions(self):
        """If components were adopted and the objective fell over the lap, take the lap back.

        Returns
        -------
        tried, kept : Counter
        took_back : bool
        """
        before, self._before = self._before, None
        if before is None:
            return Counter(), Counter(), False
        rose = self.lower_bound > before.least
        if not rose:
            self.totals, self.memo, self.model = before.totals, before.memo, before.model
            self.scheduler.collector = None
        counts = dict(zip(before.totals.uids.tolist(), before.totals.n.tolist(), strict=True))
        adoptions = self.scheduler.judge_adoptions(rose, counts.get)
        tried = Counter(trial.kind for trial in adoptions)
        return tried, tried if rose else Counter(), not rose

    def run_lap(self, source, *, propose=True):
        """One pass over the batches of a source that holds all the data."""
        first = len(self.memo) == 0
        self.scheduler.fit_samples_to(
            source.rows_in_memory, source.numbers_a_row or self.model.likelihood.n_features
        )
        self.scheduler.heed_weights(source)
        self.begin_lap(source.total_weight if first else None)
        for batch in source.batches(self.rng):
            # parameters stay until every batch has been seen once (Sec. 3.5.4)
            self.visit(batch, update=not first)
        if self._before is not None:
            self._prolong(source)
        return self.end_lap(propose=propose, first=first, resum=True)

    def _prolong(self, source):
        """More passes for components on trial, as long as these promise to raise the objective."""
        self._take_out_seeds()
        value = self.model.updated(self.totals).elbo(self.totals)
        for _ in range(_MORE_PASSES):
            if value > self._before.least:
                break
            self._adopt()
            for batch in source.batches(self.rng):
                self.visit(batch)
            last, value = value, self.model.updated(self.totals).elbo(self.totals)
            if value + _MORE_PASSES * (value - last) <= self._before.least:
                break

    def fit(self, source, max_iter, tol, on_lap=lambda lap: None):
        """Laps until the objective rises by less than ``tol`` an observation and nothing is under way."""
        n = source.total_weight
        self.converged = retried = False
        for i in range(max(1, max_iter)):
            lap = self.run_lap(source, propose=i + 1 < max_iter)
            source = source.without_responsibilities()
            on_lap(lap)
            if lap.accepted or i == 0:
                retried = False
                continue
            gain = lap.lower_bound - self.history[-2].lower_bound
            if gain >= tol * n or self.scheduler.has_plans:
                continue
            if retried or not self.scheduler.proposals:
                self.converged = True
                break
            self.scheduler.last_resort()
            retried = True

    def forget_batches(self):
        """Keep the totals alone: no batch seen so far will be visited again."""
        self.totals = self.totals._replace(extra=self.totals.extra.as_past())
        self.memo = Memo()
        self.memo.put(_PAST, self.totals)
        self.scheduler.drop_trials()

    # ------------------------------------------------------------------ helpers

    def _adapt_prior(self, n_steps):
        old = self.model.prior
        self.model = self.model.with_adapted_prior(self.totals, n_steps)
        if self.model.likelihood.prior_distance(old, self.model.prior) > _PRIOR_MOVED:
            self.scheduler.prior_changed()

    def _tidy(self):
        """Largest components first; empty ones go, unless the number of components is fixed."""
        if self.scheduler.proposals and np.any(self.totals.n <= _EMPTY):
            self.totals = self.totals.take(np.flatnonzero(self.totals.n > _EMPTY))
        self.totals, self.model = self.model.in_order(self.totals)

    def _context(self, samples, uniform):
        return Context(
            self.model, self.totals, samples, uniform, self.rng, self.new_uids,
            self.scheduler.max_components, n_threads=self.n_threads,
            partial=not self._seen.issuperset(set(self.memo.batch_ids)),
        )  # fmt: skip
