"""When laps have gained so little that a fit may end."""

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.engine.state import Lap
from sklearn_bnp.engine.stopping import laps_without, least_gain
from sklearn_bnp.estimator.fitting import Fitting
from tests.laws.harness import quiet_fit


def history(bounds, first=1):
    return [Lap(first + i, 3, bound, 0.0, 0.0, {}, {}) for i, bound in enumerate(bounds)]


@pytest.mark.parametrize(
    ("n", "expected"), [(1000, 0.05), (10_000, 0.1), (100_000, 10.0), (10**6, 1000.0)]
)
def test_small_data_end_by_nats_and_large_data_by_row(n, expected):
    assert least_gain(1e-3, n) == pytest.approx(expected)


def test_laps_count_from_the_last_chance_as_long_as_they_gain_little():
    laps = history([-90.0, -50.0, -49.5, -49.25, -49.0])
    assert laps_without(2.0, laps, last_chance=2) == 3
    assert laps_without(1.0, laps, last_chance=2) == 0  # they gained as much
    assert laps_without(2.0, laps, last_chance=1) == 0  # the lap after it gained more
    assert laps_without(2.0, laps, last_chance=5) == 0  # it has just been


def test_without_a_last_chance_none_counts():
    assert laps_without(2.0, history([-50.0, -50.0, -50.0]), last_chance=0) == 0


def test_a_stream_may_have_forgotten_the_lap_of_the_last_chance():
    assert laps_without(2.0, history([-50.0, -50.0], first=40), last_chance=10) == 0


def of_one_kind(name):
    """A model without proposals and data whose updates gain for many laps: components that overlap."""
    rng = np.random.default_rng(0)
    if name == "topics":
        words = rng.dirichlet(np.full(30, 0.5), size=3)
        X = np.array([rng.multinomial(40, rng.dirichlet(np.ones(3)) @ words) for _ in range(300)])
        return HDPTopicVB(3, proposals=None, random_state=0), X
    X = np.concatenate([rng.normal(size=(700, 2)), rng.normal(size=(300, 2)) + 1.2])
    estimator = DPMixtureVB if name == "mixture" else HDPHMMVB
    return estimator(2, proposals=None, random_state=0), X[rng.permutation(1000)]


@pytest.mark.parametrize("name", ["mixture", "states", "topics"])
def test_a_lap_that_was_taken_back_does_not_end_a_fit(name, monkeypatch):
    """It gains nothing, whatever updates still gain: laps without trials follow."""
    model, X = of_one_kind(name)
    run_lap, n_undone = Learner.run_lap, 0

    def undone(learner, *args, **kwargs):
        """Laps are like those with components on trial that do not help, until there are no more trials."""
        nonlocal n_undone
        state = learner.state
        lap = run_lap(learner, *args, **kwargs)
        if lap.lap > 1 and not state.finishing:
            learner.totals = state.totals
            learner.memo = state.memo.copy()
            learner.model = state.model
            learner.history[-1] = lap._replace(lower_bound=state.lower_bound)
            learner.was_taken_back, n_undone = True, n_undone + 1
        return learner.history[-1]

    bound = quiet_fit(clone(model), X).lower_bound_
    monkeypatch.setattr(Learner, "run_lap", undone)
    model = quiet_fit(clone(model).set_params(max_iter=300), X)
    assert n_undone > 0
    assert model.lower_bound_ > bound - 1.0


@pytest.mark.extended
def test_the_best_fit_searches_on_when_fits_meet(monkeypatch):
    """Even if laps without trials were its last ones: what the others found is tried in the next laps."""
    model, X = of_one_kind("states")
    model = clone(model).set_params(n_init=2, proposals=HDPHMMVB().proposals)
    run_lap, after_meeting, met, proposed = Learner.run_lap, Fitting._after_meeting, [], []

    def noted(learner, *args, propose=True, **kwargs):
        if met:
            proposed.append(propose)
        learner.finishing = learner.finishing or not met  # as if a last lap had been taken back
        return run_lap(learner, *args, propose=propose, **kwargs)

    def meets(*args, **kwargs):
        met.append(True)
        return after_meeting(*args, **kwargs)

    monkeypatch.setattr(Learner, "run_lap", noted)
    monkeypatch.setattr(Fitting, "_after_meeting", meets)
    quiet_fit(model, X)
    assert met == [True]
    assert proposed[0]
