"""Laws of restarts from a softer posterior: what they start from, what they leave, what they find."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import HDPHMMVB, StateRestart
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.engine.state import ScheduleState
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.hmm.local import sequence_pass
from sklearn_bnp.hmm.merge import CoarseningTrial
from sklearn_bnp.hmm.restart import RestartTrial, forgetful
from sklearn_bnp.hmm.transitions import Transitions

from . import chain_harness as h

ALONE = ("birth", "merge", "delete")


def bag(rng, n_states=3, n_statistics=4):
    links = Transitions(tuple(range(n_states)), rng.uniform(0, 9, (n_states + 1, n_states)), 5.0)
    s = rng.uniform(1, 50, (n_states, n_statistics))
    return StatBag(np.arange(n_states), s, np.zeros(n_states), links)


@pytest.mark.parametrize("forgetting", [0.02, 0.5])
def test_rows_that_forget_their_states(forgetting):
    """Of a certain path they are those of softer responsibilities, under which rows are independent."""
    rows, states = h.toy(np.random.default_rng(0))
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"])
    likelihood, uids = learner.model.likelihood, np.arange(3)
    hard = np.eye(3)[np.concatenate(states)]

    def of(resp):
        return sequence_pass(batch._replace(resp=resp), likelihood, None, uids, ())

    totals, soft = of(hard), of((1 - forgetting) * hard + forgetting / 3)
    after, keep = totals.more(forgetful(totals, forgetting)), 1 - forgetting
    assert_allclose(keep * after.s, soft.s, atol=1e-9)
    assert_allclose(keep * after.extra.counts[0], soft.extra.counts[0])
    assert_allclose(keep**2 * after.extra.counts[1:], soft.extra.counts[1:])


def test_more_is_undone_by_less():
    rng = np.random.default_rng(1)
    totals = bag(rng)
    added = forgetful(totals, 0.1)
    assert (added.s > 0).all() and (added.extra.counts > 0).all()
    after = totals.more(added).less(added)
    assert_allclose(after.s, totals.s, rtol=1e-12)
    assert_allclose(after.extra.counts, totals.extra.counts, rtol=1e-12)
    assert after.extra.entropy == totals.extra.entropy


def test_more_lists_components_that_are_new():
    rng = np.random.default_rng(2)
    totals = bag(rng)
    rows = StatBag(
        np.array([1, 9]), np.ones((2, 4)), np.zeros(2), Transitions((1, 9), np.ones((3, 2)))
    )
    after = totals.more(rows)
    assert after.uids.tolist() == [0, 1, 2, 9]
    assert_allclose(after.s[[0, 2]], totals.s[[0, 2]])
    assert_allclose(after.s[[1, 3]], [totals.s[1] + 1, np.ones(4)])
    links = after.extra.listed([1, 9])
    assert_allclose(links[:, 1], 1.0)
    assert_allclose(links[:2, 0], totals.extra.listed([1])[:2, 0] + 1)


# ---------------------------------------------------------------------- laps


def walk(seed, n_states=10, n_features=6, length=500, stay=0.9):
    """Sequences of states that go on to few others."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n_states, n_features))
    links = (1 - stay) * rng.dirichlet(np.full(n_states, 0.3), n_states) + stay * np.eye(n_states)
    rows = []
    for _ in range(6):
        z = np.empty(length, dtype=int)
        z[0] = rng.integers(n_states)
        for t in range(1, length):
            z[t] = rng.choice(n_states, p=links[z[t - 1]])
        rows.append(means[z] + rng.normal(size=(length, n_features)))
    return rows


@pytest.fixture(scope="module", params=[1, 4], ids="batches-{}".format)
def stuck(request):
    """State of a learner that has come to rest after births, and the source, in some batches."""
    learner, batch = h.learner_of(walk(7), h.ALLOCATIONS["sticky"], proposals=ALONE)
    source = h.source(batch, request.param)
    learner.start(np.ones((1, learner.model.likelihood.n_statistics)))
    learner.fit(source, 300, 1e-6)
    return learner.state, source


def with_restarts(state):
    """A learner that goes on from a state with restarts alone."""
    restart = StateRestart()
    restart.reset()
    return Learner(replace(state, schedule=ScheduleState((restart,))))


@pytest.mark.extended
def test_a_restart_opens_transitions_again(stuck):
    """Laps that had come to rest gain nats with the same states, and the bound never falls."""
    state, source = stuck
    before, learner = state.lower_bound, with_restarts(state)
    for _ in range(12):
        learner.run_lap(source)
    laps = [lap for lap in learner.history if "restart" in lap.tried]
    assert laps and laps[0].accepted == {"restart": 1}
    bounds = [lap.lower_bound for lap in learner.history]
    assert np.diff(bounds[1:]).min() >= -1e-9 * abs(before)
    assert learner.lower_bound > before + 5.0
    assert set(learner.totals.uids) == set(state.totals.uids)


