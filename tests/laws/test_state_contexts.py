"""States that differ in what follows them: contexts of rows, and fits that begin with one state."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import HDPHMMVB, StateOversplit
from sklearn_bnp.hmm import row_contexts
from sklearn_bnp.hmm.creation import statistics_of_labels
from sklearn_bnp.hmm.nested_chain import NestedModel
from sklearn_bnp.hmm.nested_links import NestedSettings
from sklearn_bnp.hmm.nested_unions import gains_of_links
from sklearn_bnp.hmm.row_contexts import Contexts
from sklearn_bnp.hmm.sampling import StateSample
from tests.benchmarks.symbol_sequences import problems
from tests.variants import variants

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
    points = of._points
    found = contexts_of(rows)._beside(points, chosen, distance)
    for row, point in zip(chosen.tolist(), found, strict=True):
        run = np.searchsorted(indptr, row, side="right") - 1
        inside = indptr[run] <= row + distance < indptr[run + 1]
        assert_allclose(point, points[row + distance] if inside else points.mean(axis=0))


@pytest.mark.parametrize("reach", [(-2, -1, 0, 1, 2), (-1, 0, 1)])
@pytest.mark.parametrize("n_columns", [row_contexts._COLUMNS, 2], ids=["stacked", "projected"])
def test_contexts_tell_states_that_symbols_do_not(reach, n_columns, monkeypatch):
    """Three rows of the cycle are different for each state."""
    monkeypatch.setattr(row_contexts, "_COLUMNS", n_columns)
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


def test_states_take_the_place_of_points():
    """Where every row looks the same, the states of the rows around it tell its own."""
    _, states = cycles()
    of = contexts_of([np.zeros((len(z), 1)) for z in states])
    z = np.concatenate(states)
    pairs = np.eye(3)[z // 2]  # of three states, each of which is two
    inner = np.flatnonzero((np.arange(len(z)) % 200 > 2) & (np.arange(len(z)) % 50 < 47))
    inner = inner[z[inner] < 2]
    parts = of.parts(inner, (-1, 0, 1), 2, np.random.RandomState(0), pairs)
    assert len(set(zip(parts.tolist(), z[inner].tolist(), strict=True))) == 2


# ---------------------------------------------------------------------- unions


def twins(seed, n_states=7, n_sequences=6, length=400):
    """A noisy cycle; the second half of the states have the emissions of the first ones."""
    rng = np.random.default_rng(seed)
    means = rng.normal(scale=2.0, size=(n_states, 2))
    half = n_states // 2
    means[half:] = means[: n_states - half].copy()
    states = []
    for _ in range(n_sequences):
        step = np.where(rng.random(length) < 0.9, 1, rng.integers(n_states, size=length))
        states.append(np.cumsum(step) % n_states)
    rows = [means[z] + 0.5 * rng.normal(size=(length, 2)) for z in states]
    return rows, np.concatenate(states)


def nested(rows, labels):
    """A `NestedModel` of some rows, and its chain in which each row has one state."""
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["plain"])
    model = learner.model
    z, indptr = batch.prepared(model.likelihood.prepare)
    sample, a = StateSample(z, indptr, None), model.allocation
    of = NestedModel(
        model.likelihood, model.prior, sample, NestedSettings(a.concentration, a.stickiness)
    )
    s = statistics_of_labels(model.likelihood, sample, labels, labels.max() + 1)
    return of, of.iterate(of.labelled(s, labels), 3, 0.0)


def test_unions_by_links_keep_states_that_differ_in_what_follows():
    """Each state comes in two parts by chance: those are joined, and states with the same rows are not."""
    rows, states = twins(0)
    parts = 2 * states + np.random.default_rng(1).integers(2, size=len(states))
    model, chain = nested(rows, parts)
    cut = model.cut(chain, by_links=True)
    assert len(cut.s) == 7
    assert model.bound(cut) > model.bound(model.cut(chain)) + 20.0


def test_evidence_of_unions_is_that_of_links():
    """Of what changes if two states with nothing between them are joined, but for their own steps."""
    rows, states = twins(2)
    model, chain = nested(rows, states)
    links = chain.links
    alone = model.around.evidence_of_unions(links, [(k,) for k in range(7)])
    i, j = np.triu_indices(7, 1)
    pairs = list(zip(i.tolist(), j.tolist(), strict=True))
    found = model.around.evidence_of_unions(links, pairs) - alone[i] - alone[j]
    exact = gains_of_links(model.around, links, i, j)
    assert np.corrcoef(found, exact)[0, 1] > 0.9


# ---------------------------------------------------------------------- fits


@pytest.mark.extended
@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (2, 3))])
def test_states_with_the_same_rows_are_found(seed):
    """Also if the states before and after them have the same rows as others, too."""
    rows, states = twins(seed)
    model = HDPHMMVB(random_state=0).fit(rows)
    told = HDPHMMVB(7, init_params=np.eye(7)[states], random_state=0).fit(rows)
    assert model.n_components_ == 7
    assert model.lower_bound_ > told.lower_bound_ - 10.0


@pytest.mark.extended
@pytest.mark.parametrize(
    "kind",
    variants(
        ["categorical", "bernoulli", "gaussian", "gaps", "weights", "float32"],
        slow=("bernoulli", "float32"),
    ),
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


SLOW = (1, 2, 4, 5, 6, 7, 9)  # long ones, and others of a kind that quick tests have


@pytest.mark.extended
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


@pytest.mark.extended
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


@pytest.mark.extended
def test_a_stream_finds_the_cycle():
    """Sequences one at a time."""
    rows, _ = cycles(lengths=(100,) * 12, start=tuple(range(12)))
    model = HDPHMMVB(observation="categorical", random_state=0)
    for i, x in enumerate(rows):  # the later ones are the same as the earlier ones
        model.partial_fit([x], batch_id=i)
    assert model.n_components_ == 6
