"""Turns of last resorts: a fit does not end before they have come, however busy others are."""

import numpy as np
import pytest

from sklearn_bnp import (
    HDPHMMVB,
    AdoptTrial,
    HDPTopicVB,
    Oversplit,
    StateOversplit,
    StateRestart,
    TopicBirth,
    TopicRestart,
)
from sklearn_bnp.engine.trials import Policy
from sklearn_bnp.hmm.restart import RestartTrial, forgetful

from .harness import quiet_fit
from .test_state_oversplit import oversplits, toys


@pytest.mark.parametrize(
    "resort", [StateOversplit(), Oversplit(), TopicRestart()], ids=lambda p: type(p).__name__
)
def test_a_turn_is_overdue_after_three_that_were_missed(resort):
    resort.reset()
    resort._miss()
    assert not resort.overdue
    resort.last_resort()
    for _ in range(3):
        assert not resort.overdue
        resort._miss()
        resort.last_resort()  # once more, while it is due
    assert resort.overdue
    assert resort._take() and not resort.overdue
    assert not resort._take()
    resort.last_resort()
    resort._miss()
    assert not resort.overdue


class Busy(StateRestart):
    """Trials without end that lose, each of which takes a lap, once nothing else is left to try."""

    busy = False

    def last_resort(self):
        self.busy = True

    def plan(self, context):
        return [RestartTrial(forgetful(context.totals, 0.5))] if self.busy else []


@pytest.mark.extended
def test_a_search_has_its_turn_among_trials_that_fail():
    rows, labels, _ = toys(seed=2)
    wrong = np.eye(2)[np.array([0, 1, 0, 1])[labels]]
    model = HDPHMMVB(init_params=wrong, proposals=(Busy(), StateOversplit()), random_state=0)
    quiet_fit(model, rows)
    assert any(trial.accepted for trial in oversplits(model))
    assert model.n_components_ == 4


class Eager(TopicRestart):
    """Goes before all others, and replaces all topics by themselves."""

    overdue = True

    def plan(self, context):
        if context.settling:
            return []
        uids, s = context.totals.uids.tolist(), context.totals.s.copy()
        created = context.new_uids(len(uids))
        return [AdoptTrial(self.kind, uids[0], created, s, retires=True, others=uids[1:])]


def test_births_give_way_as_a_whole():
    """Of several births, what would take back single ones is dropped with them."""
    rng = np.random.default_rng(0)
    topics = np.kron(np.eye(9), np.full(4, 0.25))
    X = np.array([rng.multinomial(40, rng.dirichlet(np.full(9, 0.2)) @ topics) for _ in range(400)])
    planned, make = [], TopicBirth.plan

    def noted(self, context):
        planned.append(make(self, context))
        return planned[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TopicBirth, "plan", noted)
        model = HDPTopicVB(3, proposals=(TopicBirth(), Eager()), max_iter=6, random_state=0)
        quiet_fit(model, X)
    assert any(trial.policy is Policy.UNDO for trials in planned for trial in trials)
    bounds = np.array([lap.lower_bound for lap in model.history_[1:]])
    assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))
