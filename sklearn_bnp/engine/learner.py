"""The lap loop of memoized variational inference (Hughes 2016, Alg. 3.3) with proposals (Ch. 4).

Design note
-----------
(a) A lap visits all batches (`Learner.visit`). At its end (`Learner.end_lap`) trials are judged, the prior
    adapts, and trials of the next lap are planned.
(b) Components on trial are in the model for a lap. Their initial statistics are added to the totals before
    it, so that rows can go to them, and count rows twice until they are taken off again. Meanwhile a
    `Snapshot` keeps the state before the lap. The lap gets more passes as long as these may help. If the
    objective is not higher at its end, the lap is taken back: the snapshot is the state again.
(c) How a fit comes to its end is told in ``stopping.py``.
"""

from __future__ import annotations

import time

import numpy as np

from .evidence import KnownEvidence
from .memo import PAST, Memo, is_past
from .proposal import Context
from .scheduler import Scheduler, resolution
from .state import Lap, LearnerSettings, LearnerState, Snapshot, StreamState
from .statistics import StatBag, UidCounter
from .stopping import conclude
from .task import LocalTask, Purpose, combined, cut_anew, generator, run
from .trial_records import counted, counted_accepted, drop_old_trials, taken_back
from .trials import MOST_PASSES

# Steps of empirical Bayes at the end of the first lap and of the others, and how far the prior may
# move (in log) before failures that were noted under the old one are forgotten.
_FIRST_ADAPT_STEPS, _ADAPT_STEPS = 20, 4
_PRIOR_MOVED = 0.7
# Batches with this share of all mass are taken for all of them.
_ALL = 1.0 - 1e-9


