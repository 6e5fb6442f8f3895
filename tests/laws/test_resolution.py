"""The steps to which columns were recorded: found in what returns, nothing in what does not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import DPMixtureVB, GaussianObservation
from sklearn_bnp.inputs.resolution import recording_steps
from tests.estimators import blobs

from .rows import clouds

STEP = np.array([0.1, 1.0, 0.0])


def recorded(n=400, seed=0):
    """Rows of which two columns were rounded, to 0.1 and to 1."""
    x = np.random.default_rng(seed).normal(size=(n, 3)) * [1.0, 5.0, 1.0]
    return np.column_stack([np.round(x[:, 0], 1), np.round(x[:, 1]), x[:, 2]])


def kinds_of_rows():
    """Rows with columns that were rounded, with none, and with rows that return."""
    rng = np.random.default_rng(1)
    return {
        "rounded": recorded(),
        "continuous": rng.normal(size=(300, 3)),
        "copies": np.repeat(rng.normal(size=(60, 3)), 9, axis=0),
    }


@pytest.fixture(params=["rounded", "continuous", "copies"])
def x(request):
    return kinds_of_rows()[request.param]


def test_steps_of_rounded_columns():
    assert_allclose(recording_steps(recorded()), STEP, atol=1e-12)
    assert_allclose(recording_steps(recorded().astype(np.float32)), STEP, rtol=1e-5)
    assert_allclose(recording_steps(np.round(recorded()[:, 1:2]).astype(np.int64)), [1.0])


@pytest.mark.parametrize("n", [1, 2, 5, 30, 3000])
def test_continuous_columns_have_none(n):
    rng = np.random.default_rng(n)
    assert not recording_steps(rng.standard_t(2, size=(n, 4))).any()
    # nor have rows drawn with replacement from them, nor constant columns
    drawn = rng.normal(size=(n, 4))[rng.integers(n, size=n)] if n > 5 else np.ones((n, 4))
    assert not recording_steps(drawn).any()


def test_a_common_value_is_no_step():
    """Nine rows of ten are 0 and the others continuous: the values say nothing of a step."""
    rng = np.random.default_rng(2)
    x = rng.exponential(size=(5000, 1)) * (rng.random((5000, 1)) < 0.1)
    assert recording_steps(x)[0] < 0.01


def test_units(x):
    """Shifts and scales of columns; order of rows and of columns."""
    step = recording_steps(x)
    for scale in (1e-120, 2.0, 1e120):
        assert_allclose(recording_steps(scale * x), scale * step, rtol=1e-9)
    assert_allclose(recording_steps(x * [1e-3, 1.0, 1e5]), step * [1e-3, 1.0, 1e5], rtol=1e-9)
    assert_allclose(recording_steps(x + 50.0), step, rtol=1e-9, atol=1e-12)
    order = np.random.default_rng(3).permutation(len(x))
    assert_array_equal(recording_steps(x[order]), step)
    assert_allclose(recording_steps(x[:, ::-1]), step[::-1], rtol=1e-9)


def test_weights_are_repetitions(x):
    weight = np.random.default_rng(4).integers(0, 6, size=len(x))
    assert_allclose(
        recording_steps(x, weight.astype(float)),
        recording_steps(np.repeat(x, weight, axis=0)),
        rtol=1e-9,
    )


@pytest.mark.parametrize("n_features", [1, 2, 4])
def test_cells_of_a_lattice_are_its_steps(n_features):
    points = np.stack(np.meshgrid(*[np.arange(6.0)] * n_features), axis=-1).reshape(-1, n_features)
    assert_allclose(recording_steps(np.repeat(points, 5, axis=0)), np.ones(n_features))


@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
@pytest.mark.parametrize("zero_mean", [False, True])
def test_the_ridge_in_the_units_of_the_data(covariance_type, zero_mean):
    """``reg_covar`` times the variance and ``step ** 2 / 12``; blurred columns have variance 1."""
    x = recorded()
    observation = GaussianObservation(covariance_type, zero_mean=zero_mean, reg_covar=0.01)
    likelihood = DPMixtureVB(observation=observation, max_iter=0).fit(x)._model.likelihood
    square = np.mean((x if zero_mean else x - x.mean(axis=0)) ** 2, axis=0)
    blurred = square * 1.01 + STEP**2 / 12
    if covariance_type == "spherical":
        square = np.full(3, np.exp(np.mean(np.log(square))))
    expected = 0.01 * square + STEP**2 / 12
    assert_allclose(likelihood.ridge * likelihood.scaling.scale**2, expected, rtol=1e-10)
    if covariance_type != "spherical":
        assert_allclose(likelihood.scaling.scale**2, blurred, rtol=1e-10)


def test_the_user_knows_better():
    x = recorded()
    given, found = (
        DPMixtureVB(observation=GaussianObservation(resolution=step), random_state=0).fit(x)
        for step in (STEP, "auto")
    )
    assert given.lower_bound_ == pytest.approx(found.lower_bound_, rel=1e-9)
    none, zero = (
        DPMixtureVB(observation=GaussianObservation(resolution=step), random_state=0)
        .fit(x)
        .lower_bound_
        for step in (None, 0.0)
    )
    assert none == zero
    for wrong in (-1.0, [1.0, 2.0], [1.0, -1.0, 0.0], "fine"):
        with pytest.raises(ValueError, match="resolution"):
            DPMixtureVB(observation=GaussianObservation(resolution=wrong)).fit(x)


def test_continuous_data_are_left_alone():
    x, _ = clouds(np.random.default_rng(5), 200)
    bounds = [
        DPMixtureVB(observation=GaussianObservation(resolution=step), random_state=0)
        .fit(x)
        .lower_bounds_
        for step in ("auto", None)
    ]
    assert bounds[0] == bounds[1]


@pytest.mark.parametrize("n_features", [1, 2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copies_tell_no_steps(n_features, dtype):
    """Neither if rows are there several times, nor if they have weights."""
    for n in (25, 300, 1000):
        rng = np.random.default_rng(n)
        x = rng.lognormal(size=(n, n_features)).astype(dtype)
        for weight in (np.full(n, 500.0), 50.0 * rng.lognormal(size=n)):
            assert not recording_steps(x, weight).any()
        drawn = x[rng.integers(n, size=5000)]
        assert not recording_steps(drawn).any()


@pytest.mark.parametrize("weight", [None, 1.0, 12.0])
@pytest.mark.parametrize("scale", [np.log1p, np.sqrt, np.square])
def test_steps_of_other_scales(scale, weight):
    """Whole numbers of a single column, on a scale of their own: none is a copy."""
    x = scale(np.random.default_rng(0).poisson(60.0, size=(1000, 1)).astype(float))
    step = recording_steps(x, None if weight is None else np.full(1000, weight))
    distances = np.diff(np.unique(x))
    assert distances.min() < step[0] < distances.max()


@pytest.mark.quarter
@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_rows_that_return_are_no_clusters(n_features):
    """Three clouds of 60 rows, five times each: once there was a component for each row."""
    rng = np.random.default_rng(6)
    centers = (
        12.0 * np.arange(3.0)[:, np.newaxis] if n_features == 1 else 12.0 * np.eye(3, n_features)
    )
    labels = np.repeat(np.arange(3), 60)
    x = centers[labels] + rng.normal(size=(180, n_features))
    model = DPMixtureVB(random_state=0).fit(np.repeat(x, 5, axis=0))
    weighted = DPMixtureVB(random_state=0).fit(x, sample_weight=5.0)
    assert model.n_components_ == weighted.n_components_ == 3
    assert model.score(x) < DPMixtureVB(random_state=0).fit(x).score(x) + 1.0


def test_whole_numbers():
    x, _ = blobs(600)
    model = DPMixtureVB(random_state=0).fit(np.round(x))
    assert model.n_components_ == 3
    assert np.all(model.covariances_[:, [0, 1], [0, 1]] > 1.0 / 12.0)
