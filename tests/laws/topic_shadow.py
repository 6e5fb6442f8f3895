"""A shadow that keeps what learners of topic models do not keep."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sklearn_bnp.engine.probe import Each, Observer, Probe
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.engine.task import LocalResult
from sklearn_bnp.engine.trials import Policy

from .harness import on_trial
from .topic_harness import bag_of, objective_by_hand, weight_of


class _Recorder(Observer):
    """Keeps all blocks of a batch: its finding."""

    def __init__(self):
        self.blocks = []

    def observe(self, block):
        assert block.first == sum(len(b.docs) for b in self.blocks)
        self.blocks.append(block)

    def finding(self, statistics):
        return self.blocks


class _RecorderProbe(Probe):
    """All blocks of a batch, to be kept."""

    @classmethod
    def observer(cls, probes, task):
        return Each(_Recorder() for _ in probes)


class _OverhearingProbe(Probe):
    """A delete's probe, whose restricted local steps are noted: a list is given to ``note``."""

    def __init__(self, probe, note):
        self.probe, self.note = probe, note

    @classmethod
    def observer(cls, probes, task):
        return Each(_Overhearing(probe, task) for probe in probes)

    def added(self, first, second):
        return self.probe.added(first, second)


class _Overhearing(Observer):
    """Makes the restricted local steps, and notes the responsibilities that they find."""

    def __init__(self, overhearing, task):
        probe, self._note = overhearing.probe, overhearing.note
        self._own = type(probe).observer([probe], task)
        self._resp, self._found = task.model.likelihood.resp, []

    def observe(self, block):
        self._resp.clear()
        self._own.observe(block)
        self._found.extend(self._resp)

    def finding(self, statistics):
        self._note(self._found)
        return self._own.finish(statistics)[0]


