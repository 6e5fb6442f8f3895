"""A few huge values hide clusters, and are no secret."""

import warnings

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, DPMixtureVB, GaussianObservation


def with_outliers(size, n=2000, dtype=float):
    """Clear clusters in three columns; a few values of the second one are as large as this."""
    rng = np.random.default_rng(0)
    X = 6.0 * rng.normal(size=(4, 3))[rng.integers(4, size=n)] + rng.normal(size=(n, 3))
    X[::500, 1] = size * rng.normal(size=len(X[::500]))
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "model",
    [
        DPMixtureVB(max_iter=0), HDPHMMVB(max_iter=0),
        DPMixtureVB(observation=GaussianObservation("diag"), max_iter=0),
    ],
)  # fmt: skip
def test_the_column_is_named(model, dtype):
    model.set_params(proposals=None)
    with pytest.warns(UserWarning, match="Nine of ten values in column 1 of X") as caught:
        model.fit(with_outliers(1e7, dtype=dtype))
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="column 1"):
        X = with_outliers(1e7, dtype=dtype)
        X[7, 1] = np.nan
        model.fit(X)


@pytest.mark.parametrize("far", ["codes", "grams"])
def test_an_eighth_of_the_values_may_hide_the_others(far):
    """Codes for missing values, or rows in grams among rows in kilograms."""
    X = 60.0 + with_outliers(1.0)
    X[::8, 1] = -99999.0 if far == "codes" else 1000.0 * X[::8, 1]
    with pytest.warns(UserWarning, match="Half of the values in column 1 of X lie between"):
        DPMixtureVB(max_iter=0, proposals=None).fit(X)


@pytest.mark.parametrize("size", [1.0, 100.0, 1000.0])
def test_outliers_that_hide_nothing(size):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X = with_outliers(size)
        X[: len(X) * 4 // 5, 2] = 0.0  # most values are the same, which is no fault
        DPMixtureVB(max_iter=0, proposals=None).fit(X)


def test_zeros_hide_nothing():
    """Half of the values are zero, so that the quartiles are as near to zero as the nearest other values."""
    size = np.abs(np.random.default_rng(0).normal(size=500))
    X = np.concatenate([-size[:250], np.zeros(500), size[250:]])[:, np.newaxis]
    model = DPMixtureVB(max_iter=0, proposals=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X)
    X[::8] = -99999.0
    with pytest.warns(UserWarning, match="Half of the values in column 0 of X lie between"):
        model.fit(X)


def test_rows_of_weight_zero_hide_nothing():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(300, 1)), 1e-6 * rng.normal(size=(700, 1))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPMixtureVB(random_state=0).fit(X, sample_weight=np.repeat([1.0, 0.0], [300, 700]))
