"""How `DPMixtureVB` starts and learns: every parameter that decides where a fit begins and goes."""

import numpy as np
import pytest

from sklearn_bnp import (
    Birth,
    Delete,
    DirichletAllocation,
    DPAllocation,
    DPMixtureVB,
    Merge,
    PitmanYorAllocation,
)
from sklearn_bnp.engine.proposal import Proposal
from tests.estimators import (
    CENTERS,
    SHARES,
    assert_same_state,
    blobs,
    one_hot,
    public_state,
    same_partition,
)

X, truth = blobs(300)
K = len(CENTERS)
ORDER = np.argsort(SHARES)[::-1]  # of the clusters by weight

# ---------------------------------------------------------------------- initialisation


@pytest.mark.parametrize("init_params", ["k-means++", "random"])
def test_named_initialisations(init_params):
    fixed = DPMixtureVB(4, proposals=None, init_params=init_params, random_state=0).fit(X)
    assert fixed.n_components_ == 4
    free = DPMixtureVB(6, init_params=init_params, random_state=0).fit(X)
    assert same_partition(free.predict(X), truth)


def test_responsibilities_and_no_laps_are_one_global_step():
    resp = one_hot(truth)
    model = DPMixtureVB(init_params=resp, max_iter=0).fit(X)
    assert model.n_components_ == K
    assert model.elbo_terms_["entropy"] == 0.0
    assert model.n_iter_ == 1
    means = np.array([X[truth == k].mean(axis=0) for k in ORDER])
    np.testing.assert_allclose(model.means_, means, atol=0.02)  # the prior is worth 0.01 rows
    soft = 0.8 * resp + 0.2 / K
    model = DPMixtureVB(init_params=soft, max_iter=0, proposals=None).fit(X)
    assert model.elbo_terms_["entropy"] == pytest.approx(-np.sum(soft * np.log(soft)))


def test_callable_initialisation_is_given_what_it_needs():
    seen = []

    def init(rows, n_components, random_state):
        seen.append((rows, n_components, random_state))
        return one_hot(truth)

    model = DPMixtureVB(5, init_params=init, max_iter=0).fit(X)
    (rows, n_components, random_state) = seen[0]
    assert np.array_equal(rows, X)
    assert n_components == 5
    assert isinstance(random_state, np.random.RandomState)
    given = DPMixtureVB(init_params=one_hot(truth), max_iter=0).fit(X)
    assert_same_state(public_state(model), public_state(given))


def test_order_of_given_components_does_not_matter():
    resp = one_hot(truth)
    first = DPMixtureVB(init_params=resp, max_iter=0).fit(X)
    second = DPMixtureVB(init_params=resp[:, ::-1], max_iter=0).fit(X)
    assert first.lower_bound_ == pytest.approx(second.lower_bound_, rel=1e-12)
    np.testing.assert_allclose(first.covariances_, second.covariances_, atol=1e-12)
    assert np.array_equal(first.predict(X), second.predict(X))


def test_means_init():
    model = DPMixtureVB(K, means_init=CENTERS, proposals=None, max_iter=0).fit(X)
    assert same_partition(model.predict(X), truth)
    # they come before init_params
    both = DPMixtureVB(K, means_init=CENTERS, init_params=np.ones((300, 1)), max_iter=0).fit(X)
    assert both.n_components_ == K


def test_means_init_without_n_components():
    with pytest.raises(ValueError, match=rf"means_init has shape.*Set n_components={K} to start"):
        DPMixtureVB(means_init=CENTERS).fit(X)


def test_means_init_of_a_bernoulli_mixture():
    means = [[0.9, 0.9, 0.1], [0.1, 0.1, 0.9]]
    rows = np.array([[1, 1, 0]] * 20 + [[0, 0, 1]] * 10, dtype=float)
    model = DPMixtureVB(2, observation="bernoulli", means_init=means, max_iter=0).fit(rows)
    assert np.array_equal(model.predict(rows), np.repeat([0, 1], [20, 10]))


