"""Plans trials, judges them by the exact objective of the whole data, and accepts the best.

The scheduler treats all proposals alike. Of a trial it needs to know only which components it removes, and
the statistics of those that take their place.
"""

from __future__ import annotations

from copy import deepcopy
from itertools import compress
from typing import NamedTuple

import numpy as np

from .proposal import planned
from .state import ScheduleState
from .statistics import added_up
from .trial_gains import Judged, Standing, present
from .trial_records import Reason, TrialRecord
from .trials import OF_A_LAP, KnownTrial, Outcome, Policy, compatible, with_lap

# Numbers that all samples of a lap hold together, within bounds: five times those of a batch.
_SAMPLE_BATCHES, _LEAST_NUMBERS, _MOST_NUMBERS = 5, 200_000, 20_000_000
# What rounding may do to the objective, relative to the numbers that it is the sum of: a thousand times
# the precision of doubles.
_ROUNDING = 1e-12


def resolution(model, totals):
    """Nats by which the objective has to rise for the rise to be more than rounding.

    The terms are sums of numbers of the size of ``N_k log N_k``, of which much cancels.
    """
    terms = model.elbo_terms(totals).values()
    mass = np.maximum(totals.n, 0.0)
    return _ROUNDING * (sum(abs(term) for term in terms) + mass @ np.log1p(mass))


class Accepted(NamedTuple):
    """A trial that was carried out, and its outcome."""

    trial: object
    outcome: object

    @property
    def created(self):
        """Names of the components that came: one of them may have kept the name of the target."""
        return tuple(self.outcome.successors.uids.tolist())


class Verdict(NamedTuple):
    """The outcome of the trials of a lap.

    Attributes
    ----------
    model : Model
        With the prior under which the last trial was accepted.
    totals : StatBag
    accepted : list of Accepted
        In the order of acceptance.
    records : list of TrialRecord
        Of the trials that count as tried.
    partial : bool
        Whether an accepted trial had not observed every batch.
    """

    model: object
    totals: object
    accepted: list
    records: list
    partial: bool

    @property
    def targets_undone(self):
        """Targets that are back, a set: what was made from them on trial was joined again."""
        changes = (change.trial for change in self.accepted)
        return {uid for t in changes if t.policy is Policy.UNDO for uid in t.created}


