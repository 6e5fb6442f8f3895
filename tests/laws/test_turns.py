"""Turns of last resorts: a fit does not end before they have come, however busy others are."""

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, Oversplit, StateOversplit, StateRestart, TopicRestart
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


def test_a_search_has_its_turn_among_trials_that_fail():
    rows, labels, _ = toys(seed=2)
    wrong = np.eye(2)[np.array([0, 1, 0, 1])[labels]]
    model = HDPHMMVB(init_params=wrong, proposals=(Busy(), StateOversplit()), random_state=0)
    quiet_fit(model, rows)
    assert any(trial.accepted for trial in oversplits(model))
    assert model.n_components_ == 4