class TopicShadow:
    """Follows the learner of a `Followed` from now on; keeps all responsibilities.

    What the local step finds is taken from the learner, as blocks show it; every sum, and every
    replacement of components, is made here anew.

    Attributes
    ----------
    resp, uids : dict
        Batch id -> responsibilities (n, K), and components of their columns.
    lap_values, step_values : list
        The objective after each lap, and pairs around each global step of a visit.
    end_values : list
        Pairs of it around the end of each lap without adoptions.
    verdicts : list
        Pairs around each trial accepted, settled.
    unsettled : list
        Nats by which the totals that trials were judged against are short of being settled.
    accepted : list of str
        Kinds of trials carried out.
    retired : list
        Uids that adoptions put out of use, lap by lap.
    n_retired : int
        Over all laps.
    taken_back : int
        Laps.
    """

    def __init__(self, followed):
        self.followed, self.learner = followed, followed.learner
        self.resp, self.uids, self.lap_values = {}, {}, []
        self.step_values, self.end_values, self.verdicts, self.accepted = [], [], [], []
        self.unsettled = []
        self.retired, self.n_retired, self.taken_back = [], 0, 0
        self.batches = {b.batch_id: b for b in followed.source.batches()}
        learner = self.learner
        self._begin, self._visit, self._end = learner.begin_lap, learner.visit, learner.end_lap
        self._judge, self._worked_on = learner.scheduler.judge, learner.worked_on
        learner.begin_lap, learner.visit = self.begin_lap, self.visit
        learner.worked_on = self.worked_on
        learner.end_lap, learner.scheduler.judge = self.end_lap, self.judge

    # ------------------------------------------------------------------ what the learner does

    def begin_lap(self, *args, **kwargs):
        learner = self.learner
        self._before = learner.memo, dict(self.resp), dict(self.uids)
        self._objective_before = learner.lower_bound if len(learner.memo) else None
        self._begin(*args, **kwargs)
        self._visiting = None
        self._deletes = {}
        for trial in learner.scheduler.trials:
            if trial.kind == "delete":
                self._overhear(trial)

    def _overhear(self, trial):
        """Note what a delete's restricted local steps find, batch by batch."""

        def note(found):
            self._deletes[id(trial), self._visiting] = found

        trial.probe = _OverhearingProbe(trial.probe, note)

    def worked_on(self, batch, number=0, probes=(), old=None, lap=0):
        """The learner's local step of a batch, whose blocks are kept."""
        result = self._worked_on(batch, number, (*probes, _RecorderProbe()), old, lap)
        *findings, self._blocks = result.findings
        return LocalResult(result.statistics, tuple(findings))

    def visit(self, batch, **kwargs):
        learner = self.learner
        uids, model, self._visiting = learner.totals.uids.copy(), learner.model, batch.batch_id
        self._visit(batch, **kwargs)
        blocks = self._blocks
        assert all(np.array_equal(block.uids, uids) for block in blocks)
        self.resp[batch.batch_id] = np.concatenate([block.resp for block in blocks]).astype(float)
        self.uids[batch.batch_id] = uids
        if model.uids == learner.model.uids and model.sticks is not None:
            self.step_values.append((model.elbo(learner.totals), learner.lower_bound))

    def end_lap(self, *args, **kwargs):
        learner = self.learner
        memo, adopting = learner.memo, learner._before is not None
        self.retired = [t.target for t in on_trial(learner) if t.retires and adopting]
        before = learner.lower_bound
        lap = self._end(*args, **kwargs)
        if learner.memo is not memo:
            _, self.resp, self.uids = self._before
            self.retired, self.taken_back = [], self.taken_back + 1
        self.n_retired += len(self.retired)
        self.lap_values.append(lap.lower_bound)
        if not adopting:
            self.end_values.append((before, lap.lower_bound))
        return lap

    def judge(self, model, totals, memo):
        if len(self.learner.scheduler.trials) > len(on_trial(self.learner)):
            self.unsettled.append(self.settled(model, totals) - model.elbo(totals))
        verdict = self._judge(model, totals, memo)
        values = [self.settled(model, totals)] if verdict.accepted else []
        for change in verdict.accepted:
            trial = change.trial
            totals = totals.replaced(trial.removed, self.implied(change))
            values.append(self.settled(model, totals))
            for name in self.resp:
                columns = self.successors(name, change)
                if columns is not None:
                    old = np.isin(self.uids[name], trial.removed)
                    self.resp[name] = np.hstack([self.resp[name][:, ~old], columns])
                    self.uids[name] = np.concatenate([self.uids[name][~old], change.created])
            self.accepted.append("undo" if trial.policy is Policy.UNDO else trial.kind)
        self.verdicts += pairwise(values)
        return verdict

    @staticmethod
    def settled(model, totals):
        """The objective at the best sticks: of the order given, of that by mass, and by weight."""
        weights = model.allocation.weights(model.updated(totals).sticks)
        orders = np.arange(len(weights)), np.argsort(-totals.n), np.argsort(-weights)
        ordered = [totals.take(order) for order in orders]
        return max(model.updated(other).elbo(other) for other in ordered)

    # ------------------------------------------------------------------ replacements

    def successors(self, name, change):
        """Responsibilities (n, J) of a trial's created components, None if it did not see the batch.

        A union holds its members'. In documents that use a delete's target, what they have of it and
        of the absorbers is shared out by the local step that was overheard; others keep what they
        have.
        """
        batch, uids, resp = self.batches[name], self.uids[name].tolist(), self.resp[name]
        trial = change.trial
        if trial.kind != "delete":
            return resp[:, np.isin(uids, trial.removed)].sum(axis=1, keepdims=True)
        if name not in change.outcome.edit.rows:
            return None
        absorbers = [uid for uid in trial.removed if uid != trial.target]
        new = resp[:, [uids.index(uid) for uid in absorbers]].copy()
        n_docs = len(batch.indptr) - 1
        doc = np.repeat(np.arange(n_docs), np.diff(batch.indptr))
        target = weight_of(batch) * resp[:, uids.index(trial.target)]
        using = np.bincount(doc, target, minlength=n_docs) > 0
        found = self._deletes.get((id(trial), name), [])
        if found:
            new[using[doc]] = np.concatenate(found)
        return new

    def implied(self, change):
        """`StatBag` of a trial's created components over all batches that it saw."""
        created = np.array(change.created)
        out = StatBag.zeros(created, self.learner.totals.s.shape[1])
        for name, batch in self.batches.items():
            columns = self.successors(name, change) if name in self.resp else None
            if columns is not None:
                out = out.add(bag_of(self.followed, batch, columns, created))
        return out

    # ------------------------------------------------------------------ what should be

    def bag(self, name):
        """`StatBag` of a batch from its responsibilities."""
        return bag_of(self.followed, self.batches[name], self.resp[name], self.uids[name])

    def totals(self, names=None):
        """Sum of the batches ``names``, or of all, as the learner's components."""
        uids = self.learner.totals.uids
        out = StatBag.zeros(uids, self.learner.totals.s.shape[1])
        for name in self.resp if names is None else names:
            out = out.add(self.bag(name).aligned(uids))
        return out

    def all_resp(self):
        """Responsibilities (n, K) of the corpus, as the learner's components, in order."""
        uids = self.learner.totals.uids.tolist()
        out = []
        for name in range(len(self.followed.source)):
            here = self.uids[name].tolist()
            resp = np.zeros((len(self.resp[name]), len(uids)))
            for k, uid in enumerate(uids):
                if uid in here:
                    resp[:, k] = self.resp[name][:, here.index(uid)]
            out.append(resp)
        return np.concatenate(out)

    def objective(self):
        """By hand, from all responsibilities, at the learner's sticks."""
        return objective_by_hand(self.followed, self.all_resp(), self.learner.totals.uids)