class Scheduler:
    """Runs proposals on behalf of a learner.

    Parameters
    ----------
    state : ScheduleState
        From which to go on; it is not changed.
    new_uids : UidCounter
    settings : LearnerSettings
    sampling_type : type
        What draws the samples for proposals: the ``sampling`` of the model.
    """

    def __init__(self, state, new_uids, settings, sampling_type):
        self._before, self._own = state, None
        self.new_uids, self.settings, self._sampling_type = new_uids, settings, sampling_type
        self.trials = list(state.trials)
        self._findings = [dict(found) for found in state.findings]
        self._sampling = None if state.sampling is None else state.sampling.copy()
        self._values, self._values_per_row = state.sample_values, state.values_per_row
        self.mean_weight = state.mean_weight
        self._given_up = []  # trials of this lap that were given up
        self._late = False  # whether a proposal that was overdue has planned trials of the next lap

    @property
    def proposals(self):
        """Proposals that may change their memories: copies, made when they are first asked for."""
        if self._own is None:
            before = self._before
            # memories go on knowing these values
            shared = {id(trial): trial for trial in before.trials}
            self._own = deepcopy(list(before.proposals), shared)
        return self._own

    @property
    def proposals_at_rest(self):
        """The proposals, to be looked at and not to be changed."""
        return self._before.proposals if self._own is None else self._own

    @property
    def state(self):
        """The `ScheduleState` as things stand."""
        return ScheduleState(
            tuple(self.proposals_at_rest), tuple(self.trials), tuple(self._findings), self._sampling,
            self._values, self._values_per_row, self.mean_weight,
        )  # fmt: skip

    def fit_samples_to(self, n_rows, values_per_row):
        """Let samples hold some times the numbers of ``n_rows`` prepared rows, within bounds."""
        values = _SAMPLE_BATCHES * n_rows * values_per_row
        self._values = int(min(max(values, _LEAST_NUMBERS), _MOST_NUMBERS))
        self._values_per_row = values_per_row

    def heed_weights(self, batch):
        """Let samples and proposals know if rows, of a batch or source to come, have weights."""
        if batch.mean_weight is not None:
            self.mean_weight = batch.mean_weight
            if not all(proposal.weighted for proposal in self.proposals_at_rest):
                for proposal in self.proposals:
                    proposal.weighted = True

    def go_on_with(self, proposals, new):
        """Go on with other proposals, of which some are ``new`` and begin without memories."""
        self._own = list(proposals)
        for proposal in new:
            proposal.reset()
            proposal.weighted = self.mean_weight is not None

    # ------------------------------------------------------------------ a lap

    def begin_lap(self, totals, share=1.0, draw=True):
        """Prepare for a lap: clear the findings of the last one, and decide which rows to sample, if any.

        The lap is over batches with this ``share`` of the mass of ``totals``.
        """
        self._begin_with(self.trials)
        self._given_up, self._sampling = [], None
        if self.proposals_at_rest and draw:
            room = max(self._values, _LEAST_NUMBERS) // self._values_per_row
            wanted = self._sampling_type.wanted(self.proposals, totals, room, self.mean_weight)
            there = totals if share == 1.0 else totals._replace(s=share * totals.s)
            self._sampling = self._sampling_type(wanted, there, self.mean_weight)

    @property
    def probes(self):
        """Probes that observe the next batch, a tuple."""
        probes = [trial.probe for trial in self.trials if trial.probe is not None]
        return tuple(probes) if self._sampling is None else (*probes, self._sampling.probe)

    def take(self, batch_id, number, findings):
        """Keep what the probes found in a batch."""
        found = list(findings)
        if self._sampling is not None:
            self._sampling.take(number, found.pop())
        observed = (
            kept for t, kept in zip(self.trials, self._findings, strict=True) if t.probe is not None
        )
        for kept, finding in zip(observed, found, strict=True):
            kept[batch_id] = finding

    def give_up_hopeless(self, model, totals, memo):
        """Give up trials that lose much in the batches they have observed, before they observe the others."""
        observed = {}  # most trials have observed the same batches
        goes_on = [
            not (trial.foretells and self._is_hopeless(trial, found, model, totals, memo, observed))
            for trial, found in zip(self.trials, self._findings, strict=True)
        ]
        self._given_up += [t for t, stays in zip(self.trials, goes_on, strict=True) if not stays]
        self._keep(goes_on)

    def _is_hopeless(self, trial, found, model, totals, memo, observed):
        """Whether a trial that has not observed all batches is expected to lose more than its allowance.

        ``observed`` is a dict: batch ids -> their statistics, as far as they were added up.
        """
        if not 0 < len(found) < len(memo) or len(present(trial, totals)) < len(trial.removed):
            return False
        key = tuple(found)
        if key not in observed:
            observed[key] = added_up(memo.get(batch_id, totals.uids) for batch_id in found)
        expected = trial.expected(totals, observed[key], found)
        if expected is None:
            return False
        known = KnownTrial(
            trial.kind, trial.removed, trial.created, Outcome(expected.successors, None)
        )
        trials = [Judged.known(known, totals)]
        standing = Standing(model, totals, self.settings.max_components)
        # what few rows let one expect may be no statistics of any rows; its gain is nan, and says nothing
        with np.errstate(invalid="ignore"):
            gain = standing.gains(trials, standing.fixed_gains(trials))[0]
        return bool(gain < -expected.allowance)

    @property
    def has_plans(self):
        """Whether trials are under way, or something is left that was meant to be tried."""
        return bool(self.trials) or any(proposal.pending for proposal in self.proposals)

    def has_more(self, patient):
        """Whether trials are under way and the fit is ``patient``, or what is overdue has not been tried.

        A proposal is overdue, or one that was has just planned trials.
        """
        late = self._late or any(p.overdue for p in self.proposals)
        return late or (patient and self.has_plans)

    # ------------------------------------------------------------------ components on trial

    @property
    def _on_trial(self):
        return with_lap(self.trials)

    @property
    def initial_statistics(self):
        """Initial statistics of components that are on trial in the coming lap, a list."""
        return [trial.initial for trial in self._on_trial]

    @property
    def retired(self):
        """Components that no row may go to while others are on trial -> those that take their place."""
        return {uid: t.created for t in self._on_trial if t.retires for uid in t.targets}

    @property
    def least_gain(self):
        """Nats by which the coming lap has to raise the objective for the components on trial."""
        return max((trial.least_gain for trial in self._on_trial), default=0.0)

    def adopting(self, model, totals):
        """The model for a lap with components on trial, and with the concentrations that they bring."""
        given = {name: a for t in self._on_trial for name, a in (t.concentrations or {}).items()}
        model = model.adopting(totals, self.retired, given)
        return model.released() if any(trial.learns for trial in self._on_trial) else model

    def suited(self, model, totals, n_steps):
        """The model under a prior that suits the components rows may go to, if a trial asks for that."""
        if not any(trial.adapts for trial in self._on_trial):
            return model
        at_work = np.flatnonzero(~np.isin(totals.uids, list(self.retired)))
        return model.with_adapted_prior(totals.take(at_work), n_steps)

    def goes_on(self, values, least):
        """Whether to make another pass: the objective may rise above ``least``, or trials are unsettled."""
        if values[-1] > least:
            return any(trial.is_unsettled(values) for trial in self._on_trial)
        return any(trial.goes_on(values, least) for trial in self._on_trial)

    def postpone(self):
        """Drop trials that have nothing to do with components on trial: observing every pass takes time."""
        self._keep([trial.policy in OF_A_LAP for trial in self.trials])

    def judge_lap(self, rose, before, gain, undone):
        """Verdict on a lap with components on trial, after that on its other trials.

        Parameters
        ----------
        rose : bool
            Whether the objective of the whole data is higher than before the lap.
        before : StatBag
            Totals before the lap.
        gain : float
            The change of the objective over the lap.
        undone : set of int
            Targets that are back although the lap is kept.

        Returns
        -------
        records : list of TrialRecord
        """
        trials, records = self._on_trial, []
        self._begin_with([])
        for trial in trials:
            mass = before.n[before.positions(trial.targets)].sum()
            self._proposal_of(trial).judged(trial, rose, float(mass), -np.inf)
            kept = Reason.ACCEPTED if undone.isdisjoint(trial.targets) else Reason.UNDONE
            reason = kept if rose else Reason.REFUSED
            records.append(TrialRecord.of(trial, reason, gain, trial.created))
        return records

    # ------------------------------------------------------------------ verdicts

    def judge(self, model, totals, memo):
        """Accept every trial, best first, that raises the objective; each component changes once."""
        judged = [
            Judged.of(trial, found, totals, memo)
            for trial, found in zip(self.trials, self._findings, strict=True)
            if trial.policy is not Policy.WITH_LAP
        ]
        self._begin_with(self._on_trial)
        verdict, gains, accepted = self._verdict(model, totals, judged)
        for i, trial in enumerate(judged):
            if trial.removed:
                mass = float(totals.n[totals.positions(trial.targets)].sum())
                gain = gains.get(i, -np.inf)
                self._proposal_of(trial).judged(trial.trial, i in accepted, mass, gain)
        return verdict._replace(records=verdict.records + self._refused(totals))

    def _refused(self, totals):
        """Let proposals know of trials that were given up in the lap; their records."""
        trials, self._given_up = self._given_up, []
        sizes = totals.sizes if trials else {}
        for trial in trials:
            if sizes.keys() >= set(trial.targets):
                mass = sum(sizes[uid] for uid in trial.targets)
                self._proposal_of(trial).judged(trial, False, mass, -np.inf)
        return [TrialRecord.of(trial, Reason.GIVEN_UP) for trial in trials]

    def verdict_on(self, model, totals, trials):
        """`Verdict` on trials whose outcome is known; no proposal remembers it."""
        return self._verdict(model, totals, [Judged.known(t, totals) for t in trials])[0]

    def _verdict(self, model, totals, trials):
        """`Verdict` on trials; with two facts by index, for the proposals.

        These are what trials would have gained before any was accepted, a dict, and the accepted ones, a set.
        """
        standing = Standing(model, totals, self.settings.max_components)
        here = {i: t for i, t in enumerate(trials) if t.removed}  # of others nothing is left
        renamed = {i: t for i, t in here.items() if t.renames}
        for trial in renamed.values():
            standing.accept(trial)
        others = {i: t for i, t in here.items() if not (t.renames or t.is_vacuous)}
        made, gains = self._accept_best(standing, others)
        accepted = [*renamed, *made]
        chosen = [here[i] for i in accepted]
        records = [
            self._record(standing, t, gains[i], made.get(i))
            for i, t in others.items()
            if not t.undoes
        ]
        verdict = Verdict(
            standing.model, standing.totals, [Accepted(c.trial, c.outcome) for c in chosen], records,
            any(c.partial for c in chosen),
        )  # fmt: skip
        return verdict, gains, set(accepted)

    @staticmethod
    def _record(standing, judged, gain, made):
        """`TrialRecord` of a `Judged` trial, whose ``gain`` was found, and which has ``made`` a change."""
        if made is not None:
            created = judged.successors.uids.tolist()
            return TrialRecord.of(judged.trial, Reason.ACCEPTED, made, created)
        if judged.successors is None:
            reason = Reason.UNKNOWN
        elif not gain > 0:
            reason = Reason.REFUSED
        elif standing.has_room_for(judged) or not standing.lists(judged.removed):
            reason = Reason.SUPERSEDED
        else:
            reason = Reason.NO_ROOM
        return TrialRecord.of(judged.trial, reason, gain)

    @staticmethod
    def _accept_best(standing, trials):
        """Accept those of some trials, a dict by index, that pay.

        Returns two dicts by index: what each accepted trial gained, in the order of acceptance; and what each
        trial would have gained before any was accepted, beyond rounding.
        """
        if not trials:
            return {}, {}
        least = resolution(standing.model, standing.totals)
        fixed = dict(zip(trials, standing.fixed_gains(list(trials.values())), strict=True))
        accepted, first, used, pending = {}, {}, set(), trials
        while pending:
            gains = standing.gains(list(pending.values()), [fixed[i] for i in pending])
            first = first or dict(zip(pending, (gains - least).tolist(), strict=True))
            gains[[not standing.has_room_for(trial) for trial in pending.values()]] = -np.inf
            if not np.max(gains) > least:
                break
            i = list(pending)[int(np.argmax(gains))]
            best = pending[i]
            accepted[i] = standing.accept(best, fixed[i])
            used.update(best.removed)
            pending = {i: trial for i, trial in pending.items() if trial.goes_with(best, used)}
        if standing.model.likelihood.adapts_prior:
            for i, trial in pending.items():
                free = used.isdisjoint(trial.removed) and standing.has_few_with(trial)
                gain = standing.accept_adapted(trial, least) if free else None
                if gain is not None:
                    accepted[i] = gain
                    used.update(trial.removed)
        return accepted, first

    def _proposal_of(self, trial):
        return next(p for p in self.proposals if p.kind == trial.kind)

    # ------------------------------------------------------------------ plans

    def _begin_with(self, trials):
        """Let these trials be under way, of which nothing was found yet."""
        self.trials, self._findings = trials, [{} for _ in trials]

    def _keep(self, is_kept):
        """Keep some trials, one truth value for each, with what was found of them."""
        self.trials = list(compress(self.trials, is_kept))
        self._findings = list(compress(self._findings, is_kept))

    def drop_trials(self):
        """Forget what is under way; memories of failures stay."""
        self._begin_with([])
        self._sampling = None

    def drop_samples(self):
        """Forget what was drawn in this lap: a model at rest holds no rows."""
        self._sampling = None

    def last_resort(self):
        """Let proposals try again what they have given up."""
        for proposal in self.proposals:
            proposal.last_resort()

    @property
    def meets(self):
        """Whether a proposal uses what other fits have found."""
        return any(proposal.meets for proposal in self.proposals_at_rest)

    def meet(self, others):
        """Let proposals know what other fits have found: a list of `StatBag`, see `Proposal.meet`."""
        for proposal in self.proposals:
            if proposal.meets:
                proposal.meet(others)

    def new_data(self, came=None):
        """Let proposals know that batches have come that were never seen before.

        ``came`` is the mass of all that have come so far; None leaves it as it is.
        """
        for proposal in self.proposals:
            proposal.n_seen = proposal.n_seen if came is None else came
            proposal.new_data()

    def prior_changed(self):
        """Let proposals know that empirical Bayes has moved the prior far."""
        for proposal in self.proposals:
            proposal.prior_changed()

    def plan(self, context_of, uids_before, accepted, *, first=False):
        """Trials for the next lap.

        Parameters
        ----------
        context_of : callable
            ``context_of(samples, uniform)`` -> `Context` of the model as it now stands.
        uids_before : ndarray
            Components during the lap that was just finished.
        accepted : list of Accepted
            Trials carried out at its end.
        first : bool
            The lap was the first one.

        Returns
        -------
        left_alone : dict
            Number of components, or groups of them, that failed before, by kind of proposal.
        """
        sampling, self._sampling, self._late = self._sampling, None, False
        if sampling is None:
            return {}
        context = _context_after(accepted, sampling, context_of, uids_before, first)
        overdue = {p.kind for p in self.proposals if p.overdue}
        self._begin_with(compatible(self._all_planned(context, bool(accepted))))
        self._late = any(trial.kind in overdue for trial in self.trials)
        counts = {p.kind: p.n_left_alone(context.totals) for p in self.proposals_at_rest}
        return {kind: n for kind, n in counts.items() if n}

    def _all_planned(self, context, has_changed):
        """Trials of all proposals, a list; ``has_changed`` if trials have just been accepted."""
        trials, most = [], context.max_components
        proposals = sorted(self.proposals, key=lambda p: not p.overdue)
        for i, proposal in enumerate(proposals):
            before = any(p.pending and not p.goes_last for p in proposals[:i])
            busy = trials or before or has_changed or context.settling
            # components on trial are there when the other trials are judged; these share what room is left
            on_trial = with_lap(trials)
            adopted = sum(len(t.created) for t in on_trial)
            context = context._replace(
                idle=not busy,
                others_pending=any(p.pending for p in proposals[i + 1 :]),
                max_components=max(most - adopted, len(context.totals.uids)),
                on_trial=bool(on_trial),
            )
            trials += planned(proposal, context)
        return trials


def _context_after(accepted, sampling, context_of, uids, first):
    """`Context` after accepted trials, with the samples of a lap over the components ``uids``."""
    samples, uniform, born = sampling.samples(), sampling.uniform(), 0
    context = context_of(samples, uniform)
    for change in accepted:
        born += len(change.created) - len(change.trial.removed)
        sampling.samples_after(change, context.model, samples)
        stay = uids[~np.isin(uids, change.trial.removed)]
        after = np.concatenate([stay, change.created]).astype(np.int64)
        uniform = sampling.uniform_after(change, context.model, uniform, uids, after)
        uids = after
    return context._replace(
        uniform=uniform.listed(uids, context.totals.uids),
        settling=born < 0 or (first and len(uids) > 1),
    )
