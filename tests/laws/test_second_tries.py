"""Laws of second tries: merges and deletes of states that are judged after several laps."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import HDPHMMVB, StateDelete, StateMerge
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.engine.state import ScheduleState
from sklearn_bnp.engine.trials import AdoptTrial, Policy
from tests.estimators import assert_same_state, public_state

from . import chain_harness as h

KINDS = [StateMerge, StateDelete]


def walks(seed, n_states=5, n_features=3, n_sequences=3, length=100):
    """Sequences of autoregressive states, which have few rows for their parameters."""
    rng = np.random.default_rng(seed)
    turns = [
        0.45 * np.linalg.qr(rng.normal(size=(n_features, n_features)))[0] for _ in range(n_states)
    ]
    drift = 0.3 * rng.normal(size=(n_states, n_features))
    spread = np.exp(rng.uniform(-1.5, 0, size=(n_states, n_features)))
    out = []
    for _ in range(n_sequences):
        z, x = 0, [rng.normal(size=n_features)]
        for _ in range(length):
            if rng.random() > 0.95:
                z = rng.integers(n_states)
            x.append(
                turns[z] @ x[-1] + 0.45 * x[-1] + drift[z] + spread[z] * rng.normal(size=n_features)
            )
        out.append(np.array(x))
    return out


def fitted(rows, kind, max_second_tries, **parameters):
    """A fit from 15 autoregressive states with merges and deletes, of which one kind has second tries."""
    others = (k(max_second_tries=max_second_tries if k is kind else 0) for k in KINDS)
    return HDPHMMVB(
        15, observation="autoregressive", proposals=tuple(others), random_state=0, **parameters
    ).fit(rows)


@pytest.mark.quarter
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_batches", [1, 3])
def test_second_tries_find_better_optima_with_fewer_states(kind, n_batches):
    rows = walks(9)
    once = fitted(rows, kind, 0, n_batches=n_batches)
    again = fitted(rows, kind, 3, n_batches=n_batches)
    assert again.lower_bound_ > once.lower_bound_ + 1.0
    assert again.n_components_ < once.n_components_
    assert np.diff(again.lower_bounds_[1:]).min() >= -1e-9 * abs(again.lower_bound_)


@pytest.fixture(scope="module", params=[1, 4], ids="batches-{}".format)
def resting(request):
    """State of a learner of five states that has come to rest, and the source, in some batches."""
    rng = np.random.default_rng(3)
    rows, states = h.toy(rng, n_states=5, lengths=(60,) * 6, spread=2.0)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"])
    source = h.source(batch._replace(resp=np.eye(5)[np.concatenate(states)]), request.param)
    learner.start(np.ones((5, learner.model.likelihood.n_statistics)))
    learner.fit(source, 100, 1e-6)
    source = source.without_responsibilities()
    return learner.state, source


def going_on(state, kind, **parameters):
    """A learner that goes on from a state with one proposal alone, at its last resort."""
    proposal = kind(**parameters)
    proposal.reset()
    learner = Learner(replace(state, schedule=ScheduleState((proposal,))))
    [proposal] = learner.scheduler.proposals
    return learner, proposal


def until_second_try(learner, source, n_laps=10):
    """Laps until a second try is planned; its trial."""
    for _ in range(n_laps):
        learner.run_lap(source)
        if any(t.policy is Policy.WITH_LAP for t in learner.scheduler.trials):
            [trial] = learner.scheduler.trials
            return trial
    raise AssertionError("no second try was planned")


def losing(monkeypatch, kind):
    """Let every first try fail, and each of them be promising enough for a second one."""
    monkeypatch.setattr("sklearn_bnp.hmm.second_try._PRICE", 1e12)
    # no verdict is above this
    monkeypatch.setattr("sklearn_bnp.engine.scheduler.resolution", lambda model, totals: 1e9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_trial_is_a_lap_without_its_targets(kind, resting, monkeypatch):
    """Targets have no rows at its end, and a union begins with the statistics of both."""
    losing(monkeypatch, kind)
    state, source = resting
    learner, proposal = going_on(state, kind)
    proposal.last_resort()
    trial = until_second_try(learner, source)
    assert isinstance(trial, AdoptTrial) and trial.retires and trial.kind == kind.kind
    totals = learner.totals
    gone = list(trial.targets)
    if kind is StateMerge:
        assert len(gone) == 2 and len(trial.created) == 1
        both = totals.positions(gone)
        assert_allclose(trial.initial.s[0], totals.s[both].sum(axis=0))
        stays = totals.extra.listed(gone)[1:].sum()
        assert_allclose(trial.initial.extra.counts, [[0.0], [stays]])
    else:
        assert len(gone) == 1 and len(trial.created) == 0 and len(trial.initial.s) == 0
    monkeypatch.setattr("sklearn_bnp.engine.learner.resolution", lambda *args: -1e9)
    learner.run_lap(source)
    assert learner.history[-1].accepted == {kind.kind: 1}
    assert set(learner.totals.uids) == set(totals.uids) - set(gone) | set(trial.created)
    assert_allclose(learner.totals.n.sum(), totals.n.sum())


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_is_refused_leaves_no_trace(kind, resting, monkeypatch):
    """Statistics are the same to the last bit, none is made again, and there are no more than allowed."""
    losing(monkeypatch, kind)
    state, source = resting
    learner, proposal = going_on(state, kind)
    proposal.last_resort()
    monkeypatch.setattr("sklearn_bnp.engine.learner.resolution", lambda *args: np.inf)
    tried = []
    for _ in range(proposal.max_second_tries):
        trial = until_second_try(learner, source)
        before = learner.state
        learner.run_lap(source)
        assert learner.history[-1].accepted == {}
        after = learner.state
        order = before.totals.positions(after.totals.uids)
        assert np.array_equal(after.totals.s, before.totals.s[order])
        names = before.totals.uids.tolist()
        assert np.array_equal(after.totals.extra.listed(names), before.totals.extra.listed(names))
        assert after.totals.extra.entropy == before.totals.extra.entropy
        assert after.lower_bound >= before.lower_bound - 1e-9 * abs(before.lower_bound)
        tried.append(trial.targets)
    assert len(set(tried)) == len(tried)
    with pytest.raises(AssertionError, match="no second try"):
        until_second_try(learner, source)
    assert not learner.scheduler.has_plans


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_none_where_rows_are_gone(kind, resting, monkeypatch):
    """A lap cannot go over batches that nobody will see again; the fit does not wait for it."""
    losing(monkeypatch, kind)
    state, source = resting
    learner, proposal = going_on(state, kind)
    learner.forget_batches()
    proposal.last_resort()
    batch = source.batch(0)._replace(batch_id="new")
    learner.begin_lap()
    learner.visit(batch)
    learner.end_lap()
    assert not proposal.pending
    assert all(t.policy is not Policy.WITH_LAP for t in learner.scheduler.trials)


@pytest.mark.parametrize("kind", KINDS)
def test_changes_that_lose_much_are_not_made_again(kind):
    """States that are far apart cost no lap."""
    rows, _ = h.toy(np.random.default_rng(0), spread=12.0)
    model = HDPHMMVB(3, random_state=0, proposals=("birth", kind(max_second_tries=3))).fit(rows)
    once = HDPHMMVB(3, random_state=0, proposals=("birth", kind(max_second_tries=0))).fit(rows)
    assert model.n_components_ == 3 and model.lower_bounds_ == once.lower_bounds_


def test_fits_are_the_same_again_and_travel():
    rows = walks(9)
    fit = fitted(rows, StateMerge, 3)
    assert_same_state(public_state(fitted(rows, StateMerge, 3, n_jobs=2)), public_state(fit))
    copy = pickle.loads(pickle.dumps(fit))
    assert_same_state(public_state(copy), public_state(fit))


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_is_checked(kind):
    with pytest.raises(ValueError, match="max_second_tries"):
        HDPHMMVB(proposals=(kind(max_second_tries=-1),)).fit([np.eye(5)])


def test_no_more_states_than_allowed():
    """States that left during a lap make no room for births after it."""
    model = HDPHMMVB(6, observation="autoregressive", max_components=6, random_state=0)
    model.fit(walks(45))
    assert max(lap.n_components for lap in model.history_) == 6
    assert sum(lap.tried.get("birth", 0) for lap in model.history_) > 2
