"""Clusters that differ in rare ones show only in large samples, in which births look when nothing is left."""

import numpy as np
import pytest

from sklearn_bnp import DPMixtureVB
from tests.laws.harness import quiet_fit


def rare_ones(seed, n_rows=50_000, n_features=50, n_components=4):
    rng = np.random.default_rng(seed)
    p = np.minimum(0.13 * rng.gamma(0.15, 1.0, size=(n_components, n_features)), 0.9)
    of = rng.integers(n_components, size=n_rows)
    return (rng.random((n_rows, n_features)) < p[of]).astype(np.uint8), of


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_clusters_of_rare_ones_are_found(seed):
    """Within a seventh of what the true clusters gain; two of these four ended as one component."""
    X, of = rare_ones(seed)
    model = DPMixtureVB(observation="bernoulli", random_state=0)
    bound = quiet_fit(model, X).lower_bound_
    alone, truth = (
        quiet_fit(model.__class__(observation="bernoulli", init_params=start, proposals=None), X)
        for start in (np.ones((len(X), 1)), np.eye(4)[of])
    )
    assert bound > truth.lower_bound_ - 0.15 * (truth.lower_bound_ - alone.lower_bound_)


def test_rows_that_are_one_component_stay_one():
    X = (np.random.default_rng(0).random((25_000, 20)) < 0.02).astype(np.uint8)
    assert DPMixtureVB(observation="bernoulli", random_state=0).fit(X).n_components_ == 1
