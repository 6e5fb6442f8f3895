"""Plans trials, judges them by the exact objective of the whole data, and accepts the best.

Knows no kind of proposal: a trial is a set of components and the statistics of their successors.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from .proposal import AdoptTrial, UndoTrial

# Numbers that all samples of a lap hold together, within bounds: five times those of a batch.
_SAMPLE_BATCHES, _LEAST_NUMBERS, _MOST_NUMBERS = 5, 200_000, 6_000_000
# With this many components or fewer, a trial that fails is judged again under the prior that
# suits it: with few components the prior depends on each of them.
_ADAPT_BELOW = 12
_ADAPT_STEPS = 10
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


class Verdict(NamedTuple):
    """What a lap's trials came to.

    Attributes
    ----------
    model : Model
        With the prior under which the last trial was accepted.
    totals : StatBag
    accepted : list
        Trials, in the order of acceptance.
    tried, n_accepted : Counter
        By kind.
    partial : bool
        Whether an accepted trial had not observed every batch.
    undone : Counter
        Adoptions that were undone, by kind.
    """

    model: object
    totals: object
    accepted: list
    tried: Counter
    n_accepted: Counter
    partial: bool
    undone: Counter


class Scheduler:
    """Runs proposals on behalf of a learner.

    Parameters
    ----------
    proposals : list of Proposal
        Not shared with anybody: they keep memories.
    new_uids : UidCounter
    max_components : float
    rng : numpy.random.RandomState
    n_threads : int
    collector_type : type
        With the methods of `mixture.sampling.Collector`.
    """

    def __init__(self, proposals, new_uids, max_components, rng, n_threads, collector_type):
        self.proposals = proposals
        self._collector_type = collector_type
        self.new_uids, self.max_components, self.rng = new_uids, max_components, rng
        self.n_threads = n_threads
        self.trials = []
        self.collector = None
        self.sample_numbers, self.values_per_row = _LEAST_NUMBERS, 1
        self.mean_weight = None
        for proposal in proposals:
            proposal.reset()

    def fit_samples_to(self, n_rows, values_per_row):
        """Let samples hold some times the numbers of ``n_rows`` prepared rows, within bounds."""
        numbers = _SAMPLE_BATCHES * n_rows * values_per_row
        self.sample_numbers = int(np.clip(numbers, _LEAST_NUMBERS, _MOST_NUMBERS))
        self.values_per_row = values_per_row

    def heed_weights(self, batch):
        """Let collectors and proposals know if rows, of a batch or source to come, have weights."""
        if batch.mean_weight is not None:
            self.mean_weight = batch.mean_weight
            for proposal in self.proposals:
                proposal.weighted = True

    def observers(self, totals):
        """What looks at every block of the coming lap."""
        trials = [t for t in self.trials if not isinstance(t, AdoptTrial)]
        self.collector = None
        if self.proposals:
            room = self.sample_numbers // self.values_per_row
            wanted = self._collector_type.wanted(self.proposals, totals, room, self.mean_weight)
            self.collector = self._collector_type(wanted, totals, self.rng, self.mean_weight)
        observers = [t for t in trials if t.observer_type is None]
        for observer_type in dict.fromkeys(t.observer_type for t in trials if t.observer_type):
            watched = [t for t in trials if t.observer_type is observer_type]
            observers.append(observer_type(watched, self.n_threads))
        if self.collector is not None:
            observers.append(self.collector)
        return observers

    @property
    def has_plans(self):
        """Whether trials are under way, or something is left that was meant to be tried."""
        return bool(self.trials) or any(proposal.pending for proposal in self.proposals)

    @property
    def adoptions(self):
        """Trials whose components are in the model during this lap."""
        return [t for t in self.trials if isinstance(t, AdoptTrial)]

    def judge_adoptions(self, rose, mass):
        """Verdict on a lap with adoptions, after that on its other trials.

        Parameters
        ----------
        rose : bool
            Whether the objective of the whole data is higher than before the lap.
        mass : callable
            Count of a component before the lap.
        """
        adoptions = self.adoptions
        for trial in adoptions:
            self._proposal_of(trial).judged(trial, rose, sum(map(mass, trial.targets)))
        self.trials = []
        return adoptions

    def judge(self, model, totals, memo):
        """Accept every trial, best first, that raises the objective; each component changes once."""
        adoptions = self.adoptions
        trials = [_Judged.of(t, totals, memo) for t in self.trials if t not in adoptions]
        trials = [trial for trial in trials if trial.removed]  # of others nothing is left
        self.trials = adoptions
        tried = Counter(t.kind for t in trials if not (t.undoes or t.is_vacuous))
        state = _State(model, totals)
        renamed = [i for i, trial in enumerate(trials) if trial.renames]
        for i in renamed:
            state.accept(trials[i])
        others = [i for i, t in enumerate(trials) if not (t.renames or t.is_vacuous)]
        best = self._accept_best(state, [trials[i] for i in others])
        accepted = renamed + [others[i] for i in best]
        self._remember(trials, set(accepted), totals)
        chosen = [trials[i] for i in accepted]
        return Verdict(
            state.model, state.totals, [c.trial for c in chosen], tried,
            Counter(c.kind for c in chosen if not c.undoes), any(c.partial for c in chosen),
            Counter(c.kind for c in chosen if c.undoes),
        )  # fmt: skip

    @staticmethod
    def _accept_best(state, trials):
        """Accept the trials that pay; their indices, in the order of acceptance."""
        if not trials:
            return []
        least = resolution(state.model, state.totals)
        fixed = state.fixed_gains(trials)
        accepted, used, pending = [], set(), list(range(len(trials)))
        while pending:
            gains = state.gains([trials[i] for i in pending], [fixed[i] for i in pending])
            if not accepted:
                for i, gain in zip(pending, gains.tolist(), strict=True):
                    trials[i].trial.gain = gain - least
            if not np.max(gains) > least:
                break
            best = pending.pop(int(np.argmax(gains)))
            state.accept(trials[best])
            accepted.append(best)
            used.update(trials[best].removed)
            pending = [i for i in pending if trials[i].goes_with(trials[best], used)]
        if len(state.totals.uids) <= _ADAPT_BELOW and state.model.likelihood.adapts_prior:
            for i in pending:
                if used.isdisjoint(trials[i].removed) and state.accept_adapted(trials[i], least):
                    accepted.append(i)
                    used.update(trials[i].removed)
        return accepted

    def _proposal_of(self, trial):
        return next(p for p in self.proposals if p.kind == trial.kind)

    def _remember(self, trials, accepted, totals):
        for i, trial in enumerate(trials):
            mass = totals.n[totals.positions(trial.removed)]
            self._proposal_of(trial).judged(
                trial.trial, i in accepted, float(mass.sum() if trial.trial.unites else mass[0])
            )

    def drop_trials(self):
        """Forget what is under way; memories of failures stay."""
        self.trials = []
        self.collector = None

    def last_resort(self):
        for proposal in self.proposals:
            proposal.last_resort()

    def new_data(self):
        for proposal in self.proposals:
            proposal.new_data()

    def plan(self, context_of, uids_before, accepted, *, first=False):
        """Trials for the next lap.

        Parameters
        ----------
        context_of : callable
            ``context_of(samples, uniform)`` -> `Context` of the model as it now stands.
        uids_before : ndarray
            Components during the lap that was just finished.
        accepted : list
            Trials accepted at its end.
        first : bool
            The lap was the first one.
        """
        if self.collector is None:
            return
        collector, uids = self.collector, uids_before
        samples, uniform = collector.samples(), collector.uniform()
        self.collector = None
        born = 0
        for trial in accepted:
            born += len(trial.created) - len(trial.removed)
            collector.samples_after(trial, samples)
            after = np.concatenate([uids[~np.isin(uids, trial.removed)], trial.created])
            after = after.astype(np.int64)
            uniform, uids = collector.uniform_after(trial, uniform, uids, after), after
        context = context_of(samples, uniform)
        context = context._replace(
            uniform=uniform.listed(uids, context.totals.uids),
            settling=born < 0 or (first and len(uids) > 1),
        )
        trials = [trial for proposal in self.proposals for trial in proposal.plan(context)]
        adoptions = [t for t in trials if isinstance(t, AdoptTrial)]
        # a lap is judged as a whole: births and deletes that change the model take turns
        adoptions = [t for t in adoptions if t.kind == adoptions[0].kind]
        trials = [t for t in trials if not isinstance(t, AdoptTrial) or t in adoptions]
        leaving = {uid for t in adoptions if t.retires for uid in t.targets}
        self.trials = [
            t for t in trials if isinstance(t, UndoTrial) or leaving.isdisjoint(t.removed)
        ]

    def prior_changed(self):
        for proposal in self.proposals:
            proposal.prior_changed()


class _Judged(NamedTuple):
    """A trial with the statistics it would bring about, or None if it cannot be carried out."""

    trial: object
    removed: tuple  # components of the trial that have not gone anyway
    successors: object
    partial: bool

    @property
    def kind(self):
        return self.trial.kind

    @property
    def undoes(self):
        return isinstance(self.trial, UndoTrial)

    @property
    def is_vacuous(self):
        """Whether a union has nothing to unite: all but one of its components have gone anyway."""
        return self.trial.unites and len(self.removed) <= len(self.trial.created)

    @property
    def renames(self):
        """Whether a birth has come to nothing: what is left of it takes the target's name again."""
        return self.undoes and len(self.removed) == 1 and self.successors is not None

    def goes_with(self, other, used):
        """Whether it may be accepted after ``other``, when the components ``used`` have changed."""
        alone = self.trial.alone or other.trial.alone
        return not alone and used.isdisjoint(self.removed)

    @classmethod
    def of(cls, trial, totals, memo):
        partial = len(trial.seen) < len(memo)
        rest = memo.rest(trial.seen, np.asarray(trial.removed)) if partial else None
        present = set(totals.uids.tolist())
        removed = tuple(uid for uid in trial.removed if uid in present)
        return cls(trial, removed, trial.successors(totals, rest) if trial.seen else None, partial)


