"""Data in batches, and data in memory maps, of which no more than batches may be in memory."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_bnp import DPMixtureVB, GaussianObservation
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.engine.scheduler import Scheduler
from sklearn_bnp.engine.trials import SplitTrial
from sklearn_bnp.inputs.batches import ArraySource
from tests.estimators import assert_same_state, blobs, peak_memory, public_state, same_partition

X, truth = blobs(300)


@pytest.mark.parametrize("batch_size", [pytest.param(1, marks=pytest.mark.slow), 7, 299, 10_000])
def test_any_batch_size(batch_size):
    model = DPMixtureVB(batch_size=batch_size, random_state=0).fit(X)
    assert same_partition(model.predict(X), truth)


@pytest.mark.parametrize(
    "n_rows, n_batches", [(11, 10), (11, 6), (300, 7), (12, 12), (7, 10), (1, 3), (10**6, 999)]
)
def test_as_many_batches_as_asked_for(n_rows, n_batches):
    source = ArraySource(np.zeros((n_rows, 1)), None, n_batches)
    sizes = [len(batch.x) for batch in source.batches()]
    assert len(sizes) == len(source) == min(n_batches, n_rows)
    assert sum(sizes) == n_rows and min(sizes) >= 1 and max(sizes) - min(sizes) <= 1


def test_a_fit_visits_as_many_batches_as_asked_for(monkeypatch):
    visits = []

    def visit(self, batch, *, visit=Learner.visit, **kwargs):
        visits.append(batch.batch_id)
        visit(self, batch, **kwargs)

    monkeypatch.setattr(Learner, "visit", visit)
    DPMixtureVB(n_batches=10, max_iter=0, random_state=0).fit(X[:11])
    assert sorted(visits) == list(range(10))


@pytest.mark.parametrize("n_batches", [1, 7, pytest.param(1000, marks=pytest.mark.slow)])
def test_any_number_of_batches(n_batches):
    assert same_partition(DPMixtureVB(n_batches=n_batches, random_state=0).fit_predict(X), truth)


# ---------------------------------------------------------------------- memory maps


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory):
    """Memory map of 200,000 rows of 20 float64, 32 MB, written piece by piece."""
    path = tmp_path_factory.mktemp("data") / "rows.dat"
    rng = np.random.default_rng(0)
    centers = 4.0 * rng.normal(size=(3, 20))
    with open(path, "wb") as file:
        for _ in range(20):
            rows = centers[rng.integers(3, size=10_000)] + rng.normal(size=(10_000, 20))
            file.write(rows.tobytes())
    return np.memmap(path, dtype=np.float64, mode="r", shape=(200_000, 20))


@pytest.mark.extended
def test_memory_map_equals_array(on_disk):
    rows = on_disk[:3000]
    mapped, loaded = (
        DPMixtureVB(batch_size=500, random_state=0).fit(x) for x in (rows, rows[:] + 0)
    )
    assert_same_state(public_state(mapped), public_state(loaded))
    assert mapped.partial_fit(rows[:700]).n_components_ == 3


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "learning_method",
    ["memoized", *(pytest.param(x, marks=pytest.mark.slow) for x in ("full", "stochastic"))],
)
def test_memory_map_is_never_copied(on_disk, learning_method):
    model = DPMixtureVB(
        3, batch_size=2000, learning_method=learning_method, max_iter=4, random_state=0
    )
    short = peak_memory(lambda: model.fit(on_disk[:50_000]))
    long = peak_memory(lambda: model.fit(on_disk))
    assert model.n_components_ == 3
    # beside the bag of each batch, nothing grows with the data
    assert long < 11e6
    assert long - short < 1e6


def test_a_sample_of_rows_costs_no_memory_for_the_others():
    source = ArraySource(np.broadcast_to(np.zeros(1), (10_000_000, 1)), None, 10_000)
    rng = np.random.RandomState(0)
    assert peak_memory(lambda: source.sample(500, rng)) < 1e6
    assert len(source.sample(500, rng)[0]) == 500


def bound(n_rows, n_features, n_statistics, model, most):
    """What doc/costs.rst says of the memory that `fit` takes for a memory map, in bytes."""
    batch = min(model.batch_size, n_rows)
    block, b = min(batch, 4096), -(-n_rows // batch)
    statistics = (b + 10) * most * (n_statistics + 1)
    rows = max(5 * block, 2000, 100 * model.n_components)
    times = n_statistics / n_features if model.observation.zero_mean else 1
    sample = times * max(200_000, rows * n_features)
    once = 4.5e6  # modules that are imported, and what they make, in the process of the test
    return 8 * (statistics + 4 * sample + 4 * (block + 4000) * most) + once


@pytest.mark.quarter
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "n_rows, n_features, n_clusters, n_components, batch_size, observation",
    [
        (20_000, 20, 3, 1, 2000, GaussianObservation()),
        pytest.param(20_000, 20, 3, 3, 2000, GaussianObservation(), marks=pytest.mark.slow),
        pytest.param(
            20_000, 12, 3, 3, 1000, GaussianObservation(zero_mean=True), marks=pytest.mark.slow
        ),
        (40_000, 10, 30, 1, 2000, GaussianObservation()),
        pytest.param(40_000, 3, 16, 1, 2000, GaussianObservation(), marks=pytest.mark.extended),
        pytest.param(30_000, 50, 20, 20, 4096, GaussianObservation(), marks=pytest.mark.slow),
        pytest.param(12_000, 400, 3, 1, 500, GaussianObservation("diag"), marks=pytest.mark.slow),
        pytest.param(
            12_000, 400, 3, 4, 100, GaussianObservation("spherical"), marks=pytest.mark.slow
        ),
    ],
)
def test_memory_of_a_fit_is_bounded(
    tmp_path, monkeypatch, n_rows, n_features, n_clusters, n_components, batch_size, observation
):
    rng = np.random.default_rng(0)
    rows = np.memmap(tmp_path / "rows.dat", np.float64, mode="w+", shape=(n_rows, n_features))
    rows[:] = rng.normal(size=rows.shape)
    rows += 4.0 * rng.normal(size=(n_clusters, n_features))[rng.integers(n_clusters, size=n_rows)]
    model = DPMixtureVB(
        n_components, observation=observation, batch_size=batch_size,
        max_iter=8, random_state=0,
    )  # fmt: skip
    small = clone(model).fit(np.asarray(rows[:300]))  # what is made once is not of this fit

    held, plan = [], Scheduler.plan

    def counting(self, *args, **kwargs):
        plan(self, *args, **kwargs)
        splits = [trial for trial in self.trials if isinstance(trial, SplitTrial)]
        held.append(sum(len(trial.created) for trial in splits))

    monkeypatch.setattr(Scheduler, "plan", counting)
    peak = peak_memory(lambda: model.fit(rows))
    on_trial = max(map(sum, pairwise([0, *held])), default=0)
    most = max(lap.n_components for lap in model.history_) + on_trial
    P = small._statistics.shape[1]
    assert peak < bound(n_rows, n_features, P, model, most)


@pytest.mark.parametrize("n_rows, n_batches", [(1, 1), (1000, 7), (300_000, 9), (300_000, 1)])
def test_shuffled_batches_hold_every_row_once(n_rows, n_batches):
    source = ArraySource(np.arange(n_rows)[:, np.newaxis], None, n_batches)
    batches = [b.x[:, 0] for b in source.shuffled(np.random.RandomState(0))]
    assert [len(rows) for rows in batches] == np.diff(source.edges).tolist()
    assert np.array_equal(np.sort(np.concatenate(batches)), np.arange(n_rows))
    again = [b.x[:, 0] for b in source.shuffled(np.random.RandomState(0))]
    assert all(map(np.array_equal, batches, again))
    other = [b.x[:, 0] for b in source.shuffled(np.random.RandomState(1))]
    if n_rows > 1000:
        for rows in batches:  # from all tenths of the data
            found = np.histogram(rows, bins=10, range=(0, n_rows))[0] / len(rows)
            np.testing.assert_allclose(found, 0.1, atol=0.02)
    assert n_batches == 1 or not any(map(np.array_equal, batches, other))


def test_shuffling_holds_few_row_numbers():
    source = ArraySource(np.broadcast_to(np.zeros(1), (10_000_000, 1)), None, 10_000)
    shuffled = source.shuffled(np.random.RandomState(0))
    assert peak_memory(lambda: [next(shuffled) for _ in range(200)]) < 8e6  # of 80 MB for all


@pytest.mark.extended
def test_predictions_of_a_memory_map_are_made_in_blocks(on_disk):
    model = DPMixtureVB(batch_size=2000, random_state=0).fit(on_disk[:10_000])
    labels = 8 * len(on_disk)
    for method in (model.predict, model.score_samples):
        assert peak_memory(lambda: method(on_disk)) < 2 * labels + 2e6  # noqa: B023


def test_integers_on_disk_stay_integers(tmp_path):
    rows = np.memmap(tmp_path / "bytes.dat", dtype=np.uint8, mode="w+", shape=(100_000, 30))
    rows[:] = np.random.default_rng(0).integers(0, 9, size=rows.shape)
    model = DPMixtureVB(batch_size=2000, max_components=2, max_iter=0, random_state=0)
    assert peak_memory(lambda: model.fit(rows)) < 8 * rows.size / 2
