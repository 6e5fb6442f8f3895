"""Rows with holes at the ends of what can be: columns that hardly anyone shows, and unequal scales."""

import numpy as np
import pytest

from sklearn_bnp import DPMixtureVB, FixedVarianceGaussianObservation, GaussianObservation


def rows_with_holes(seed=3, n=150):
    """Rows (n, 4) of three clusters, of which a seventh of the entries is missing."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4)) + 5 * np.sqrt(2) * np.eye(3, 4)[labels]
    X[rng.random(X.shape) < 0.15] = np.nan
    return X


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
    X = rows_with_holes()
    X[:, 3] = np.nan
    X[:n_seen, 3] = np.arange(2.0, 2.0 + n_seen)
    model = DPMixtureVB(observation=observation, random_state=0).fit(X)
    assert model.n_components_ == 3
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unequal_scales_of_one_precision(dtype):
    """Sums of squares of the widest column leave rounding errors that are not small beside the others."""
    X = (rows_with_holes() * [1e-8, 1e8, 1.0, 1e-3]).astype(dtype)
    model = DPMixtureVB(observation=GaussianObservation("spherical"), random_state=0).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.lower_bound_)
