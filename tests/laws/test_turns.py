"""Turns of last resorts: a fit does not end before they have come, however busy others are."""

import numpy as np

from sklearn_bnp import HDPHMMVB, StateOversplit, StateRestart
from sklearn_bnp.engine.last_resort import Turn
from sklearn_bnp.hmm.restart import RestartTrial, forgetful

from .harness import quiet_fit
from .test_state_oversplit import oversplits, toys


def test_a_turn_is_overdue_after_three_that_were_missed():
    turn = Turn()
    turn.miss()
    assert not turn.due and not turn.overdue
    turn.call()
    for _ in range(3):
        assert not turn.overdue
        turn.miss()
        turn.call()  # once more, while it is due
    assert turn.overdue
    assert turn.taken() and not turn.due and not turn.overdue
    assert not turn.taken()
    turn.call()
    assert turn.due and not turn.overdue


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
