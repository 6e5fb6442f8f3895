"""States that differ in what follows them: contexts of rows, and fits that begin with one state."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import HDPHMMVB, StateOversplit
from sklearn_bnp.hmm import contexts
from sklearn_bnp.hmm.contexts import REACHES, Contexts
from sklearn_bnp.hmm.sampling import StateSample
from tests.benchmarks.symbol_sequences import problems

from . import chain_harness as h

# A cycle of six states, each of which has one of two symbols: any two neighbours tell a state.
SYMBOL = np.array([0, 0, 1, 0, 1, 1])


def cycles(lengths=(200, 150, 250), start=(0, 2, 5)):
    """Sequences of the two symbols, and the state of each row."""
    states = [(a + np.arange(n)) % 6 for n, a in zip(lengths, start, strict=True)]
    return [SYMBOL[z][:, np.newaxis].astype(float) for z in states], states


def noisy(rows, seed=0):
    """The same as Gaussian rows, four standard deviations apart."""
    rng = np.random.default_rng(seed)
    return [4.0 * x + rng.normal(size=x.shape) for x in rows]


def contexts_of(rows):
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["plain"])
    z, indptr = batch.prepared(learner.model.likelihood.prepare)
    model = learner.model
    return Contexts(model.likelihood, model.prior, StateSample(z, indptr, None))


def truth_of(states):
    return np.eye(6)[np.concatenate(states)]


# ---------------------------------------------------------------------- parts


@pytest.mark.parametrize("distance", [-2, -1, 0, 1, 2])
def test_rows_beyond_ends_of_runs_are_the_mean(distance):
    """What is beside a row is of its own sequence."""
    rows, _ = cycles(lengths=(5, 1, 4), start=(0, 1, 2))
    of, chosen = contexts_of(rows), np.array([0, 3, 4, 5, 6, 9])
    indptr = np.array([0, 5, 6, 10])
    found = of._beside(chosen, distance)
    for row, point in zip(chosen.tolist(), found, strict=True):
        run = np.searchsorted(indptr, row, side="right") - 1
        inside = indptr[run] <= row + distance < indptr[run + 1]
        assert_allclose(point, of._points[row + distance] if inside else of._mean)


@pytest.mark.parametrize("reach", [reach for reach in REACHES if len(reach) > 2])
@pytest.mark.parametrize("n_columns", [contexts._COLUMNS, 2], ids=["stacked", "projected"])
def test_contexts_tell_states_that_symbols_do_not(reach, n_columns, monkeypatch):
    """Three rows of the cycle are different for each state."""
    monkeypatch.setattr(contexts, "_COLUMNS", n_columns)
    rows, states = cycles()
    of, states = contexts_of(rows), np.concatenate(states)
    inner = np.ones(len(states), dtype=bool)
    for end in (0, 200, 350):
        inner[np.arange(end - 2, end + 2)] = False
    inner = np.flatnonzero(inner)
    parts = of.parts(inner, reach, 12, np.random.RandomState(0))
    assert_array_equal(np.unique(parts), np.arange(6))
    assert len(set(zip(parts.tolist(), states[inner].tolist(), strict=True))) == 6


def test_no_more_parts_than_seeds():
    of = contexts_of(noisy(cycles()[0]))
    for n_seeds in (1, 2, 5):
        parts = of.parts(np.arange(300), (-1, 0, 1), n_seeds, np.random.RandomState(0))
        assert_array_equal(np.unique(parts), np.arange(n_seeds))


# ---------------------------------------------------------------------- fits


@pytest.mark.parametrize(
    "kind", ["categorical", "bernoulli", "gaussian", "gaps", "weights", "float32"]
)
def test_a_cycle_is_found_from_one_state(kind):
    """Six states, of which the rows alone show two."""
    rows, states = cycles()
    more, observation = {}, "gaussian" if kind in ("gaps", "float32") else kind
    if kind in ("gaussian", "gaps", "float32"):
        rows = noisy(rows)
    if kind == "gaps":
        gaps = np.random.default_rng(1)
        rows = [np.where(gaps.random(x.shape) < 0.05, np.nan, x) for x in rows]
    if kind == "float32":
        rows = [x.astype(np.float32) for x in rows]
    if kind == "weights":
        observation, more["sample_weight"] = "categorical", [1.0, 2.0, 0.5]
    model = HDPHMMVB(observation=observation, random_state=0).fit(rows, **more)
    truth = HDPHMMVB(observation=observation, init_params=truth_of(states), proposals=None)
    truth.set_params(n_components=6, random_state=0).fit(rows, **more)
    assert model.n_components_ == 6
    assert model.lower_bound_ > truth.lower_bound_ - 1.0


def test_a_cycle_is_found_in_pools_of_one_state():
    """Where one sample cannot show half of the rows."""
    rows, _ = cycles(lengths=(3000, 3000), start=(0, 3))
    proposals = ("birth", "merge", "delete", StateOversplit(max_rows=1500))
    model = HDPHMMVB(observation="categorical", proposals=proposals, random_state=0).fit(rows)
    assert model.n_components_ == 6


SLOW = (1, 4, 7, 9)  # more than two seconds each


@pytest.mark.parametrize(
    "problem",
    [pytest.param(x, marks=[pytest.mark.slow] * (x.number in SLOW)) for x in problems(10)],
    ids=lambda x: f"{x.number}-{x.kind}",
)
def test_random_symbols(problem):
    """No fit from one state ends clearly below one that starts from the true path."""
    data, _ = problem.draw(0)
    model = HDPHMMVB(observation="categorical", random_state=0).fit(data.sequences)
    visited, truth = np.unique(np.concatenate(data.states), return_inverse=True)
    told = HDPHMMVB(
        len(visited), observation="categorical", init_params=np.eye(len(visited))[truth]
    )
    assert model.lower_bound_ > told.fit(data.sequences).lower_bound_ - 6.0


@pytest.mark.parametrize("observation", ["gaussian", "categorical"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_without_an_order_stay_in_one_state(observation, seed):
    """One state is searched too, and nothing is found."""
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(n, 2)) for n in (300, 200)]
    if observation == "categorical":
        rows = [rng.integers(5, size=(n, 1)) for n in (300, 200)]
    model = HDPHMMVB(observation=observation, random_state=seed).fit(rows)
    assert model.n_components_ == 1
    assert not any(trial.accepted for lap in model.history_ for trial in lap.trials)


def test_a_stream_finds_the_cycle():
    """Sequences one at a time."""
    rows, _ = cycles(lengths=(100,) * 12, start=tuple(range(12)))
    model = HDPHMMVB(observation="categorical", random_state=0)
    for i, x in enumerate(rows):  # the later ones are the same as the earlier ones
        model.partial_fit([x], batch_id=i)
    assert model.n_components_ == 6
