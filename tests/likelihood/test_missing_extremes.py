"""Missing values at the ends of what can be: columns that hardly anyone shows, and unequal scales."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import DPMixtureVB, FixedVarianceGaussianObservation, GaussianObservation
from sklearn_bnp.likelihood import full_gaussian_missing
from tests.estimators import peak_memory


def incomplete_rows(seed=3, n=150):
    """Rows (n, 4) of three clusters, of which a seventh of the entries is missing."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4)) + 5 * np.sqrt(2) * np.eye(3, 4)[labels]
    X[rng.random(X.shape) < 0.15] = np.nan
    return X


@pytest.mark.quarter
@pytest.mark.parametrize("n_seen", [1, 2])
@pytest.mark.parametrize(
    "observation",
    [
        FixedVarianceGaussianObservation(),
        GaussianObservation(),
        GaussianObservation("diag"),
        GaussianObservation("spherical"),
    ],
)
def test_a_column_that_hardly_a_row_shows(observation, n_seen):
    """Most components have none of its entries, and nothing is over zero (warnings are errors)."""
    X = incomplete_rows()
    X[:, 3] = np.nan
    X[:n_seen, 3] = np.arange(2.0, 2.0 + n_seen)
    model = DPMixtureVB(observation=observation, random_state=0).fit(X)
    assert model.n_components_ == 3
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.extended
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unequal_scales_of_one_precision(dtype):
    """Sums of squares of the widest column leave rounding errors that are not small beside the others."""
    X = (incomplete_rows() * [1e-8, 1e8, 1.0, 1e-3]).astype(dtype)
    model = DPMixtureVB(observation=GaussianObservation("spherical"), random_state=0).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.lower_bound_)


# ---------------------------------------------------------------------- many patterns


def wide(n, n_columns, dtype=np.float64):
    """Likelihood, prior, statistics (P,) of all, and prepared rows, most with a pattern of their own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_columns)).astype(dtype)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[::7] = np.nan
    model = DPMixtureVB(2, proposals=None, max_iter=0, random_state=0).fit(X[: n // 6])
    model = model._learner_.model
    z, s = model.likelihood.prepare(X), np.empty((1, model.likelihood.n_statistics))
    model.likelihood.summarise(z, np.ones((n, 1)), s)
    return model.likelihood, model.prior, s[0], z


@pytest.mark.parametrize("sparse", [False, True])
def test_memory_does_not_grow_with_patterns(monkeypatch, sparse):
    """A block's table beside rows and their shares, not one of all rows, of which ours has nine."""
    n = 3000
    likelihood, prior, s, z = wide(n, 60)
    table = 8.0 * n * likelihood.n_statistics
    monkeypatch.setattr(full_gaussian_missing, "_BLOCK_NUMBERS", n * likelihood.n_statistics // 9)
    shares, out = np.ones((n, 4)), np.empty((4, likelihood.n_statistics))
    calls = {
        "summarise": lambda: likelihood.summarise(z, shares, out, sparse=sparse),
        "imputed": lambda: likelihood.imputed(prior, s, z),
    }
    peaks = {name: peak_memory(call) / table for name, call in calls.items()}
    # a ninth for the block, and copies of rows, of which a table has thirty
    assert peaks["summarise"] < 0.3
    assert peaks["imputed"] < 0.3
    assert peak_memory(lambda: likelihood.features(z)) / table < 1.6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_are_as_one(monkeypatch, dtype):
    """Sums differ by the rounding of what is added; rows themselves not at all."""
    likelihood, prior, s, z = wide(400, 5, dtype)
    shares = np.random.default_rng(1).random((400, 3)).astype(dtype)

    def results():
        out = np.empty((3, likelihood.n_statistics))
        likelihood.summarise(z, shares, out)
        return out, likelihood.features(z), likelihood.imputed(prior, s, z)

    sums, *rows = results()
    tol = 1e-12 if dtype == np.float64 else 1e-5
    assert_allclose(sums, shares.astype(float).T @ rows[0], rtol=tol, atol=tol * len(z))
    monkeypatch.setattr(full_gaussian_missing, "_BLOCK_NUMBERS", 60 * likelihood.n_statistics + 1)
    blocks, *again = results()
    assert_allclose(blocks, sums, rtol=tol, atol=tol * len(z))
    for actual, expected in zip(again, rows, strict=True):
        assert actual.dtype == dtype
        np.testing.assert_array_equal(actual, expected)