def test_n_init_keeps_the_best():
    params = {"n_components": 5, "proposals": None, "init_params": "random"}
    rng = np.random.RandomState(0)
    each = [DPMixtureVB(random_state=rng, **params).fit(X).lower_bound_ for _ in range(5)]
    assert len(set(each)) > 1
    best = DPMixtureVB(random_state=0, n_init=5, **params).fit(X)
    assert best.lower_bound_ == max(each)


def test_warm_start_goes_on():
    model = DPMixtureVB(random_state=0).fit(X)
    cold = public_state(model)
    model.set_params(warm_start=True).fit(X)
    assert model.n_components_ == K
    assert model.n_iter_ < cold["n_iter_"]
    assert model.lower_bound_ == pytest.approx(cold["lower_bound_"], rel=1e-6)
    model.fit(np.concatenate([X, blobs(100, seed=1)[0]]))  # other rows, same components
    assert model.n_components_ == K


# ---------------------------------------------------------------------- learning


@pytest.mark.quarter
@pytest.mark.parametrize(
    "params", [{"learning_method": "full"}, {"n_batches": 7}, {"batch_size": 13}]
)
def test_learning_methods_find_the_same(params):
    model = DPMixtureVB(random_state=0, **params).fit(X)
    reference = DPMixtureVB(random_state=0).fit(X)
    assert same_partition(model.predict(X), truth)
    assert model.lower_bound_ == pytest.approx(reference.lower_bound_, rel=1e-5)


def test_stochastic_learning():
    model = DPMixtureVB(
        K, learning_method="stochastic", batch_size=50, max_iter=10, means_init=CENTERS,
        random_state=0,
    ).fit(X)  # fmt: skip
    assert same_partition(model.predict(X), truth)
    assert not model.converged_
    # the last lap is exact
    resp = model.predict_proba(X)
    exact = DPMixtureVB(init_params=resp, max_iter=0, proposals=None).fit(X)
    assert model.lower_bound_ == pytest.approx(exact.lower_bound_, rel=1e-4)


def test_sparse_responsibilities():
    model = DPMixtureVB(6, n_nonzero_resp=2, proposals=None, random_state=0).fit(X)
    resp = model.predict_proba(X)
    assert np.count_nonzero(resp, axis=1).max() <= 2
    np.testing.assert_allclose(resp.sum(axis=1), 1.0, atol=1e-12)


def test_no_proposals_is_a_fixed_truncation():
    for proposals in (None, (), []):
        model = DPMixtureVB(5, proposals=proposals, random_state=0).fit(X)
        assert [lap.n_components for lap in model.history_] == [5] * model.n_iter_
        assert not any(lap.tried for lap in model.history_)


@pytest.mark.parametrize(
    ("proposals", "least", "most"),
    [
        ("birth", 3, 9),
        (["birth", "merge"], 3, 3),
        ((Birth(n_seeds=4), Merge(), Delete()), 3, 3),
        (Merge(max_members=2), 1, 6),
        ((Delete(),), 1, 6),
    ],
    ids=str,
)
def test_proposals_by_name_and_by_object(proposals, least, most):
    start = 1 if least > 1 else 6
    model = DPMixtureVB(start, proposals=proposals, random_state=0).fit(X)
    assert least <= model.n_components_ <= most
    parts = proposals if isinstance(proposals, (tuple, list)) else [proposals]
    kinds = {part.kind if isinstance(part, Proposal) else part for part in parts}
    assert set().union(*(lap.tried for lap in model.history_)) <= kinds
    for part in parts:  # users' objects are cloned, not worked with
        assert not isinstance(part, Proposal) or set(vars(part)) == set(part.get_params())


@pytest.mark.extended
def test_births_stop_at_max_components():
    model = DPMixtureVB(max_components=2, random_state=0).fit(X)
    assert model.n_components_ == 2
    assert max(lap.n_components for lap in model.history_) == 2