class _State:
    """The model and totals while trials are accepted one after the other."""

    def __init__(self, model, totals):
        self.model, self.totals = model, totals

    def fixed_gains(self, trials):
        """Changes of the data and entropy terms: no other trial accepted in the lap can alter them."""
        live = [t for t in trials if t.successors is not None]
        if not live:
            return np.full(len(trials), -np.inf)
        evidence = self.model.likelihood.evidence
        own = evidence(self.model.prior, self.totals.s) + self.totals.entropy
        new = evidence(self.model.prior, np.concatenate([t.successors.s for t in live]))
        out, start = [], 0
        for trial in trials:
            if trial.successors is None:
                out.append(-np.inf)
                continue
            end = start + len(trial.successors.s)
            old = self.totals.positions(trial.removed)
            out.append(new[start:end].sum() + trial.successors.entropy.sum() - own[old].sum())
            start = end
        return np.array(out)

    def gains(self, trials, fixed):
        """Exact gains: ``fixed`` plus the change of the allocation term as things stand."""
        gains = np.asarray(fixed, dtype=float)
        live = [i for i, trial in enumerate(trials) if trial.successors is not None]
        if live:
            replacements = [(trials[i].removed, trials[i].successors) for i in live]
            gains[live] = self.model.replacement_gains(self.totals, replacements, gains[live])
        return gains

    def accept(self, trial):
        self.totals = self.totals.replaced(trial.removed, trial.successors)
        self.totals, self.model = self.model.in_order(self.totals)

    def accept_adapted(self, trial, least):
        """Accept if the objective rises by ``least`` when the prior adapts, with and without the trial."""
        if trial.successors is None:
            return False
        totals, model = self.model.in_order(self.totals.replaced(trial.removed, trial.successors))
        model = model.with_adapted_prior(totals, _ADAPT_STEPS)
        here = self.model.with_adapted_prior(self.totals, _ADAPT_STEPS)
        before = max(here.elbo(self.totals), self.model.elbo(self.totals))
        if not model.elbo(totals) > before + least:
            return False
        self.model, self.totals = model, totals
        return True
