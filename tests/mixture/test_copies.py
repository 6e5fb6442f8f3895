"""Rows that count several times, by weights or as copies, are no clusters of their own."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import DPMixtureVB, GaussianObservation, Sample

SHAPES = ("full", "diag", "spherical")


def blobs(seed, n_rows=500, n_clusters=5, n_features=6):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_clusters, size=n_rows)
    X = 4 * rng.normal(size=(n_clusters, n_features))[y] + rng.normal(size=(n_rows, n_features))
    return X, y


def assert_clusters_are_found(shape, X, y, **given):
    model = DPMixtureVB(observation=GaussianObservation(shape), random_state=0).fit(X, **given)
    assert model.n_components_ == 5
    assert adjusted_rand_score(y, model.labels_) > 0.97


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "weights",
    [
        lambda rng, n: rng.exponential(size=n),
        lambda rng, n: rng.lognormal(-0.5, 1.0, size=n),
        lambda rng, n: rng.poisson(1.0, size=n).astype(float),
    ],
    ids=["exponential", "lognormal", "bootstrap"],
)
def test_heavy_rows_are_no_clusters(shape, weights):
    X, y = blobs(0)
    assert_clusters_are_found(shape, X, y, sample_weight=weights(np.random.default_rng(1), len(X)))


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_drawn_with_replacement_make_no_clusters(shape):
    X, y = blobs(0)
    rows = np.random.default_rng(1).integers(len(X), size=len(X))
    assert_clusters_are_found(shape, X[rows], y[rows])


def test_rows_drawn_with_replacement_and_missing_values():
    X, y = blobs(0)
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    rows = np.random.default_rng(1).integers(len(X), size=len(X))
    assert_clusters_are_found("diag", X[rows], y[rows])


@pytest.mark.parametrize("as_weight", [True, False])
def test_many_copies_are_a_cluster(as_weight):
    """Forty rows of a device that stood still, among others that differ."""
    X, _ = blobs(0)
    still = X[:1] + 1.5
    if as_weight:
        rows, weight = np.concatenate([X, still]), np.append(np.ones(len(X)), 40.0)
    else:
        rows, weight = np.concatenate([X, still.repeat(40, axis=0)]), None
    model = DPMixtureVB(random_state=0).fit(rows, sample_weight=weight)
    assert model.n_components_ == 6
    assert np.count_nonzero(model.labels_ == model.labels_[-1]) == len(rows) - len(X)


def test_a_component_owns_a_row():
    """A component of a hundredth of a row gained nothing to speak of, where some rows weigh as little."""
    rng = np.random.default_rng(1)
    rates = np.where(np.arange(90)[:, None] % 2, [3.0, 0.2, 0.2], [0.2, 0.2, 3.0])
    X = (rng.poisson(rates.repeat(6, axis=1)) > 1).astype(int)
    weight = np.random.default_rng(0).random(90)
    model = DPMixtureVB(observation="poisson", random_state=0).fit(X, sample_weight=weight)
    assert model.n_components_ == 2


# ---------------------------------------------------------------------- samples


@pytest.mark.parametrize("n_missing", [0, 30])
def test_equal_rows_become_one(n_missing):
    rng = np.random.default_rng(0)
    different = rng.normal(size=(40, 3))
    different.ravel()[rng.choice(different.size, n_missing, replace=False)] = np.nan
    number = rng.permutation(np.repeat(np.arange(40), rng.integers(1, 5, size=40)))
    mass = rng.random(40)
    sample = Sample(different[number], mass[number], None).without_copies()
    order = np.argsort(mass)
    np.testing.assert_array_equal(np.sort(sample.mass), mass[order])
    np.testing.assert_array_equal(sample.z[np.argsort(sample.mass)], different[order])
    np.testing.assert_array_equal(sample.weight, 1.0)


def test_copies_count_as_their_weights_together_but_once_at_the_most():
    z = np.array([[1.0], [2.0], [1.0], [3.0], [4.0], [3.0]])
    sample = Sample(z, np.ones(6), np.array([0.2, 0.7, 0.3, 0.9, 5.0, 0.6])).without_copies()
    np.testing.assert_array_equal(sample.z.ravel(), [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(sample.weight, [0.5, 0.7, 1.0, 1.0])


def test_what_counts_twenty_times_as_much_stays_as_it_is():
    z = np.append(np.arange(30.0), np.full(22, 50.0))[:, np.newaxis]
    z[1] = z[0]
    sample = Sample(z, np.ones(52), None).without_copies()
    assert len(sample.z) == 29 + 22
    np.testing.assert_array_equal(sample.weight, 1.0)


def test_samples_of_different_rows_are_left_alone():
    rng = np.random.default_rng(0)
    for weight in (None, rng.random(20)):
        sample = Sample(rng.normal(size=(20, 2)), np.ones(20), weight)
        assert sample.without_copies() is sample


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_on_a_grid_count_as_often_as_they_occur(shape):
    """Recorded to a step, equal rows are different ones that lie in one cell."""
    X, _ = blobs(0, n_features=2)
    observation = GaussianObservation(shape)
    coarse = DPMixtureVB(observation=observation, random_state=0).fit(np.round(X))
    assert coarse._learner_.model.likelihood.copies_tell
    fine = DPMixtureVB(observation=observation, random_state=0).fit(X)
    assert not fine._learner_.model.likelihood.copies_tell
    exact = GaussianObservation(shape, resolution=0.0)
    exact = DPMixtureVB(observation=exact, random_state=0).fit(np.round(X))
    assert not exact._learner_.model.likelihood.copies_tell
