"""Moments and recording steps of columns in which values are missing: those of what is seen."""

import numpy as np
from numpy.testing import assert_allclose

from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.moments import column_moments
from sklearn_bnp.inputs.resolution import recording


def test_moments_of_what_is_seen():
    """Column by column as numpy has them, whatever the batches; pairs from rows that show both."""
    rng = np.random.default_rng(13)
    X = 50.0 + [1.0, 1e3, 1e-3, 1.0] * rng.standard_normal((70, 4))
    X[rng.random(X.shape) < 0.2] = np.nan
    weight = rng.gamma(1.0, size=70)
    batches = [Batch(0, X[:11], weight[:11]), Batch(1, X[11:], weight[11:])]
    found = column_moments(batches, covariance=True)
    seen = ~np.isnan(X)
    assert_allclose(found.observed, weight @ seen / weight.sum(), rtol=1e-12)
    mean = np.array([np.average(x[s], weights=weight[s]) for x, s in zip(X.T, seen.T, strict=True)])
    assert_allclose(found.mean * found.magnitude, mean, rtol=1e-12)
    for i in range(4):
        for j in range(4):
            both = seen[:, i] & seen[:, j]
            product = (X[both, i] - mean[i]) * (X[both, j] - mean[j])
            expected = np.average(product, weights=weight[both])
            actual = found.covariance[i, j] * found.magnitude[i] * found.magnitude[j]
            assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)
    variance = column_moments(batches, covariance=False).variance
    assert_allclose(variance, found.variance, rtol=1e-12)


def test_steps_of_what_is_seen():
    """Columns recorded to a step show it through missing values; continuous ones have none."""
    rng = np.random.default_rng(14)
    X = np.column_stack([np.round(4 * rng.standard_normal(400)) / 2, rng.standard_normal(400)])
    Y = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    assert_allclose(recording(Y).steps, recording(X).steps, rtol=1e-9)
    assert_allclose(recording(Y).steps, [0.5, 0.0], rtol=1e-9)
    assert recording(np.full((5, 1), np.nan)).steps[0] == 0.0