class Learner:
    """Runs laps, which are passes over all batches.

    It starts from a `LearnerState`, which it does not change; its property ``state`` gives the new one.

    Parameters
    ----------
    state : LearnerState
    settings : LearnerSettings
    run_tasks : callable, default=map
        ``run_tasks(run, tasks)`` gives the results of the tasks of a batch's parts, in their order: `map`,
        or that of an executor, whose processes may work on the parts at the same time.
    """

    def __init__(self, state, settings=LearnerSettings(), run_tasks=map):  # noqa: B008 (an immutable value)
        self.settings, self._run_tasks = settings, run_tasks
        self.model, self.seed = state.model, state.seed
        self.totals, self.coef = state.totals, state.coef
        self.memo, self.history = state.memo.copy(), list(state.history)
        self.converged, self.new_uids = state.converged, UidCounter(state.next_uid)
        self.n_batches, self.n_steps = state.n_batches, state.n_steps
        self.mass_seen, self.was_taken_back = state.mass_seen, False
        self._seen, self._n_passes, self._seconds = set(state.seen), state.n_passes, state.seconds
        self._before, self.initial = state.before, list(state.initial)
        self.stream, self.retried, self.finishing = state.stream, state.retried, state.finishing
        self._evidence, self._bound = state.evidence, None
        self.scheduler = Scheduler(state.schedule, self.new_uids, settings, state.model.sampling)

    @property
    def state(self):
        """The `LearnerState` as things stand. It is a value as long as this learner is not used again."""
        return LearnerState(
            model=self.model, seed=self.seed, schedule=self.scheduler.state, totals=self.totals,
            coef=self.coef, memo=self.memo, history=tuple(self.history), converged=self.converged,
            next_uid=self.new_uids.next, n_batches=self.n_batches, n_steps=self.n_steps,
            mass_seen=self.mass_seen, seen=frozenset(self._seen), n_passes=self._n_passes,
            seconds=self._seconds, before=self._before, initial=tuple(self.initial),
            stream=self.stream, retried=self.retried, finishing=self.finishing, evidence=self._evidence,
        )  # fmt: skip

    @property
    def lower_bound(self):
        """The objective as things stand, in nats."""
        of = (self.model, self.totals)
        if self._bound is None or any(a is not b for a, b in zip(self._bound[0], of, strict=True)):
            self._bound = of, self.model.elbo(self.totals, self.evidence())
        return self._bound[1]

    def evidence(self):
        """Evidence (K,) of each component as things stand, in nats."""
        if self._evidence is None or not self._evidence.suits(self.model, self.totals):
            self._evidence = KnownEvidence.of(self.model, self.totals)
        return self._evidence.values

    @property
    def n_laps(self):
        """Laps made, of which a stream may have forgotten the first."""
        return self.history[-1].lap if self.history else 0

    def rng(self, purpose):
        """The random numbers of this lap, or pass, for one purpose."""
        return generator((self.seed, self.n_laps, self._n_passes), purpose)

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
        self.end_trials()
        self.model = self.model.with_likelihood(likelihood)
        self.memo = self.memo.mapped(lambda bag: bag._replace(s=change(bag.s)))
        self.totals = self.totals._replace(s=change(self.totals.s))
        self.coef = self.model.coefficients(self.totals)

    # ------------------------------------------------------------------ one lap

    def begin_lap(self, expected_mass=None, share=1.0, draw=True):
        """Ready for a pass over all batches; ``expected_mass`` is their weight if none was seen yet.

        If the pass is over some of them, ``share`` is their part of the mass. Unless ``draw``, proposals will
        have no samples of rows.
        """
        if len(self.memo) == 0:  # a start gave the parameters, but nothing is counted yet
            self.totals = StatBag.zeros(self.totals.uids, self.totals.s.shape[1])
        totals = self.totals
        if expected_mass is not None:
            s = totals.s.copy()
            s[:, -1] = expected_mass / len(s)
            totals = totals._replace(s=s)
        self.scheduler.begin_lap(totals, share, draw)
        if not self._seen:  # otherwise a lap begins anew, and what it took counts
            self._seconds = 0.0
        self._seen = set()
        self._n_passes += 1
        self._before, self.initial = None, self.scheduler.initial_statistics
        if self.initial:
            least = self.lower_bound + resolution(self.model, self.totals)
            least += self.scheduler.least_gain
            self._before = Snapshot(self.totals, self.memo.copy(), self.model, least)
            for rows in self.initial:
                self.totals = self.totals.more(rows)
            self.model = self.scheduler.suited(self.model, self.totals, _FIRST_ADAPT_STEPS)
            self._put_on_trial()

    def _put_on_trial(self):
        """Let the model be one that suits the components on trial."""
        self.model = self.scheduler.adopting(self.model, self.totals)
        self.coef = self.model.coefficients(self.totals)

    def visit(self, batch, *, update=True, number=None):
        """Local and summary step of one batch, increment of the totals, and a global step.

        Parameters
        ----------
        batch : Batch or CompositeBatch
        update : bool
            Whether to make the global step.
        number : int or None
            The batch's place among all, a part of its seed; in a stream, by when it first came.
        """
        start = time.perf_counter()
        number = self._number(batch.batch_id) if number is None else number
        old = self.memo.get(batch.batch_id, self.totals.uids)
        result = self.worked_on(batch, number, self.scheduler.probes, old, self.n_laps)
        self.scheduler.take(batch.batch_id, number, result.findings)
        self.totals = self.totals.exchanged(old, result.statistics)
        self.memo.put(batch.batch_id, result.statistics)
        self._seen.add(batch.batch_id)
        if self._before is None:
            self.scheduler.give_up_hopeless(self.model, self.totals, self.memo)
        if update:
            if self._before is None:
                self.model = self.model.updated(self.totals)
            self.coef = self.model.coefficients(self.totals)
        self._seconds += time.perf_counter() - start

    def worked_on(self, batch, number=0, probes=(), old=None, lap=0):
        """`LocalResult` of a batch under the present parameters; ``old`` is what it left behind before."""
        carries = [self.model.carry(old, part.batch_id) for part in batch.parts]
        return self._worked_on(batch, number, probes, carries, lap)

    def _worked_on(self, batch, number, probes, carries, lap):
        tasks = [
            LocalTask(
                self.model, self.coef, self.totals.uids, part, probes, carry, lap,
                (self.seed, self.n_laps, self._n_passes, number, i),
                self.settings.n_nonzero, self.settings.n_threads,
            )
            for i, (part, carry) in enumerate(zip(batch.parts, carries, strict=True))
        ]  # fmt: skip
        run_tasks = getattr(batch, "run_tasks", self._run_tasks)  # of data that lie elsewhere
        return combined(probes, run_tasks(run, tasks))

    def _number(self, batch_id):
        """The place of a batch in a stream, by when it first came."""
        known = self.memo.number(batch_id)
        if known is not None:
            return known
        self.n_batches += 1
        return self.memo.numbered(batch_id, self.n_batches - 1)

    @property
    def lap_under_way(self):
        """Whether a lap has begun and not ended."""
        return bool(self._seen)

    @property
    def lap_is_complete(self):
        """Whether every batch in memory was visited since the lap began."""
        # by hash: numbers of NumPy are compared with tuples item by item
        return self._seen.issuperset(set(self.memo.batch_ids) - {PAST})

    def end_lap(self, *, propose=True, first=False, adapt=True):
        """End a lap: accept or reject its trials, adapt the prior by empirical Bayes, and plan new trials.

        Parameters
        ----------
        propose : bool
            Plan trials for another lap.
        first : bool
            This was the first lap.
        adapt : bool
            Adapt the prior.

        Returns
        -------
        Lap
        """
        start = time.perf_counter()
        self._take_out_initial()
        uids = self.totals.uids
        self._tidy()  # verdicts are about what is left, in the order that suits it
        verdict = self.scheduler.judge(self.model, self.totals, self.memo)
        self._carry_out(verdict)
        if verdict.partial:  # batches unseen by a trial know their own bounds, and better ones
            self.add_up_anew()
        records = self._end_trial(verdict)
        judged = time.perf_counter()
        if adapt:
            self._adapt_prior(_FIRST_ADAPT_STEPS if first else _ADAPT_STEPS)
            self._tidy()
        adapted = time.perf_counter()
        if not propose:
            self.scheduler.drop_samples()  # without them nothing is planned
        left_alone = self.scheduler.plan(self._context, uids, verdict.accepted, first=first)
        end = time.perf_counter()
        self.coef = self.model.coefficients(self.totals)
        lap = Lap(
            self.n_laps + 1, len(self.totals.uids), self.lower_bound,
            self._seconds + time.perf_counter() - start, end - adapted + judged - start,
            dict(counted(records)), dict(counted_accepted(records)), tuple(records), left_alone,
        )  # fmt: skip
        self.history.append(lap)
        drop_old_trials(self.history)
        self._seen, self._n_passes = set(), 0
        return lap

    def _carry_out(self, verdict):
        """Make the changes of accepted trials."""
        for change in verdict.accepted:
            self.memo.record(change.outcome.edit)
        self.model, self.totals = verdict.model, verdict.totals

    def try_at_once(self, trials):
        """Carry out those of some trials, whose outcome is known, that raise the objective; their records."""
        verdict = self.scheduler.verdict_on(self.model, self.totals, trials)
        if verdict.accepted:
            self._carry_out(verdict)
            self.coef = self.model.coefficients(self.totals)
        return [record for record in verdict.records if record.accepted]

    def abandon_lap(self):
        """End a lap that broke off: without trials, and without components on trial."""
        if self._before is not None:
            self._go_back()
        self._before, self.initial = None, []
        self.scheduler.drop_trials()
        if len(self.memo):
            self.end_lap(propose=False)

    def _go_back(self):
        before = self._before
        self.totals, self.memo, self.model = before.totals, before.memo.copy(), before.model

    def add_up_anew(self):
        """Let the totals be the sum of what all batches left behind: rounding does not build up over laps."""
        self.totals = self.memo.total(self.totals.uids, self.totals.s.shape[1])
        self.initial = []  # they are of no batch

    def _take_out_initial(self):
        """Take initial statistics of components on trial off the totals: they count rows twice."""
        for rows in self.initial:
            self.totals = self.totals.less(rows)
        self.initial = []

    def _end_trial(self, verdict):
        """If components were on trial and the objective fell over the lap, take the lap back.

        Returns
        -------
        records : list of TrialRecord
            Of all trials of the lap, of which ``verdict`` has judged the others.
        """
        before, self.was_taken_back = self._before, False
        if before is None:
            return verdict.records
        excess = self.lower_bound - before.least
        gain = excess + self.scheduler.least_gain
        # one component in place of one is the same, even if the model around it has moved
        several = max(len(self.totals.uids), len(before.totals.uids)) > 1
        rose = several and excess > 0
        if not rose:
            self._go_back()
            self.scheduler.drop_samples()
        self._before, self.was_taken_back = None, not rose
        own = self.scheduler.judge_lap(rose, before.totals, gain, verdict.targets_undone)
        return (verdict.records if rose else taken_back(verdict.records)) + own

    def run_lap(self, source, *, propose=True):
        """One pass over the batches of a source that holds all the data."""
        first = len(self.memo) == 0
        self.scheduler.fit_samples_to(
            source.rows_in_memory, source.values_per_row or self.model.likelihood.n_features
        )
        self.scheduler.heed_weights(source)
        mass, present = source.total_weight, 0.0 if first else self.totals.n.sum()
        # a stream may go over a part of what is in memory
        share = mass / present if mass < _ALL * present else 1.0
        self.begin_lap(mass if first else None, share)
        # parameters stay until every batch has been seen once (Sec. 3.5.4)
        self._pass_over(source, update=not first)
        if self._before is not None:
            self._prolong(source)
        self.add_up_anew()
        return self.end_lap(propose=propose, first=first)

    def _pass_over(self, source, update=True):
        """Visit all batches, in random order."""
        for i in self.rng(Purpose.ORDER).permutation(len(source)).tolist():
            self.visit(source.batch(i), update=update, number=i)

    def _prolong(self, source):
        """More passes for components on trial, while these may raise the objective or have not settled."""
        self._take_out_initial()
        values, least = [self._at_its_best()], self._before.least
        while len(values) <= MOST_PASSES and self.scheduler.goes_on(values, least):
            self.scheduler.postpone()
            self._put_on_trial()
            self._n_passes += 1
            self._pass_over(source)
            values.append(self._at_its_best())

    def _at_its_best(self):
        """The objective, in nats, after the global step of the model, without empty components."""
        totals, self.model = self.model.in_order(self.totals.not_empty())
        self.model = self.scheduler.suited(self.model, totals, _ADAPT_STEPS)
        return self.model.elbo(totals)

    def fit(self, source, max_iter, tol, on_lap=lambda lap: None, *, done=0, goes_on=False):
        """Laps until the objective rises by no more than `stopping.least_gain` and nothing is under way.

        Proposals have their last chance sooner, when it rises by no more than ``tol`` an observation. Laps
        end, too, when ``on_lap`` returns true. Of at most ``max_iter`` laps, ``done`` were made before. If a
        later fit ``goes_on``, the last lap plans for the next one as all others do.
        """
        n, last = source.total_weight, max(1, max_iter)
        if done == 0:
            self.converged, self.finishing, self.retried = False, False, 0
        else:
            source = source.without_responsibilities()
        while done < last and not self.converged:
            lap = self.run_lap(source, propose=not self.finishing and (goes_on or done + 1 < last))
            source = source.without_responsibilities()
            conclude(self, lap, tol, n, first=done == 0)
            done += 1
            if on_lap(lap):
                break

    def suit_one(self):
        """If there is one component, let the prior suit it; whether that has changed the prior."""
        if len(self.totals.uids) != 1 or not self.model.likelihood.adapts_late:
            return False
        old, self.model = self.model.prior, self.model.alone(self.totals)
        self._note_change(old)
        self.coef = self.model.coefficients(self.totals)
        return self.model.prior is not old

    def put_in_place(self, batches, gone):
        """Visit batches, at the present parameters, in place of those named ``gone``, with the same rows.

        The rows of the batches are those of ``gone`` in the same order, but cut at other places.
        """
        self._break_off()
        uids = self.totals.uids
        carries = [self.model.carry(self.memo.get(name, uids), name) for name in gone]
        self.memo = self.memo.without(gone)
        for batch, carry in zip(batches, cut_anew(carries, batches), strict=True):
            number = self._number(batch.batch_id)
            result = self._worked_on(batch, number, (), [carry], self.n_laps)
            self.memo.put(batch.batch_id, result.statistics)
        self.add_up_anew()
        self.model = self.model.updated(self.totals)
        self.coef = self.model.coefficients(self.totals)

    def go_on_from(self, memo, totals):
        """Go on from another memory, whose sum are ``totals``: the prior adapts, and empty components go."""
        self.memo, self.totals = memo, totals
        self._tidy()
        self._adapt_prior(_ADAPT_STEPS)
        self.coef = self.model.coefficients(self.totals)

    def leave_memory(self):
        """Go on without a memory of batches: from now on, the totals are averages over steps.

        They go on standing for all that is remembered, to which the mass of each batch of a step is added.
        """
        if len(self.memo):
            self.end_trials()
            self.memo, self.stream = Memo(), StreamState()
            self.mass_seen = float(self.totals.n.sum())

    def end_trials(self):
        """End a lap under way and what is planned: both are in terms of the present model."""
        self._break_off()
        self.scheduler.drop_trials()

    def _break_off(self):
        """End a lap under way, if there is one."""
        if self.lap_under_way or self._before is not None:
            self.abandon_lap()

    def forget_batches(self, keep=()):
        """Keep the sum of all batches but those named ``keep``: the others will not be visited again."""
        self._break_off()
        keep = frozenset(keep)
        if not keep:
            self.stream = self.stream._replace(pool=(), size=None)
        gone = [name for name in self.memo.batch_ids if name not in keep and not is_past(name)]
        if gone or len(self.memo) == 0:
            past = self.memo.rest(keep, self.totals.uids) if keep else self.totals
            self.totals = self.totals._replace(extra=self.totals.extra.as_past())
            self.memo = self.memo.without([*gone, PAST])
            self.memo.put(PAST, past._replace(extra=past.extra.as_past()))
        self.scheduler.drop_trials()

    def let_go(self):
        """Keep nothing of batches that are gone but what adds up."""
        self.memo = self.memo.mapped(lambda bag: bag._replace(extra=bag.extra.summed()))
        self.totals = self.totals._replace(extra=self.totals.extra.summed())

    # ------------------------------------------------------------------ helpers

    def _adapt_prior(self, n_steps):
        old = self.model.prior
        self.model = self.model.with_adapted_prior(self.totals, n_steps)
        self._note_change(old)

    def _note_change(self, old):
        """Let proposals know if the prior is far from the ``old`` one."""
        if self.model.likelihood.prior_distance(old, self.model.prior) > _PRIOR_MOVED:
            self.scheduler.prior_changed()

    def _tidy(self):
        """Largest components first; empty ones go, unless the number of components is fixed."""
        if self.scheduler.proposals_at_rest:
            self.totals = self.totals.not_empty()
        known = self._evidence
        if known is not None and not known.suits(self.model, self.totals):
            known = None
        self.totals, self.model = self.model.in_order(self.totals)
        self._evidence = None if known is None else known.listed(self.totals)

    def _context(self, samples, uniform):
        how, seen = self.settings, self._seen.issuperset(set(self.memo.batch_ids))
        return Context(
            self.model, self.totals, samples, uniform, self.rng(Purpose.PLAN), self.new_uids,
            how.max_components, n_threads=how.n_threads, n_nonzero=how.n_nonzero, partial=not seen,
        )  # fmt: skip