def test_a_restart_that_is_refused_leaves_no_trace(stuck, monkeypatch):
    state, source = stuck
    learner = with_restarts(state)
    learner.run_lap(source)
    assert [type(trial) for trial in learner.scheduler.trials] == [RestartTrial]
    before = learner.state
    monkeypatch.setattr(Learner, "_prolong", lambda self, source: None)
    monkeypatch.setattr("sklearn_bnp.engine.learner.resolution", lambda *args: np.inf)
    learner.run_lap(source)
    assert learner.history[-1].tried == {"restart": 1}
    assert learner.history[-1].accepted == {}
    after = learner.state
    order = before.totals.positions(after.totals.uids)
    assert np.array_equal(after.totals.s, before.totals.s[order])
    assert np.array_equal(
        after.totals.extra.listed(before.totals.uids.tolist()),
        before.totals.extra.listed(before.totals.uids.tolist()),
    )
    assert after.totals.extra.entropy == before.totals.extra.entropy
    assert after.lower_bound >= before.lower_bound - 1e-9 * abs(before.lower_bound)


def test_there_is_one_restart_for_the_same_states(stuck):
    """There is another only if the last one brought something."""
    state, source = stuck
    learner = with_restarts(state)
    for _ in range(40):
        learner.run_lap(source)
    gains = np.diff([lap.lower_bound for lap in learner.history])
    laps = [i for i, lap in enumerate(learner.history[1:]) if "restart" in lap.tried]
    assert len(laps) >= 2
    assert all(gains[first:last].sum() > 1.0 for first, last in pairwise(laps))
    assert not learner.scheduler.has_plans


def test_rules_of_passes():
    """A lap goes on as long as gains that shrink as they did may reach the objective from before."""
    trial = RestartTrial(None)
    assert trial.goes_on([-100.0], 0.0)
    assert trial.goes_on([-100.0, -50.0], 0.0)
    assert trial.goes_on([-100.0, -50.0, -25.0], 0.0)
    assert not trial.goes_on([-100.0, -50.0, -45.0], 0.0)
    assert not trial.goes_on([-100.0, -50.0, -50.0], 0.0)


# ---------------------------------------------------------------------- fits


@pytest.mark.parametrize("forgetting", [0.0, 1.0, -0.5])
def test_probabilities_that_are_none(forgetting):
    with pytest.raises(ValueError, match="forgetting"):
        HDPHMMVB(proposals=(StateRestart(forgetting),)).fit([np.eye(5)])


def test_other_trials_wait_while_a_lap_is_prolonged(monkeypatch):
    """Only the first pass of a lap observes what has nothing to do with the states on trial."""
    rows = walk(7, n_states=4, length=60)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"], proposals=ALONE)
    start, source = np.ones((2, learner.model.likelihood.n_statistics)), h.source(batch, 2)
    learner.start(start)
    learner.run_lap(source, propose=False)
    restart = RestartTrial(forgetful(learner.totals, 0.02))
    learner.scheduler.trials = [CoarseningTrial([((0, 1), 9)]), restart]
    seen, pass_over = [], Learner._pass_over

    def noted(learner, *args, **kwargs):
        seen.append([type(trial) for trial in learner.scheduler.trials])
        pass_over(learner, *args, **kwargs)

    monkeypatch.setattr(Learner, "_pass_over", noted)
    monkeypatch.setattr("sklearn_bnp.engine.learner.resolution", lambda *args: 1e9)
    monkeypatch.setattr(learner.scheduler, "_proposal_of", lambda trial: StateRestart())
    monkeypatch.setattr(StateRestart, "judged", lambda *args: None)
    learner.run_lap(source, propose=False)
    assert seen[0] == [CoarseningTrial, RestartTrial]
    assert len(seen) > 1 and all(types == [RestartTrial] for types in seen[1:])


@pytest.mark.extended
def test_restarts_are_a_default():
    rows = walk(5)
    fit = HDPHMMVB(random_state=0).fit(rows)
    alone = HDPHMMVB(random_state=0, proposals=ALONE).fit(rows)
    assert any("restart" in lap.tried for lap in fit.history_)
    assert not any("restart" in lap.tried for lap in alone.history_)
    assert np.diff(fit.lower_bounds_[1:]).min() >= -1e-9 * abs(fit.lower_bound_)
