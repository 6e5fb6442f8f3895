"""history_ tells of each trial: what it would have changed, by how much, and why it was not made."""

from collections import Counter

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB, Proposal, UnionTrial
from sklearn_bnp.engine.scheduler import Scheduler
from sklearn_bnp.engine.state import Lap
from sklearn_bnp.engine.trial_records import TrialRecord, drop_old_trials
from sklearn_bnp.topics.fewer_topics import worth_of_all

from .harness import quiet_fit

WORDS = {
    "accepted", "refused", "superseded", "no room", "unknown", "given up", "undone", "taken back",
}  # fmt: skip


def rows(rng):
    return rng.normal(size=(90, 2)) + 6.0 * rng.integers(2, size=(90, 1))


def counts(rng):
    topics = np.kron(np.eye(2), np.full(4, 0.25))
    return rng.multinomial(30, topics[rng.integers(2, size=40)])


def sequences(rng):
    return [rng.normal(np.repeat([0.0, 8.0, 0.0], 15))[:, np.newaxis] for _ in range(2)]


FITS = {
    "mixture": (DPMixtureVB(6, n_batches=2, random_state=0), rows),
    "topics": (HDPTopicVB(5, n_batches=2, random_state=0, max_iter=20), counts),
    "states": (HDPHMMVB(5, n_batches=2, random_state=0, max_iter=20), sequences),
}


@pytest.fixture(params=FITS)
def fitted(request, monkeypatch):
    """A fitted model, and for each verdict its records and the change of the objective."""
    found, judge = [], Scheduler.judge

    def judged(self, model, totals, memo):
        verdict = judge(self, model, totals, memo)
        if not verdict.targets_undone:
            change = verdict.model.elbo(verdict.totals) - model.elbo(totals)
            found.append((verdict.records, change))
        return verdict

    monkeypatch.setattr(Scheduler, "judge", judged)
    estimator, data = FITS[request.param]
    return quiet_fit(estimator, data(np.random.default_rng(0))), found


def test_gains_of_accepted_trials_are_the_change_of_the_objective(fitted):
    model, found = fitted
    assert sum(record.accepted for records, _ in found for record in records) > 0
    for records, change in found:
        total = sum(record.gain for record in records if record.accepted)
        assert total == pytest.approx(change, abs=1e-9 * abs(model.lower_bound_))


def test_records_are_counted(fitted):
    model, _ = fitted
    for lap in model.history_:
        assert lap.tried == Counter(record.kind for record in lap.trials)
        assert lap.accepted == Counter(record.kind for record in lap.trials if record.accepted)
        for record in lap.trials:
            assert record.verdict in WORDS
            assert record.components and all(type(uid) is int for uid in record.components)
            assert bool(record.created) == record.accepted or record.kind == "restart"
            if record.verdict == "refused":
                of_everything = record.kind == "resettle"
                assert record.gain <= (
                    worth_of_all(model._learner_.totals) if of_everything else 0.0
                )
    names = [uid for lap in model.history_ for record in lap.trials for uid in record.created]
    assert set(names) >= set(model.component_ids_.tolist()) - set(range(6))


class JoinAll(Proposal):
    """Plans the same unions of components as often as it may: of 0 with 1, and of 0 with all."""

    kind = "join"

    def reset(self):
        """Nothing is remembered."""

    def plan(self, context):
        first, *others = sorted(context.totals.uids.tolist())
        if not others:
            return []
        unions = (first, others[0]), (first, *others)
        return [UnionTrial(self.kind, uids, context.new_uids(1), estimate=1.5) for uids in unions]


def test_why_trials_were_not_made():
    rng = np.random.default_rng(0)
    model = quiet_fit(
        DPMixtureVB(3, proposals=(JoinAll(),), random_state=0, max_iter=3), rng.normal(size=(60, 1))
    )
    trials = model.history_[1].trials
    assert Counter(record.verdict for record in trials) == {"accepted": 1, "superseded": 1}
    assert all(record.estimate == 1.5 and record.gain > 0 for record in trials)
    apart = rows(rng) * [1.0, 50.0]
    model = quiet_fit(DPMixtureVB(2, proposals=(JoinAll(),), random_state=0, max_iter=3), apart)
    [refused, _] = model.history_[1].trials
    assert refused.verdict == "refused" and refused.gain < -10 and refused.created == ()


def test_what_failed_before_is_left_alone():
    X = rows(np.random.default_rng(0))
    model = quiet_fit(DPMixtureVB(proposals=("birth",), random_state=0), X)
    assert model.history_[-2].left_alone == {"birth": model.n_components_}


def test_histories_keep_a_limited_number_of_trials():
    record = TrialRecord("birth", (0,), "refused")
    history = [Lap(i, 1, 0.0, 0.0, 0.0, {"birth": 300}, {}, (record,) * 300) for i in range(40)]
    drop_old_trials(history)
    assert sum(len(lap.trials) for lap in history) == 2000
    assert [len(lap.trials) for lap in history[-7:]] == [200] + 6 * [300]
    assert all(lap.tried == {"birth": 300} for lap in history)


def test_records_that_come_after_a_lap_count_too():
    """Most laps of a stream have no records, some have them at once, and some after they have ended."""
    record, history = TrialRecord("birth", (0,), "refused"), []
    for i in range(60):
        n = 300 if i % 5 == 0 else 0
        history.append(Lap(i, 1, 0.0, 0.0, 0.0, {}, {}, (record,) * n))
        drop_old_trials(history)
        if i % 5 == 2:
            history[-1] = history[-1].with_trials([record] * 100)
        assert sum(len(lap.trials) for lap in history) <= 2100
    assert [len(lap.trials) for lap in history if lap.trials] == [300, 100] * 5
