"""A learner's shadow: keeps the responsibilities that memoized inference is proud not to keep.

It sees each visit and each verdict, repeats on explicit responsibilities what the learner does on
statistics, and so knows at any time what the totals should be.
"""

from __future__ import annotations

import numpy as np

from sklearn_bnp.engine.statistics import StatBag
from tests.reference import mixtures

from .harness import features_of

# Rows with less of a split component than this may go to one successor unsplit, as `SplitTrial` says.
LEAST_MASS = 1e-6
# Kernels clear shares of less than the row's largest times this.
LEAST_SHARE = 1e-16


def cleared(resp):
    """Responsibilities without those that kernels clear."""
    return np.where(resp < LEAST_SHARE * resp.max(axis=1, keepdims=True), 0.0, resp)


class Shadow:
    """Follows ``learner`` from now on.

    Attributes
    ----------
    resp : dict
        Batch id -> responsibilities (n, K).
    uids : dict
        Batch id -> components of the columns.
    features, weight : dict
        Batch id -> s(x) of its rows, and their weights.
    values : list
        The learner's objective after each visit, and when another lap begins.
    gains : list
        Changes of the objective by each verdict that accepted something.
    accepted : list of str
        Kinds of proposals accepted, in order.
    slack, entropy_slack : float
        Mass that may lie with another successor than here, and the entropy that goes with it.
    """

    def __init__(self, learner):
        self.learner = learner
        self.resp, self.uids, self.features, self.weight = {}, {}, {}, {}
        self.values, self.gains, self.accepted = [], [], []
        self.slack, self.entropy_slack = 0.0, 0.0
        self._begin, self._visit = learner.begin_lap, learner.visit
        self._judge = learner.scheduler.judge
        self._end, self._put = learner.end_lap, learner.put_in_place
        learner.begin_lap, learner.visit = self.begin_lap, self.visit
        learner.end_lap = self.end_lap
        learner.scheduler.judge = self.judge
        self._verdict_on = learner.scheduler.verdict_on
        learner.scheduler.verdict_on, learner.put_in_place = self.verdict_on, self.put_in_place

    def begin_lap(self, *args, **kwargs):
        """Keep what a lap that is taken back falls back on; responsibilities are never changed."""
        self._before = self.learner.memo, dict(self.resp), dict(self.uids)
        if self.values:
            self.values.append(self.learner.lower_bound)
        self._begin(*args, **kwargs)

    def visit(self, batch, **kwargs):
        """A local step with the learner's present coefficients, or the batch's own shares."""
        self._note(batch)
        self._visit(batch, **kwargs)
        self.values.append(self.learner.lower_bound)

    def _note(self, batch):
        """Responsibilities of a batch under the present coefficients, or its own shares."""
        learner, name = self.learner, batch.batch_id
        likelihood = learner.model.likelihood
        z = likelihood.prepare(np.asarray(batch.x))
        features = features_of(likelihood, z)
        resp = batch.resp
        if resp is None:
            resp, _ = mixtures.responsibilities(
                features @ learner.coef.T, learner.settings.n_nonzero
            )
        self.features[name], self.resp[name] = features, resp
        self.uids[name] = learner.totals.uids.copy()
        self.weight[name] = np.ones(len(z)) if batch.weight is None else batch.weight

    def put_in_place(self, batches, gone):
        """The same rows in other batches, after a local step."""
        for batch in batches:
            self._note(batch)
        self._put(batches, gone)
        for held in (self.resp, self.uids, self.features, self.weight):
            for name in gone:
                del held[name]

    def verdict_on(self, model, totals, trials):
        """Batches take components along: their columns get other names."""
        verdict = self._verdict_on(model, totals, trials)
        for change in verdict.accepted:
            edit = change.outcome.edit
            for name in edit.rows:
                renamed = np.where(
                    self.uids[name] == edit.removed[0], edit.created[0], self.uids[name]
                )
                self.uids[name] = renamed
        return verdict

    def end_lap(self, *args, **kwargs):
        """A lap that is taken back leaves another memo, that of before."""
        memo = self.learner.memo
        lap = self._end(*args, **kwargs)
        if self.learner.memo is not memo:
            _, self.resp, self.uids = self._before
        return lap

    def judge(self, model, totals, memo):
        """Repeat accepted proposals on responsibilities; note what each verdict gains."""
        verdict, before, uids = self._judge(model, totals, memo), dict(self.resp), dict(self.uids)
        n_nonzero = self.learner.settings.n_nonzero
        for change in verdict.accepted:
            trial, edit = change.trial, change.outcome.edit
            assert len(set(trial.removed)) == len(trial.removed)
            for name in self.resp:
                if getattr(trial, "coef", None) is None:
                    self._replace(name, change, np.ones((len(self.resp[name]), 1)))
                elif name in edit.rows:
                    weights = self.features[name] @ trial.coef.T
                    places = None
                    if n_nonzero is not None:
                        members = np.flatnonzero(np.isin(uids[name], trial.removed))
                        shared = cleared(before[name])
                        places = mixtures.places(shared, members, n_nonzero)
                    shares, _ = mixtures.responsibilities(weights, places)
                    self._replace(name, change, shares)
            self.accepted.append(trial.kind)
        if verdict.accepted:
            self.gains.append(verdict.model.elbo(verdict.totals) - model.elbo(totals))
        return verdict

    def _replace(self, name, change, shares):
        """Columns of the removed give way to ``shares`` of their sum."""
        old = np.isin(self.uids[name], change.trial.removed)
        mass = self.resp[name][:, old].sum(axis=1, keepdims=True)
        small = mass[(mass > 0) & (mass <= LEAST_MASS)]
        weight = np.broadcast_to(self.weight[name][:, np.newaxis], mass.shape)
        weight = weight[(mass > 0) & (mass <= LEAST_MASS)]
        self.slack += weight @ small
        self.entropy_slack += weight @ (small * (np.log(shares.shape[1]) - np.log(small)))
        self.resp[name] = np.hstack([self.resp[name][:, ~old], mass * shares])
        self.uids[name] = np.concatenate([self.uids[name][~old], change.created])

    def bag(self, name):
        """`StatBag` of a batch as it should be."""
        resp, weight = self.resp[name], self.weight[name]
        s = (weight[:, np.newaxis] * resp).T @ self.features[name]
        return StatBag(self.uids[name], s, mixtures.entropies(resp, weight))

    def totals(self, names=None):
        """Sum of the batches ``names``, or of all, listed as the learner's components."""
        uids = self.learner.totals.uids
        out = StatBag.zeros(uids, self.learner.totals.s.shape[1])
        for name in self.resp if names is None else names:
            out = out.add(self.bag(name).aligned(uids))
        return out

    def assert_follows(self, bag, expected, *, entropy=True):
        """``bag`` is ``expected`` up to rounding, and up to the shares that may be unsplit."""
        size = sum(self.weight[name] @ np.abs(self.features[name]) for name in self.resp)
        largest = max(np.abs(f).max() for f in self.features.values())
        assert np.all(np.abs(bag.s - expected.s) <= 1e-9 * size + self.slack * largest)
        if entropy:
            slack = 1e-9 * size[-1] + self.entropy_slack
            assert np.all(np.abs(bag.entropy - expected.entropy) <= slack)
