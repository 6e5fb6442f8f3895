"""Weights, groups and lengths by scikit-learn's metadata routing, in every estimator."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB, MemoryBoundedTopicVB
from tests.estimators import blobs, chains, documents, grouped_rows

X, _ = blobs(40)
WORDS, _ = documents(20, 20)
ROWS, GROUPS, _ = grouped_rows(8, 10)
SEQUENCES, _ = chains(6, 20)
JOINED = np.concatenate(SEQUENCES)
LENGTHS = [len(x) for x in SEQUENCES]
SEQUENCE = np.repeat(np.arange(6), LENGTHS)


def weights_of(groups):
    """Weights of rows, the same for all rows of a group."""
    return np.exp(np.random.default_rng(0).normal(size=groups.max() + 1))[groups]


class Case(NamedTuple):
    """An estimator, data for it, the metadata that go with them, and a splitter."""

    estimator: Any
    X: Any
    metadata: dict
    cv: Any = KFold(2)


FEW = {"proposals": None, "max_iter": 0, "random_state": 0}
CASES = {
    "mixture": Case(DPMixtureVB(2, **FEW), X, {"sample_weight": weights_of(np.arange(40))}),
    "words": Case(HDPTopicVB(2, **FEW), WORDS, {"sample_weight": weights_of(np.arange(20))}),
    "rows of documents": Case(
        HDPTopicVB(2, observation="gaussian", **FEW),
        ROWS, {"sample_weight": weights_of(GROUPS), "groups": GROUPS}, GroupKFold(2),
    ),
    "bounded": Case(
        MemoryBoundedTopicVB(memory_bound=900),
        ROWS, {"sample_weight": weights_of(GROUPS), "groups": GROUPS}, GroupKFold(2),
    ),
    "sequences": Case(
        HDPHMMVB(2, **FEW), SEQUENCES, {"sample_weight": weights_of(np.arange(6))}
    ),
    "groups of rows": Case(
        HDPHMMVB(2, **FEW), JOINED,
        {"sample_weight": weights_of(SEQUENCE), "groups": SEQUENCE}, GroupKFold(2),
    ),
    "lengths": Case(HDPHMMVB(2, **FEW), JOINED, {"lengths": LENGTHS}),
}  # fmt: skip
METHODS = ("fit", "score", "transform", "predict")
all_cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
# with metadata that can be divided with the rows
divisible = pytest.mark.parametrize(
    "case", [pytest.param(c, id=name) for name, c in CASES.items() if name != "lengths"]
)


@pytest.fixture(autouse=True)
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def taken(method, metadata):
    """The metadata that a method takes: all but ``fit`` and ``score`` take no weights."""
    some = method in ("fit", "score")
    return {name: value for name, value in metadata.items() if some or name != "sample_weight"}


def requesting(case):
    """The estimator, each of whose methods requests all metadata that it takes."""
    model = clone(case.estimator)
    for method in METHODS:
        ask = getattr(model, f"set_{method}_request", None)
        own = taken(method, case.metadata)
        if ask and own:
            ask(**dict.fromkeys(own, True))
    return model


def part(values, rows):
    return [values[i] for i in rows] if isinstance(values, list) else values[rows]


@all_cases
def test_pipeline(case):
    pipe = make_pipeline(FunctionTransformer(), requesting(case)).fit(case.X, **case.metadata)
    alone = clone(case.estimator).fit(case.X, **case.metadata)
    score = pipe.score(case.X, **case.metadata)
    assert score == alone.score(case.X, **case.metadata)
    given = taken("transform", case.metadata)
    np.testing.assert_equal(pipe.transform(case.X, **given), alone.transform(case.X, **given))
    assert pipe.score(case.X, **given) == alone.score(case.X, **given)  # without weights


@all_cases
def test_weights_that_nobody_speaks_of_are_an_error(case):
    if "sample_weight" not in case.metadata:
        return
    model = requesting(case)
    model.set_score_request(sample_weight=None)
    pipe = make_pipeline(FunctionTransformer(), model).fit(case.X, **case.metadata)
    with pytest.raises(UnsetMetadataPassedError, match="set_score_request"):
        pipe.score(case.X, **case.metadata)


@divisible
def test_cross_validation(case):
    found = cross_validate(
        requesting(case), case.X, cv=case.cv, params=case.metadata, error_score="raise"
    )
    splits = case.cv.split(case.X, groups=case.metadata.get("groups"))
    for (train, test), score in zip(splits, found["test_score"], strict=True):
        model, given = clone(case.estimator), case.metadata
        model.fit(part(case.X, train), **{k: v[train] for k, v in given.items()})
        assert score == model.score(part(case.X, test), **{k: v[test] for k, v in given.items()})


@divisible
def test_search(case):
    grid = {"n_components": [1, 2]}
    if isinstance(case.estimator, MemoryBoundedTopicVB):
        grid = {"max_components": [1, 2]}
    search = GridSearchCV(requesting(case), grid, cv=case.cv, error_score="raise")
    assert_scores_as_alone(search.fit(case.X, **case.metadata), case)


@pytest.mark.filterwarnings("ignore:.* did not converge")
@pytest.mark.parametrize("name", ["mixture", "words", "sequences", "groups of rows"])
def test_search_by_halves(name):
    case = CASES[name]
    search = HalvingGridSearchCV(
        requesting(case), {"n_components": [1, 2]}, cv=case.cv, error_score="raise",
        resource="max_iter", min_resources=1, max_resources=2, factor=2,
    )  # fmt: skip
    assert_scores_as_alone(search.fit(case.X, **case.metadata), case)


def assert_scores_as_alone(search, case):
    best = clone(case.estimator).set_params(**search.best_params_).fit(case.X, **case.metadata)
    assert search.score(case.X, **case.metadata) == best.score(case.X, **case.metadata)


def test_predictions_of_folds():
    """scikit-learn passes metadata to ``fit`` alone here."""
    case = CASES["mixture"]
    found = cross_val_predict(requesting(case), X, cv=case.cv, params=case.metadata)
    for train, test in case.cv.split(X):
        weight = case.metadata["sample_weight"][train]
        model = clone(case.estimator).fit(X[train], sample_weight=weight)
        np.testing.assert_array_equal(found[test], model.predict(X[test]))


@all_cases
def test_unions(case):
    """Beside other transformers, and of columns."""
    model = requesting(case)
    expected = clone(case.estimator).fit(case.X, **case.metadata)
    expected = expected.transform(case.X, **taken("transform", case.metadata))
    if isinstance(case.X, list):  # no columns
        return
    given = taken("transform", case.metadata)
    # columns come in another layout in memory, so that sums are rounded in another way
    for both in (
        FeatureUnion([("model", model)]),
        ColumnTransformer([("model", model, list(range(case.X.shape[1])))]),
    ):
        found = both.fit_transform(case.X, **case.metadata)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(both.transform(case.X, **given), found, rtol=1e-9, atol=1e-12)
