"""Components of a fixed number that the user has named, by giving them, keep their places.

All others are listed by decreasing weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB
from tests.estimators import (
    CENTERS,
    TOPICS,
    blobs,
    chains,
    documents,
    grouped_rows,
    names,
    one_hot,
)

X, LABELS = blobs(150)
COUNTS, _ = documents(60)
ROWS, GROUPS, OF_ROWS = grouped_rows(20, 15)
SEQUENCES, STATES = chains(5, 40)
LENGTHS = [len(x) for x in SEQUENCES]
STEPS, PATH = np.concatenate(SEQUENCES), np.concatenate(STATES)


class Given(NamedTuple):
    """A way to name components.

    Attributes
    ----------
    estimator : type
    data, keywords : ndarray, dict
        For `fit`.
    components : ndarray
        What is given, whose axis ``axis`` is that of components.
    axis : int
    parameter : str
        What it is given as.
    says : callable
        ``says(model)`` -> components (n,) of rows, or of documents.
    fixed : dict
        Other parameters.
    """

    estimator: type
    data: np.ndarray
    keywords: dict
    components: np.ndarray
    axis: int
    parameter: str
    says: Callable
    fixed: dict = {}

    def model(self, order, how=lambda given: given, **params):
        """The estimator, whose components are given in this order."""
        given = how(np.take(self.components, order, axis=self.axis))
        params = {"proposals": None, "random_state": 0, "max_iter": 100, **self.fixed, **params}
        return self.estimator(len(order), **{self.parameter: given}, **params)


def _topics_of_documents(model):
    return model.transform(COUNTS).argmax(axis=1)


GIVEN = {
    "means": Given(DPMixtureVB, X, {}, CENTERS, 0, "means_init", lambda m: m.predict(X)),
    "responsibilities": Given(
        DPMixtureVB, X, {}, one_hot(LABELS), 1, "init_params", lambda m: m.predict(X)
    ),
    "topics": Given(HDPTopicVB, COUNTS, {}, TOPICS, 0, "init_params", _topics_of_documents),
    "finite topics": Given(
        HDPTopicVB, COUNTS, {}, TOPICS, 0, "init_params", _topics_of_documents,
        {"allocation": "dirichlet"},
    ),
    "rows of documents": Given(
        HDPTopicVB, ROWS, {"groups": GROUPS}, one_hot(OF_ROWS), 1, "init_params",
        lambda m: m.predict(ROWS, groups=GROUPS), {"observation": "gaussian"},
    ),
    "states": Given(
        HDPHMMVB, STEPS, {"lengths": LENGTHS}, one_hot(PATH), 1, "init_params",
        lambda m: m.predict(STEPS, lengths=LENGTHS),
    ),
}  # fmt: skip

ORDERS = [(0, 1, 2), (2, 0, 1), (1, 2, 0)]  # of which two are not by weight, in each of them

given = pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)


def learned(given, model, call):
    if call == "fit":
        return model.fit(given.data, **given.keywords)
    for _ in range(3):
        model.partial_fit(given.data, batch_id="all", **given.keywords)
    return model


def in_places(model):
    """Attributes with a place for each component, in all of their axes that have one.

    Not the sticks' weights of states: their optimum depends on the order of states of like weights. Nor the
    names of components, which are numbers in the order in which these were given.
    """
    K, found = model.n_components_, {}
    for name, value in vars(model).items():
        if name == "weights_" and isinstance(model, HDPHMMVB):
            continue
        if name == "component_ids_":
            continue
        if name.endswith("_") and isinstance(value, np.ndarray) and value.shape[:1] == (K,):
            found[name] = value
    return found


def moved(name, value, order):
    value = value[list(order)]
    return value[:, list(order)] if name == "transmat_" else value


@pytest.mark.quarter
@given
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize("method", ["memoized", "stochastic"])
def test_named_components_keep_their_places(given, call, method):
    """Another order of what is given is the same order of what is found, in all attributes."""
    settings = {"learning_method": method, "max_iter": 20 if method == "stochastic" else 100}
    models = [learned(given, given.model(order, **settings), call) for order in ORDERS]
    first, says = in_places(models[0]), given.says(models[0])
    assert len(first) >= 2
    for order, model in zip(ORDERS, models, strict=True):
        assert_allclose(model.lower_bound_, models[0].lower_bound_, rtol=1e-4)
        for name, value in in_places(model).items():
            # the stopping rules of sticks and documents leave that much
            assert_allclose(
                value, moved(name, first[name], order), rtol=0.02, atol=0.02, err_msg=name
            )
        assert_array_equal(np.array(order)[given.says(model)], says)


@given
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_the_first_is_the_first_that_was_given(given, call):
    model = learned(given, given.model((1, 2, 0)), call)
    truth = TOPICS if given.data is COUNTS else CENTERS
    distance = np.linalg.norm(model.means_[:, np.newaxis] - truth, axis=2)
    assert_array_equal(distance.argmin(axis=1), [1, 2, 0])


@given
def test_callables_name_components_too(given):
    if given.parameter == "means_init":
        pytest.skip("means are never given by a callable")
    array = given.model((1, 2, 0)).fit(given.data, **given.keywords)
    called = given.model((1, 2, 0), lambda found: lambda X, n_components, random_state: found)
    called.fit(given.data, **given.keywords)
    assert_array_equal(called.means_, array.means_)


@given
def test_callables_are_called_for_each_of_several_fits(given):
    """The second of three fits begins with good components, and wins."""
    if given.parameter == "means_init":
        pytest.skip("means are never given by a callable")
    good = given.model((1, 2, 0), max_iter=0).fit(given.data, **given.keywords)
    poor = np.ones_like(good.init_params) / good.init_params.shape[1]
    drawn = []

    def init(X, n_components, random_state):
        drawn.append(random_state.rand())
        return good.init_params if len(drawn) == 2 else poor

    model = given.model((1, 2, 0), lambda found: init, max_iter=0, n_init=3)
    model.fit(given.data, **given.keywords)
    assert len(set(drawn)) == 3
    assert_array_equal(model.means_, good.means_)
    again = given.model((1, 2, 0), lambda found: init, max_iter=0, n_init=3)
    before, drawn[:] = list(drawn), []
    assert_array_equal(again.fit(given.data, **given.keywords).means_, model.means_)
    assert drawn == before


@given
def test_others_are_sorted(given):
    """Where proposals may change the number, or nobody has named components."""
    weights = {HDPTopicVB: "topic_probs_"}.get(given.estimator, "weights_")
    changing = given.model((2, 1, 0), proposals=("merge",))
    nobody = {given.parameter: None if given.parameter == "means_init" else "random"}
    unnamed = given.model((2, 1, 0)).set_params(**nobody)
    for model in (changing, unnamed):
        model.fit(given.data, **given.keywords)
        # of states by their rows, whose order may differ from that of weights
        sizes = (
            np.bincount(given.says(model))
            if given.estimator is HDPHMMVB
            else getattr(model, weights)
        )
        assert np.all(np.diff(sizes) <= 0)


def test_warm_starts_keep_names():
    model = GIVEN["means"].model((2, 0, 1), warm_start=True).fit(X)
    means = model.means_.copy()
    assert np.any(np.diff(model.weights_) > 0)
    for _ in range(2):
        assert_allclose(model.fit(X).means_, means, atol=0.1)
    other = DPMixtureVB(3, proposals=None, warm_start=True, random_state=0).fit(X).fit(X)
    assert np.all(np.diff(other.weights_) <= 0)
    model.set_params(proposals=("birth", "merge", "delete")).fit(X)
    assert np.all(np.diff(model.weights_) <= 0)


def test_streams_after_a_fit_keep_names():
    for name, given in GIVEN.items():
        model = learned(given, given.model((1, 2, 0)), "fit")
        before = model.means_.copy()
        learned(given, model, "partial_fit")
        assert_allclose(model.means_, before, atol=0.5, err_msg=name)


# ---------------------------------------------------------------------- max_components


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize("proposals", [None, ("birth", "merge", "delete")])
@given
def test_no_fit_starts_beyond_max_components(given, call, proposals):
    order = (0, 1, 2)
    named = given.model(order, proposals=proposals, max_components=2)
    alone = given.model(order, proposals=proposals, max_components=2).set_params(n_components=1)
    if given.parameter == "means_init":
        alone = named
    else:
        with pytest.raises(
            ValueError, match=names("init_params", "3", "max_components=2", "raise")
        ):
            learned(given, alone, call)
    source = "n_components=3" if given.parameter == "means_init" else "init_params"
    with pytest.raises(ValueError, match=names(source, "3", "max_components=2", "raise")):
        learned(given, named, call)
    for model in (named, alone):
        assert not [name for name in vars(model) if name.endswith("_")]
    assert learned(given, named.set_params(max_components=3), call).n_components_ <= 3


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@given
def test_number_of_components_is_that_which_was_given(given, call):
    """Arrays and callables override ``n_components``, which may then be more than ``max_components``."""
    if given.parameter == "means_init":
        pytest.skip("it goes with n_components")
    model = given.model((0, 1, 2), max_components=5).set_params(n_components=10)
    assert learned(given, model, call).n_components_ == 3
    value = model.init_params
    model.set_params(init_params=lambda X, n_components, rng: value)
    assert learned(given, model, call).n_components_ == 3


def test_no_warm_start_begins_beyond_max_components():
    model = GIVEN["means"].model((0, 1, 2), warm_start=True).fit(X)
    with pytest.raises(ValueError, match=names("warm_start=True", "3", "max_components=2")):
        model.set_params(max_components=2, n_components=1, means_init=None).fit(X)