@pytest.mark.extended
def test_allocation_and_concentration():
    objectives = set()
    priors = {
        "dp": DPAllocation,
        "dirichlet": DirichletAllocation,
        "pitman-yor": PitmanYorAllocation,
    }
    for allocation, family in priors.items():
        for concentration in (None, 5.0):
            model = DPMixtureVB(
                allocation=allocation, weight_concentration_prior=concentration, random_state=0
            ).fit(X)
            assert same_partition(model.predict(X), truth)
            objectives.add(model.lower_bound_)
            given = family() if concentration is None else family(concentration)
            same = DPMixtureVB(allocation=given, random_state=0).fit(X)
            assert same.lower_bounds_ == model.lower_bounds_
    assert len(objectives) == 4  # few large clusters want no discount: the Dirichlet process
    assert model.discount_ == 0.0


@pytest.mark.extended
def test_another_allocation_later():
    """A warm start and `partial_fit` go on with the allocation as it is now."""
    model = DPMixtureVB(allocation=PitmanYorAllocation(discount=0.5), random_state=0).fit(X)
    assert model.discount_ == 0.5
    model.partial_fit(X[:50])
    assert model.discount_ == 0.5
    model.set_params(allocation="dp").partial_fit(X[:50])
    assert not hasattr(model, "discount_")
    model.set_params(warm_start=True).fit(X)
    assert model.lower_bound_ == pytest.approx(DPMixtureVB(random_state=0).fit(X).lower_bound_)
    model.set_params(allocation=PitmanYorAllocation(discount=0.25)).fit(X)
    assert model.discount_ == 0.25


# ---------------------------------------------------------------------- reproducibility


@pytest.mark.extended
def test_seed_decides_everything():
    def fit(seed):
        return public_state(DPMixtureVB(5, n_batches=3, random_state=seed).fit(X))

    assert_same_state(fit(0), fit(0))
    assert_same_state(fit(np.random.RandomState(4)), fit(np.random.RandomState(4)))


@pytest.mark.extended
def test_threads_change_nothing():
    rows = blobs(5000)[0]
    one, two = (DPMixtureVB(4, n_jobs=n, n_batches=2, random_state=0).fit(rows) for n in (1, 2))
    assert_same_state(public_state(one), public_state(two))
    assert np.array_equal(one.predict_proba(rows), two.predict_proba(rows))


def test_integer_weights_are_repetitions():
    weight = np.random.default_rng(0).integers(0, 4, size=len(X))
    resp, common = one_hot(truth), {"proposals": None, "tol": 0.0, "max_iter": 0}
    weighted = DPMixtureVB(init_params=resp, **common).fit(X, sample_weight=weight)
    repeated = DPMixtureVB(init_params=resp.repeat(weight, axis=0), **common).fit(
        X.repeat(weight, axis=0)
    )
    for name in ("lower_bound_", "weights_", "means_", "covariances_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-9)
    np.testing.assert_allclose(weighted.score_samples(X), repeated.score_samples(X), rtol=1e-9)
    everywhere = DPMixtureVB(random_state=0).fit(X, sample_weight=2.0)
    assert everywhere.n_components_ == K
    assert everywhere.lower_bound_ < weighted.lower_bound_


@pytest.mark.quarter
@pytest.mark.parametrize("shift", [1e4, 1e6])
def test_warm_starts_far_from_the_first_data(shift):
    """Single precision gives way to double where the units of the first fit ask for it."""
    rng = np.random.default_rng(21)
    X = rng.normal(size=(200, 2)).astype(np.float32)
    far = X + shift * (np.arange(200) % 2)[:, np.newaxis].astype(np.float32)
    bounds = []
    for dtype in (np.float32, np.float64):
        model = DPMixtureVB(warm_start=True, random_state=0).fit(X.astype(dtype))
        bounds.append(model.fit(far.astype(dtype)).lower_bound_)
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-3)


def test_few_rows_of_weight_among_many():
    rng = np.random.default_rng(22)
    X, weight = rng.normal(size=(20_000, 2)), np.zeros(20_000)
    weight[[17, 4_000, 12_345]] = 1.0
    model = DPMixtureVB(random_state=0).fit(X, sample_weight=weight)
    assert model.n_components_ == 1
