"""Sums over float32 rows are rough; what is narrow and far from the origin keeps a positive scatter."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import (
    HDPHMMVB,
    AutoregressiveObservation,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
)
from sklearn_bnp._kernels._gaussian import spd_logdet
from sklearn_bnp.likelihood.covariance_shapes import repaired

from .harness import quiet_fit


def zero_inflated(n_rows, n_columns, share, seed):
    """Rows of which a share of all entries is zero, in float32."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)).astype(np.float32)
    X[rng.random(X.shape) < share] = 0.0
    return X


@pytest.mark.parametrize(("seed", "covariance_type"), [(0, "full"), (2, "full"), (2, "diag")])
def test_columns_of_many_zeros(seed, covariance_type):
    """Both columns are zero, one is, or none: four clusters, of which three are flat in some direction."""
    X, observation = zero_inflated(1000, 2, 0.5, seed), GaussianObservation(covariance_type)
    model = quiet_fit(DPMixtureVB(observation=observation, random_state=0), X)
    assert model.n_components_ == 4
    # some rows without a zero lie so near to one that they belong to a flat cluster
    assert adjusted_rand_score((X == 0.0) @ [1, 2], model.predict(X)) > 0.9


@pytest.mark.quarter
@pytest.mark.parametrize(
    ("n_rows", "n_columns", "share"),
    [(1000, 3, 0.9), pytest.param(5000, 10, 0.9, marks=pytest.mark.slow),
     pytest.param(50_000, 3, 0.5, marks=pytest.mark.slow)],
)  # fmt: skip
@pytest.mark.parametrize(
    "covariance_type", ["full", "diag", pytest.param("spherical", marks=pytest.mark.slow)]
)
def test_fits_are_finite_and_near_those_of_float64(n_rows, n_columns, share, covariance_type):
    X, scores = zero_inflated(n_rows, n_columns, share, 0), []
    for rows in (X, X.astype(float)):
        observation = GaussianObservation(covariance_type)
        model = DPMixtureVB(observation=observation, max_components=20, max_iter=30, random_state=0)
        scores.append(quiet_fit(model, rows).score(X.astype(float)))
    assert np.isfinite(scores).all()
    assert abs(scores[0] - scores[1]) < 1.0


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
@pytest.mark.parametrize("model", [DPMixtureVB, HDPHMMVB, HDPTopicVB])
def test_narrow_components_have_the_bound_of_float64(model, covariance_type, missing):
    """They are a thousandth as wide as their distances, and no lap lowers the bound."""
    rng = np.random.default_rng(0)
    labels = np.arange(1200) // 60 % 6
    X = (rng.normal(size=(6, 3)) * 1000.0)[labels] + rng.normal(size=(1200, 3))
    X[missing * (rng.random(X.shape) < 0.05)] = np.nan
    X, found = X.astype(np.float32), []
    start = np.eye(6)[labels] * 0.9 + 0.1 / 6
    how = {"groups": np.arange(1200) // 300} if model is HDPTopicVB else {}
    for rows in (X, X.astype(float)):
        in_sequences = model is HDPHMMVB
        given = model(
            6, observation=GaussianObservation(covariance_type), proposals=None, max_iter=30,
            init_params=np.split(start, 4) if in_sequences else start, tol=1e-7, random_state=0,
        )  # fmt: skip
        data = np.split(rows, 4) if in_sequences else rows
        found.append(np.array(quiet_fit(given, data, **how).lower_bounds_))
    single, double = found
    assert single[-1] == pytest.approx(double[-1], abs=5e-7 * X.size)
    assert np.diff(single).min() > -1e-7 * X.size


@pytest.mark.extended
def test_states_of_steps_that_hardly_change():
    """Rows and those before them are nearly the same, and their joint scatter is narrow in one direction."""
    rng = np.random.default_rng(0)
    x = (50.0 + np.cumsum(rng.normal(size=(3000, 2)), axis=0)).astype(np.float32)
    x[rng.random(3000) < 0.7] = x[0]
    model = HDPHMMVB(observation=AutoregressiveObservation(), max_iter=20, random_state=0)
    assert np.isfinite(quiet_fit(model, x).score(x))


def scatter(n, D, noise, rng):
    """Inverse scales of a narrow cluster far out, sums of squares with an error, prior, ridge, statistics."""
    mean = rng.normal(size=D) * 3.0
    square = n * np.multiply.outer(mean, mean)
    own = square * (1.0 + noise * rng.uniform(-1.0, 1.0, (D, D)))
    upper = np.triu_indices(D)
    s = np.concatenate([own[upper], n * mean, [n]])[np.newaxis]
    prior, ridge = np.diag(rng.uniform(1e-4, 1e-3, D)), np.full(D, 1e-12)
    b = np.triu(prior + own + n * np.diag(ridge) - square)[np.newaxis]
    return b, prior, ridge, s


@pytest.mark.parametrize("D", [1, 2, 7])
@pytest.mark.parametrize("noise", [0.0, 1e-13, 1e-6, 1e-5])
def test_repaired_matrices_are_no_less_than_without_rows(D, noise):
    """And those that need no repair are as they were, to the last bit."""
    rng = np.random.default_rng(D)
    b, prior, ridge, s = scatter(1000.0, D, noise, rng)
    before, log_det = b.copy(), np.empty(1)
    sound = spd_logdet(b.copy(), log_det) == 0
    found = repaired(b, prior, ridge, s)
    if sound:
        assert_array_equal(np.triu(found[0]), np.triu(before[0]))
        return
    assert noise > 1e-9
    assert spd_logdet(found.copy(), log_det) == 0
    whole = np.triu(found[0]) + np.triu(found[0], 1).T
    floor = prior + 1000.0 * np.diag(ridge)
    root = 1.0 / np.sqrt(np.diag(floor))
    assert np.linalg.eigvalsh(whole * np.multiply.outer(root, root)).min() > 1.0 - 1e-6


def test_what_is_left_of_a_split_is_summed_and_not_a_difference():
    """The largest successor is the narrow one, and has no part of the errors of the others' sums."""
    rng = np.random.default_rng(0)
    X = np.concatenate([np.full((600, 2), 0.3), rng.normal(size=(400, 2))]).astype(np.float32)
    resp = np.column_stack([np.ones(600), np.zeros(600)])
    resp = np.concatenate([resp, 1.0 - resp[:400]])
    model = DPMixtureVB(init_params=resp, random_state=0, max_iter=5)
    quiet_fit(model, X)
    totals = model._learner_.totals
    n, sums, squares = totals.n, totals.s[:, -3:-1], totals.s[:, [0, 2]]
    assert np.all(squares - sums**2 / n[:, np.newaxis] > -3e-5 * squares)
    assert_allclose(totals.n.sum(), 1000.0, rtol=1e-5)


@pytest.mark.quarter
@pytest.mark.parametrize("offset", [1e4, 1e6, 1e7])
def test_float32_rows_far_from_zero_are_as_float64_ones_of_the_same_numbers(offset):
    """Few digits are left of them. They were recorded in the steps between such numbers."""
    rng = np.random.default_rng(0)
    labels = np.arange(6000) % 4
    X = (rng.normal(size=(4, 2)) * 30.0)[labels] + rng.normal(size=(6000, 2)) + offset
    X, scores = X.astype(np.float32), []
    for rows in (X, X.astype(float)):
        model = quiet_fit(DPMixtureVB(random_state=0), rows)
        assert model.n_components_ == 4
        assert adjusted_rand_score(labels, model.predict(rows)) > 0.99
        scores.append(model.score(rows))
    assert scores[0] == pytest.approx(scores[1], abs=2e-3)


def test_float32_columns_of_which_no_digit_is_left():
    """They count as constant, which is said."""
    X = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
    X[:, 1] += np.float32(3e7)
    with pytest.warns(UserWarning, match="Column 1 of X has float32 values near 3e.07"):
        model = DPMixtureVB(random_state=0).fit(X)
    assert model.n_components_ == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X[:, 1] = 0.1
        DPMixtureVB(random_state=0).fit(X)
        DPMixtureVB(random_state=0).fit(X.astype(float))


@pytest.mark.parametrize(
    ("model", "observation"),
    [(DPMixtureVB, "gaussian"), (DPMixtureVB, "fixed_variance_gaussian"), (HDPHMMVB, "gaussian")],
)
def test_means_far_from_zero(model, observation):
    """The mean of the rows is no float32 number, as the rows are."""
    X = (1e7 + 0.5 + 3.0 * np.random.default_rng(0).normal(size=(2000, 1))).astype(np.float32)
    fit = quiet_fit(model(observation=observation, proposals=None, random_state=0), X)
    assert_allclose(fit.means_[0] - 1e7, X.mean(axis=0, dtype=float) - 1e7, atol=2e-3)


@pytest.mark.parametrize("offset", [1e5, 1e7])
@pytest.mark.parametrize("model", [DPMixtureVB, HDPHMMVB])
def test_columns_far_from_zero_that_depend_on_each_other(model, offset):
    x = (offset + 0.4 + 5.0 * np.random.default_rng(0).normal(size=300)).astype(np.float32)
    X = np.column_stack([x, x - np.float32(offset)])
    fit = quiet_fit(model(proposals=None, random_state=0), X)
    assert_allclose(fit.score(X), fit.score(X.astype(float)), atol=1e-4)


@pytest.mark.quarter
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("observation", ["poisson", "multinomial"])
@pytest.mark.parametrize("n_events", [1e2, 1e6])
def test_counts_are_those_of_float64(observation, n_events, sparse):
    rng = np.random.default_rng(0)
    rates = n_events * np.array([[1.0, 2.0], [1.0 + 8.0 / np.sqrt(n_events), 2.0]])
    X = rng.poisson(np.repeat(rates, 100, axis=0)).astype(float)
    single = csr_array(X.astype(np.float32)) if sparse else X.astype(np.float32)
    exact, rough = (
        quiet_fit(DPMixtureVB(observation=observation, random_state=0), x) for x in (X, single)
    )
    assert rough.n_components_ == exact.n_components_
    assert_allclose(rough.lower_bound_, exact.lower_bound_, rtol=1e-12)
    assert rough.predict_proba(single).dtype == np.float32
    assert_allclose(rough.predict_proba(single), exact.predict_proba(X), atol=1e-6)
