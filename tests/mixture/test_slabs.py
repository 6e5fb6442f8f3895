"""Seeds that are narrow along one column: columns with zeros, limits and codes."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import DPMixtureVB, GaussianObservation
from sklearn_bnp.engine.samples import Sample
from sklearn_bnp.likelihood.seeding import completed_as_one
from sklearn_bnp.splits import slabs
from sklearn_bnp.splits.restricted_mixture import RestrictedMixture
from sklearn_bnp.splits.slabs import grouped_seeds, statistics_apart, windows
from tests.benchmarks.one_start_mixtures import spikes
from tests.estimators import peak_memory
from tests.variants import variants


def amounts(seed, n=1500, n_columns=4):
    """Columns that are zero in two of five rows, and which of them are."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, n_columns)) < 0.4, 0.0, rng.gamma(2.0, size=(n, n_columns)))
    return X, (X == 0) @ 2 ** np.arange(n_columns)


def as_good_as_the_truth(X, y, weight=None, **parameters):
    found = DPMixtureVB(random_state=0, **parameters).fit(X, sample_weight=weight)
    truth = np.eye(y.max() + 1)[y]
    told = DPMixtureVB(init_params=truth, random_state=0, **parameters)
    told.fit(X, sample_weight=weight)
    assert found.lower_bound_ > told.lower_bound_ - 5.0
    return found


# ---------------------------------------------------------------------- windows


def test_columns_are_looked_at_in_blocks(monkeypatch):
    """Blocks of any size find the same rows, and many columns take little more memory than a few."""
    X, _ = amounts(1, n=1000, n_columns=200)
    mass = np.random.default_rng(2).random(len(X))
    found = list(windows(X, mass))
    assert len(found) == 4
    for columns in (1, 7, 200):
        monkeypatch.setattr(slabs, "_COLUMNS_A_BLOCK", columns)
        np.testing.assert_array_equal(list(windows(X, mass)), found)
    all_at_once = peak_memory(lambda: list(windows(X, mass)))
    monkeypatch.undo()
    assert peak_memory(lambda: list(windows(X, mass))) < 3e6 < all_at_once


@pytest.mark.parametrize("width", [0.0, 0.01])
def test_windows_are_the_narrow_rows(width):
    """Whichever column they are narrow along, and however wide they are along others."""
    rng = np.random.default_rng(0)
    points, narrow = rng.normal(size=(400, 3)), rng.random(400) < 0.2
    points[narrow, 1] = 0.7 + width * rng.normal(size=narrow.sum())
    found = list(windows(points, np.ones(400)))
    assert len(found) == 1
    wrong = found[0] != narrow
    assert wrong.sum() <= 0.05 * narrow.sum() + 400 * 6 * width


@pytest.mark.parametrize("share", [0.1, 0.3, 0.48, 0.6, 0.8, 0.95])
def test_windows_hold_the_narrow_rows_however_many_they_are(share):
    """A window of the others would hold some of the narrow rows, too."""
    rng = np.random.default_rng(5)
    points = rng.gamma(2.0, size=(500, 1))
    points[: int(share * 500)] = 0.0
    (found,) = windows(points, np.ones(500))
    assert np.count_nonzero(found != (points[:, 0] == 0.0)) <= 0.05 * 500


def test_rows_of_one_gaussian_have_no_windows():
    """The best of many windows gains little by chance."""
    rng = np.random.default_rng(1)
    for n in (12, 100, 2000):
        for _ in range(20):
            assert not list(windows(rng.normal(size=(n, 10)), np.ones(n)))


def test_columns_that_do_not_vary_have_no_windows():
    points = np.column_stack([np.ones(50), np.zeros(50)])
    assert not list(windows(points, np.ones(50)))


def test_masses_count_as_rows_do():
    """A row of mass two is worth two equal rows; rows of no mass are not looked at."""
    rng = np.random.default_rng(2)
    points = rng.normal(size=(200, 2))
    points[:40, 0] = 0.0
    mass = np.where(np.arange(200) % 3, 2.0, 0.0)
    (found,) = windows(points, mass)
    kept = np.repeat(np.arange(200), mass.astype(int))
    (expected,) = windows(points[kept], np.ones(len(kept)))
    assert np.array_equal(found[kept], expected)


