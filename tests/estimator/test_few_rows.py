"""The warning that rows are too few for full covariances, and its remedies."""

import warnings

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, DPMixtureVB, GaussianObservation

D = 12
X = np.random.default_rng(0).normal(size=(D + 1, D))


def fitted(x, observation="gaussian", estimator=DPMixtureVB):
    return estimator(observation=observation, proposals=None, max_iter=0).fit(x)


@pytest.mark.parametrize("estimator", [DPMixtureVB, HDPHMMVB])
def test_rows_that_are_fewer_than_columns(estimator):
    words = r"12 rows and 12 columns.*covariance_type='full'.*GaussianObservation\('diag'\).*PCA"
    with pytest.warns(UserWarning, match=words) as found:
        fitted(X[:D], estimator=estimator)
    assert [each.filename for each in found] == [__file__]


@pytest.mark.parametrize(
    ("x", "observation"),
    [
        (X, "gaussian"),
        (X[:D], GaussianObservation("diag")),
        (X[:D], GaussianObservation("spherical")),
        (X[:4, :4], "gaussian"),
    ],
    ids=["one row more", "diagonal", "spherical", "few columns"],
)
def test_nothing_is_said_otherwise(x, observation):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(x, observation)


def test_first_batch_of_a_stream_may_be_small():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPMixtureVB().partial_fit(X[:D])
