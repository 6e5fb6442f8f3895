"""The example of a prior of weights, and the Pitman-Yor process: what they promise."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from sklearn.base import clone

from sklearn_bnp import DPMixtureVB, FixedVarianceGaussianObservation, PitmanYorAllocation
from tests.example_scripts import loaded
from tests.laws.families import FAMILIES, Allocation
from tests.laws.harness import given, one_hot, quiet_fit, random_resp
from tests.laws.test_monotone import assert_rises
from tests.reference import partitions
from tests.reference.allocations import FiniteDirichlet

own_prior = loaded("own_prior")
PoissonAllocation = own_prior.PoissonAllocation


@pytest.mark.extended
def test_it_runs(capsys):
    own_prior.main()
    assert re.findall(r"K=(\d+)", capsys.readouterr().out) == ["2", "3", "3"]


@pytest.mark.extended
def test_sizes_that_follow_a_power_law():
    """The Pitman-Yor process finds more clusters, and has a higher bound."""
    rng, spread = np.random.default_rng(0), 6.0
    sizes = np.ceil(150 / np.arange(1, 41) ** 1.4).astype(int)
    centers = spread * rng.standard_normal((40, 4))
    truth = rng.permutation(np.repeat(np.arange(40), sizes))
    X = centers[truth] + rng.standard_normal((len(truth), 4))
    observation = FixedVarianceGaussianObservation(
        variance=np.ones(4), mean_prior=np.zeros(4), mean_variance_prior=np.full(4, spread**2)
    )
    dp, *others = [
        DPMixtureVB(
            allocation=prior, observation=observation, proposals=("birth", "merge", "delete"),
            random_state=0,
        ).fit(X)
        for prior in ("dp", "pitman-yor", PitmanYorAllocation(discount=0.5))
    ]  # fmt: skip
    for model in others:
        assert model.n_components_ > dp.n_components_
        assert model.lower_bound_ > dp.lower_bound_


class PoissonTwin:
    """Sum over the numbers of components, up to many, of `FiniteDirichlet` priors of partitions."""

    def __init__(self, rate, concentration):
        self.rate, self.concentration = rate, concentration

    def log_prior_partition(self, sizes):
        K = np.arange(1, 60)
        log_p = (K - 1) * np.log(self.rate) - self.rate - np.cumsum(np.log(np.maximum(K - 1, 1)))
        given_k = [FiniteDirichlet(self.concentration, k).log_prior_partition(sizes) for k in K]
        return logsumexp(log_p + given_k)


@pytest.mark.parametrize("rate", [0.5, 3.0])
@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_its_objective_is_a_lower_bound(rate, kind):
    rng = np.random.default_rng(0)
    X, labels = FAMILIES[0].rows(rng, 6)
    resp = {"soft": random_resp(rng, 6, 3), "hard": one_hot(labels)}[kind]
    allocation = Allocation("", {"allocation": PoissonAllocation(rate, 0.8)}, None)
    g = given(FAMILIES[0], X, resp, None, allocation)
    twin = PoissonTwin(rate, 0.8)
    of_two = [twin.log_prior_partition(sizes) for sizes in ([2], [1, 1])]
    assert logsumexp(of_two) == pytest.approx(0.0, abs=1e-12)
    assert g.estimator.lower_bound_ <= partitions.log_marginal(g.twin, twin, g.z) + 1e-9


def test_its_weights_are_derivatives():
    n, prior = np.array([20.0, 7.0, 0.5]), PoissonAllocation(2.0, 0.7)
    step = 1e-5 * np.eye(3)
    slopes = (prior.elbo(n + step) - prior.elbo(n - step)) / 2e-5
    assert_allclose(prior.expected_log_weights(n), slopes, rtol=1e-6)
    assert_allclose(prior.weights(n).sum(), 1.0)


def test_it_is_an_estimator():
    X = own_prior.clusters(300, np.random.default_rng(1))
    model = DPMixtureVB(6, allocation=PoissonAllocation(), n_batches=3, random_state=0)
    model.set_params(allocation__rate=4.0)
    assert clone(model).allocation.rate == 4.0
    assert_rises(quiet_fit(model, X).lower_bounds_)
    with pytest.raises(ValueError, match="rate"):
        model.set_params(allocation__rate=-1.0).fit(X)
