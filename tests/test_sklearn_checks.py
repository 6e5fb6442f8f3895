"""scikit-learn's own checks of estimators."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_bnp import (
    HDPHMMVB,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
)


class Halves:
    """Responsibilities that depend on each row alone, not on the others or on chance."""

    def __repr__(self):
        return "halves"

    def __call__(self, X, n_components, random_state):
        return np.eye(2)[(X[:, 0] > 0.5).astype(int)]


# BernoulliObservation is not among them: the checks fit rows of real numbers.
ESTIMATORS = [
    DPMixtureVB(),
    DPMixtureVB(observation=GaussianObservation("diag")),
    DPMixtureVB(observation=GaussianObservation(zero_mean=True)),
    DPMixtureVB(n_components=3, learning_method="stochastic", max_iter=10),
    DPMixtureVB(proposals=None, init_params=Halves()),
    HDPTopicVB(),
    HDPTopicVB(n_components=3, allocation="dirichlet", proposals=None),
    HDPTopicVB(n_components=3, learning_method="stochastic", max_iter=10),
    HDPHMMVB(),
    HDPHMMVB(n_components=3, allocation="dirichlet", proposals=None),
    HDPHMMVB(n_components=3, learning_method="stochastic", max_iter=10),
    HDPHMMVB(observation="autoregressive"),
    MemoryBoundedTopicVB(),
    MemoryBoundedTopicVB(200, observation=GaussianObservation("diag")),
]

# Only what KMeans fails too, for the same reason, and only where rows are drawn at random. Not as
# `expected_failed_checks`, because it depends on the draws whether they fail.
MAY_FAIL = {
    "check_sample_weight_equivalence_on_dense_data": (
        "the rows that start and split components are drawn at random, from repeated rows other "
        "ones than from weighted rows; as in KMeans"
    )
}

# Rows that are given by those before them are not predicted alone, nor in another order.
OF_ROWS_ALONE = dict.fromkeys(
    ("check_methods_sample_order_invariance", "check_methods_subset_invariance"),
    "an autoregressive likelihood explains each row by the rows before it",
)


def expected_failures(estimator):
    return OF_ROWS_ALONE if estimator.observation == "autoregressive" else {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator_passes(estimator, check):
    try:
        check(estimator)
    except AssertionError:
        reason = MAY_FAIL.get(check.func.__name__)
        if reason is None or callable(getattr(estimator, "init_params", None)):
            raise
        pytest.xfail(reason)
