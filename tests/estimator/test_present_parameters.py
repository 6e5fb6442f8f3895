"""Parameters that are set between two calls of `partial_fit` are heeded, or the call is refused."""

import pickle
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import (
    HDPHMMVB,
    Birth,
    DirichletAllocation,
    DPAllocation,
    DPMixtureVB,
    HDPTopicVB,
    PitmanYorAllocation,
)

RNG = np.random.default_rng(0)
CENTRES = np.array([[-6.0, 0.0], [0.0, 6.0], [6.0, 0.0]])
BATCHES = [np.repeat(CENTRES, 30, axis=0) + RNG.normal(size=(90, 2)) for _ in range(3)]


def begun(n_batches=1, **params):
    model = DPMixtureVB(random_state=0, **params)
    for i in range(n_batches):
        model.partial_fit(BATCHES[i], batch_id=i)
    return model


@cache
def bounds_of_two_epochs():
    model = begun(2)
    for name in (0, 1):
        model.partial_fit(BATCHES[name], batch_id=name)
    return model.lower_bounds_


@pytest.mark.quarter
@pytest.mark.parametrize("memoized", [True, False], ids=["memoized", "stochastic"])
@pytest.mark.parametrize(
    ("given", "prior"),
    [
        ({"weight_concentration_prior": 30.0}, DPAllocation(30.0)),
        ({"allocation": "dirichlet"}, DirichletAllocation()),
        ({"allocation": PitmanYorAllocation(discount=0.3)}, PitmanYorAllocation(discount=0.3)),
    ],
    ids=lambda v: next(iter(v)) if isinstance(v, dict) else "",
)
def test_another_prior_of_the_weights_is_that_of_the_objective(memoized, given, prior):
    params = {} if memoized else {"learning_method": "stochastic", "n_components": 3}
    model = begun(2, **params)
    model.set_params(**given).partial_fit(BATCHES[0], batch_id=0)
    expected = prior.elbo(model._learner_.counted.n)
    assert_allclose(model.elbo_terms_["allocation"], expected)
    assert_allclose(model.weights_, prior.weights(model._statistics[:, -1]))


def test_another_prior_ends_what_was_planned_under_the_one_before():
    model = begun(2)
    model.partial_fit(BATCHES[0], batch_id=0)  # a lap over both is under way
    assert model._learner_.lap_under_way
    birth = next(p for p in model._learner_.schedule.proposals if p.kind == "birth")
    birth._failures.note(7, 30.0)
    model.set_params(weight_concentration_prior=30.0).partial_fit(BATCHES[2], batch_id=2)
    birth = next(p for p in model._learner_.schedule.proposals if p.kind == "birth")
    assert birth._failures.count(7, 30.0) == 0


@pytest.mark.extended
@pytest.mark.parametrize(
    "given",
    [
        {"weight_concentration_prior": 1.0, "allocation": "dp"},
        {"weight_concentration_prior": None, "allocation": DPAllocation()},
        {"proposals": (Birth(), "merge", "delete", "regroup", "relocate")},
        {"n_components": 9, "max_iter": 1, "tol": 1.0},  # parameters of the start and of fit
    ],
    ids=lambda given: "-".join(given),
)
def test_parameters_that_mean_the_same_change_nothing(given):
    model = begun(2)
    for name in (0, 1):
        model.set_params(**given).partial_fit(BATCHES[name], batch_id=name)
    assert model.lower_bounds_ == bounds_of_two_epochs()


def test_other_proposals_are_taken_and_the_same_ones_go_on():
    model = begun(proposals=None)
    for _ in range(3):
        model.partial_fit(BATCHES[0], batch_id=0)
    assert model.n_components_ == 1
    model.set_params(proposals=("birth", "merge"))
    for _ in range(3):
        model.partial_fit(BATCHES[0], batch_id=0)
    assert model.n_components_ == 3
    _, merge = model._learner_.schedule.proposals
    merge._failures.note((7, 8), 30.0)
    model.set_params(proposals=(Birth(n_seeds=5), "merge")).partial_fit(BATCHES[0], batch_id=0)
    birth, merge = model._learner_.schedule.proposals
    assert birth.n_seeds == 5
    assert merge._failures.count((7, 8), 30.0) == 1
    model.set_params(proposals=None).partial_fit(BATCHES[2] + 50.0, batch_id=2)
    assert model.n_components_ == 3
    with pytest.raises(ValueError, match="'split', which is not known"):
        model.set_params(proposals="split").partial_fit(BATCHES[2])


@pytest.mark.parametrize(
    "given",
    [
        {"max_batches": 1},
        {"memoize": "no"},
        {"max_components": 0},
        {"learning_method": "online"},
        {"weight_concentration_prior": -1.0},
        {"allocation": "normal"},
    ],
    ids=lambda given: next(iter(given)),
)
@pytest.mark.parametrize("estimator", [DPMixtureVB, HDPHMMVB, HDPTopicVB])
def test_values_that_a_parameter_cannot_have_are_refused_in_the_middle_of_a_stream(
    estimator, given
):
    X = RNG.integers(9, size=(20, 4))
    model = estimator(2, proposals=None, random_state=0).partial_fit(X).set_params(**given)
    state = pickle.dumps(model)
    (name,) = given
    with pytest.raises(ValueError, match=f"The '{name}' parameter of {estimator.__name__} must be"):
        model.partial_fit(X)
    assert pickle.dumps(model) == state


@pytest.mark.quarter
@pytest.mark.parametrize("estimator", [DPMixtureVB, HDPHMMVB])
def test_names_mean_nothing_once_batches_are_not_remembered(estimator):
    model = estimator(random_state=0).partial_fit(BATCHES[0], batch_id=0)
    model.set_params(memoize=False)
    for i in (1, 2):
        model.partial_fit(BATCHES[i], batch_id=0)
        assert_allclose(model.summary()["size"].sum(), 90 * (i + 1))


def test_components_with_names_lose_their_order_with_the_first_proposals():
    model = begun(proposals=None, n_components=3, means_init=CENTRES[[2, 0, 1]])
    assert_allclose(model.means_, CENTRES[[2, 0, 1]], atol=1.0)
    uneven = np.concatenate([BATCHES[0], BATCHES[1][:30]])
    model.set_params(proposals=("merge",)).partial_fit(uneven, batch_id=0)
    assert np.all(np.diff(model.weights_) <= 0)


def test_another_prior_of_transitions_is_that_of_the_objective():
    model = HDPHMMVB(random_state=0).partial_fit([BATCHES[0]])
    model.set_params(weight_concentration_prior=20.0, stickiness=3.0).partial_fit([BATCHES[1]])
    assert (model._model.allocation.gamma, model.stickiness_) == (20.0, 3.0)
