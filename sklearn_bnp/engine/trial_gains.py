"""Gains of trials, as the model stands while some of them are carried out one after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .trials import Policy

# With this many components or fewer, before or after it, a trial that fails is judged again under the
# prior that suits it: with few components the prior depends on each of them.
_ADAPT_BELOW = 12
_ADAPT_STEPS = 10


class Judged(NamedTuple):
    """A trial with the statistics it would bring about.

    Attributes
    ----------
    trial : Trial
    removed : tuple of int
        Components of the trial that have not gone anyway.
    outcome : Outcome or None
        None if it cannot be carried out.
    partial : bool
        Whether there are batches that it did not observe.
    """

    trial: object
    removed: tuple
    outcome: object
    partial: bool

    @property
    def kind(self):
        return self.trial.kind

    @property
    def successors(self):
        return None if self.outcome is None else self.outcome.successors

    @property
    def targets(self):
        """The trial's targets that are left; if none is, the first of its components that are."""
        left = tuple(uid for uid in self.trial.targets if uid in self.removed)
        return left or self.removed[:1]

    @property
    def undoes(self):
        return self.trial.policy is Policy.UNDO

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
        alone = Policy.ALONE in (self.trial.policy, other.trial.policy)
        return not alone and used.isdisjoint(self.removed)

    @classmethod
    def of(cls, trial, findings, totals, memo):
        """A trial after a lap, given what its probe found."""
        partial = len(findings) < len(memo)
        rest = memo.rest(findings, np.asarray(trial.removed)) if partial else None
        outcome = trial.outcome(totals, findings, rest) if findings else None
        return cls(trial, present(trial, totals), outcome, partial)

    @classmethod
    def known(cls, trial, totals):
        """A trial for which nothing has to be found."""
        return cls(trial, present(trial, totals), trial.outcome(totals, {}), False)


def present(trial, totals):
    """Components that a trial removes and that have not gone anyway, a tuple."""
    there = set(totals.uids.tolist())
    return tuple(uid for uid in trial.removed if uid in there)


class Standing:
    """The model and totals while trials are accepted one after the other, up to ``n_most`` components."""

    def __init__(self, model, totals, n_most):
        self.model, self.totals, self._n_most = model, totals, n_most

    def has_room_for(self, trial):
        """Whether there are not too many components after the trial, or not more than before it."""
        if trial.successors is None:
            return False
        more = len(trial.successors.uids) - len(trial.removed)
        return more <= 0 or len(self.totals.uids) + more <= self._n_most

    def lists(self, uids):
        """Whether all of these components are there."""
        return set(self.totals.uids.tolist()).issuperset(uids)

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

    def accept(self, trial, fixed=0.0):
        """Carry the trial out; the change of the objective in nats, of which ``fixed`` is known.

        It may be greater than the gain that was found before: parameters of the model are then at their best.
        """
        gone = self.totals.positions(trial.removed)
        entropy = trial.successors.entropy.sum() - self.totals.entropy[gone].sum()
        before = self._without_data
        self.totals, self.model = self._after(trial)
        return fixed - entropy + self._without_data - before

    def _after(self, trial):
        """The totals after the trial, and the model for them."""
        return self.model.after_replacement(self.totals, trial.removed, trial.successors)

    @property
    def _without_data(self):
        """The objective without the term of the data."""
        return self.model.elbo(self.totals, np.zeros(len(self.totals.uids)))

    def has_few_with(self, trial):
        """Whether there are few components, or would be after the trial: the prior depends on each."""
        change = len(trial.trial.created) - len(trial.removed)
        return len(self.totals.uids) + min(0, change) <= _ADAPT_BELOW

    def accept_adapted(self, trial, least):
        """Accept if the objective rises by ``least`` when the prior adapts, with and without the trial.

        Returns the change of the objective, or None if the trial is not accepted.
        """
        if not self.has_room_for(trial):
            return None
        totals, model = self._after(trial)
        suits = trial.trial.leaves_one and len(totals.uids) == 1
        model = model.alone(totals) if suits else model.with_adapted_prior(totals, _ADAPT_STEPS)
        here = self.model.with_adapted_prior(self.totals, _ADAPT_STEPS)
        now, after = self.model.elbo(self.totals), model.elbo(totals)
        if not after > max(here.elbo(self.totals), now) + least:
            return None
        self.model, self.totals = model, totals
        return after - now