@pytest.mark.parametrize("spike", [False, True])
def test_missing_entries_are_in_no_window(spike):
    """If they were imputed, all of them would have nearly the same value."""
    rng = np.random.default_rng(3)
    points, missing = rng.normal(size=(400, 2)), rng.random(400) < 0.3
    if spike:
        points[:80, 1] = 0.7
    points[missing, 1] = np.nan
    expected = [(np.arange(400) < 80) & ~missing] if spike else []
    for _ in range(2):
        found = list(windows(points, np.ones(400)))
        assert len(found) == len(expected)
        for own, spiked in zip(found, expected, strict=True):
            assert not own[missing].any()
            assert np.count_nonzero(own != spiked) <= 5
        points[:, 0] = np.nan


# ---------------------------------------------------------------------- groups of rows


def with_holes(X, share, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def restricted(X, observation="gaussian"):
    """A small mixture of all rows, and the statistics of one component."""
    model = DPMixtureVB(observation=observation, proposals=None, random_state=0).fit(X)._model
    z = model.likelihood.prepare(X)
    sample = Sample(z, np.ones(len(z)), None)
    target = completed_as_one(model.likelihood, model.prior, z, sample.mass)[0]
    return RestrictedMixture(model, sample, target[np.newaxis][:0], True), target


@pytest.mark.parametrize(
    "observation", [GaussianObservation(shape) for shape in ("full", "diag")], ids=["full", "diag"]
)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.2])
def test_groups_are_the_combinations_of_narrow_columns(observation, share):
    """Rows that lack an entry are in no group, since nobody knows whose they are."""
    X, y = amounts(3)
    X = with_holes(X, share)
    small, target = restricted(X, observation)
    s = grouped_seeds(small, small.sample, target, 100)
    sizes = np.bincount(y[~np.isnan(X).any(axis=1)])
    sizes = np.sort(sizes[sizes >= 5])[::-1]
    assert len(s) == len(sizes) >= 15
    np.testing.assert_allclose(s[:, -1], sizes, atol=0.03 * len(X) / len(s))
    assert len(grouped_seeds(small, small.sample, target, 7)) == 7


def test_rows_that_are_narrow_along_one_column_are_no_groups():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 3))
    X[:200, 1] = 0.0
    small, target = restricted(X)
    assert len(grouped_seeds(small, small.sample, target, 10)) == 0


def test_narrow_parts_complete_their_own_rows():
    """Under one Gaussian of all the data, they would be as wide as their share of missing entries."""
    X, _ = amounts(5)
    X = with_holes(X, 0.1)
    small, _ = restricted(X)
    inside = (X == 0.0)[:, 0] & ((X == 0.0) | np.isnan(X))[:, 1]
    s = statistics_apart(small, small.sample, inside)
    for _ in range(20):
        coef = small.model.likelihood.coefficients(small.prior, s)
        expected, shares = np.empty_like(s), np.column_stack([inside, ~inside]).astype(float)
        small.model.likelihood.summarise(small.sample.z, shares, expected, coef=coef)
    np.testing.assert_allclose(small.evidence(s), small.evidence(expected), atol=0.5)


# ---------------------------------------------------------------------- fits


@pytest.mark.extended
@pytest.mark.parametrize(
    "change", variants([None, "float32", "weights", "holes", "batches"], slow=("holes",))
)
def test_columns_of_amounts_with_zeros(change):
    """One cluster for each pattern of zeros, of which some are spread over several others at first."""
    (X, y), given = amounts(3), {}
    if change == "float32":
        X = X.astype(np.float32)
    if change == "batches":
        given["n_batches"] = 7
    if change == "holes":
        X = with_holes(X, 0.02)
    if change == "weights":
        given["weight"] = np.where(np.arange(len(X)) % 2, 0.75, 1.25)
    found = as_good_as_the_truth(X, y, **given)
    if change != "holes":
        assert found.n_components_ == 16
        assert adjusted_rand_score(y, found.labels_) > 0.99


@pytest.mark.extended
@pytest.mark.parametrize(
    "seed, share",
    [(1, 0.1), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((0, 0.1), (3, 0.25)))],
)
def test_rows_with_many_holes_in_columns_with_zeros(seed, share):
    """Fits ended up to 300 nats lower: imputed entries looked like a narrow column."""
    X, y = amounts(seed)
    as_good_as_the_truth(with_holes(X, share, seed=2), y)


@pytest.mark.extended
@pytest.mark.parametrize(
    "problem", [10, *(pytest.param(p, marks=pytest.mark.slow) for p in (1, 14, 19))]
)
def test_components_that_pay_under_another_prior_alone(problem):
    """The prior must become narrow along a column before any single split pays."""
    data = spikes(problem)
    as_good_as_the_truth(data.X, data.y)
