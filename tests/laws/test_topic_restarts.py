"""Laws of restarts of topics: what they start from, what they leave alone, and what they find."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from sklearn_bnp import HDPTopicVB, Merge, TopicRestart
from sklearn_bnp.engine import merge as engine_merge
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.engine.state import ScheduleState
from sklearn_bnp.topics import restart as topic_restart
from tests.benchmarks.expect_problems import power_law_words

from .topic_harness import laps_without_proposals

ALONE = ("birth", "merge", "delete")


def short_texts(seed):
    return power_law_words(seed, n_topics=6, n_docs=600, V=300, n_tokens=12).train


@pytest.fixture(scope="module")
def stuck():
    """The state of a fit without restarts, in two batches, and its source."""
    X = short_texts(1)
    model = HDPTopicVB(proposals=ALONE, random_state=0).fit(X)
    return laps_without_proposals(model, X)


def with_restarts(state):
    """A learner that goes on from a state with a restart that is due."""
    restart = TopicRestart()
    restart.reset()
    restart.last_resort()
    return Learner(replace(state, schedule=ScheduleState((restart,))))


@pytest.mark.extended
def test_a_restart_replaces_all_topics_and_raises_the_objective(stuck):
    state, source = stuck
    learner = with_restarts(state)
    learner.run_lap(source)
    [trial] = learner.scheduler.trials
    assert set(trial.targets) == set(learner.totals.uids.tolist())
    np.testing.assert_allclose(trial.initial.s.sum(axis=0), learner.totals.s.sum(axis=0))
    before = learner.lower_bound
    learner.run_lap(source)
    assert learner.history[-1].accepted == {"restart": 1}
    assert learner.lower_bound > before + 50
    assert not set(learner.totals.uids) & set(trial.targets)


def test_concentrations_wait_until_topics_have_settled(stuck):
    """They are those from before the restart, and are learned again afterwards."""
    state, source = stuck
    assert not state.model.waits
    learner = with_restarts(state)
    learner.run_lap(source)
    prior, allocation = learner.model.prior, learner.model.allocation
    learner.run_lap(source)
    assert learner.history[-1].accepted == {"restart": 1}
    assert learner.model.waits
    assert learner.model.allocation == allocation
    assert learner.model.prior is prior
    learner.fit(source, 30, 1e-4)
    assert not learner.model.waits
    assert learner.model.allocation != allocation


def test_a_common_topic_that_was_refused_is_tried_with_less_concentration(stuck, monkeypatch):
    """Under the first concentration documents may mix more topics than suits them, and settle slowly."""
    state, source = stuck

    def parted(s, doc_prior):
        half = 0.5 * s.sum(axis=0, keepdims=True)
        return np.concatenate([0.5 * s, half])

    monkeypatch.setattr(topic_restart, "with_common_topic", parted)
    monkeypatch.setattr(topic_restart, "worth_of_all", lambda totals: 1e6)
    learner = with_restarts(state)
    [restart] = learner.scheduler.proposals
    restart._exhausted = restart._learns = True
    found = []
    for _ in range(4):
        learner.run_lap(source)
        assert not learner.history[-1].accepted
        found += [(trial, learner.totals.s) for trial in learner.scheduler.trials]
        [restart] = learner.scheduler.proposals
        restart.last_resort()
    first, second = [trial.concentrations["doc_concentration"] for trial, _ in found[:2]]
    assert first > second > learner.model.allocation.doc_concentration
    trial, s = found[0]
    s = parted(s, 1.0)
    np.testing.assert_allclose(trial.initial.s[-1], s[-1])
    odds = s[1:-1, :-1] / np.maximum(s[0, :-1], 1e-300)  # the others are sharper than they were
    some = np.all((s[:-1, :-1] > 1e-3), axis=0)
    now = trial.initial.s[1:-1, :-1][:, some] / trial.initial.s[0, :-1][some]
    np.testing.assert_allclose(now, odds[:, some] ** 2, rtol=1e-8)


def test_the_union_of_all_waits_for_the_restart(stuck, monkeypatch):
    """A restart may lift topics above the one that is better than all of them as they are."""
    monkeypatch.setattr(engine_merge, "_is_better_as_one", lambda model, totals: True)
    state, source = stuck
    merge, restart = Merge(), TopicRestart()
    for proposal in (merge, restart):
        proposal.reset()
        proposal.last_resort()
    learner = Learner(replace(state, schedule=ScheduleState((merge, restart))))
    planned = []
    while merge.pending and len(planned) < 20:
        learner.run_lap(source)
        planned.append(["all" if t.leaves_one else t.kind for t in learner.scheduler.trials])
        merge, _ = learner.scheduler.proposals
    with_all = [i for i, kinds in enumerate(planned) if "all" in kinds]
    with_restart = [i for i, kinds in enumerate(planned) if "restart" in kinds]
    assert min(with_restart) < min(with_all)


def test_a_restart_that_is_refused_leaves_no_trace(stuck, monkeypatch):
    state, source = stuck
    learner = with_restarts(state)
    learner.run_lap(source)
    before = learner.state
    monkeypatch.setattr("sklearn_bnp.engine.learner.resolution", lambda *args: np.inf)
    learner.run_lap(source)
    assert learner.history[-1].tried == {"restart": 1}
    assert learner.history[-1].accepted == {}
    after = learner.state
    assert not after.model.waits
    order = before.totals.positions(after.totals.uids)
    assert np.array_equal(after.totals.s, before.totals.s[order])
    assert after.lower_bound >= before.lower_bound - 1e-9 * abs(before.lower_bound)


def test_there_is_another_only_if_the_objective_has_risen(stuck):
    state, source = stuck
    learner = with_restarts(state)
    for _ in range(60):
        learner.run_lap(source)
        learner.scheduler.last_resort()
    laps = [i for i, lap in enumerate(learner.history[1:]) if "restart" in lap.tried]
    bounds = [learner.history[i].lower_bound for i in laps]
    assert len(laps) >= 2
    assert all(later > earlier + 1.0 for earlier, later in pairwise(bounds))


@pytest.mark.extended
def test_fits_of_short_texts_end_higher():
    X = short_texts(1)
    alone, both = (
        HDPTopicVB(proposals=proposals, random_state=0).fit(X)
        for proposals in (ALONE, (*ALONE, "restart"))
    )
    assert both.lower_bound_ > alone.lower_bound_ + 100
    assert both.n_components_ == 6


@pytest.mark.parametrize("blend", [0.0, 1.0, -0.5, "half"])
def test_shares_that_are_none(blend):
    with pytest.raises(ValueError, match="blend"):
        HDPTopicVB(proposals=(TopicRestart(blend),)).fit(np.eye(5))
