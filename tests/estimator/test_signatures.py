"""Methods that fit or score take arguments in the same order in all estimators; see `estimator.base`."""

import inspect

import pytest
from sklearn.base import BaseEstimator

import sklearn_bnp

ORDER = ["lengths", "groups", "sample_weight", "batch_id"]
METHODS = ["fit", "partial_fit", "fit_predict", "fit_transform", "score"]
# scikit-learn's clusterers take weights by position, and so did these from the first.
BY_POSITION = {("DPMixtureVB", name) for name in ("fit", "fit_predict", "score")}


def methods():
    """Name of the class, name of the method, and signature of all of them."""
    for name in sklearn_bnp.__all__:
        cls = getattr(sklearn_bnp, name)
        if inspect.isclass(cls) and issubclass(cls, BaseEstimator) and hasattr(cls, "fit"):
            for method in METHODS:
                if hasattr(cls, method):
                    yield name, method, inspect.signature(getattr(cls, method))


@pytest.mark.parametrize(("name", "method", "signature"), list(methods()))
def test_arguments_of_fit(name, method, signature):
    _, X, y, *others = signature.parameters.values()
    assert (X.name, X.default) == ("X", inspect.Parameter.empty)
    assert (y.name, y.default) == ("y", None)
    assert [p.name for p in others] == sorted((p.name for p in others), key=ORDER.index)
    for parameter in others:
        assert parameter.default is None
        if (name, method, parameter.name) not in {(*pair, "sample_weight") for pair in BY_POSITION}:
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY


def test_all_estimators_are_looked_at():
    found = {name for name, _, _ in methods()}
    assert found == {"DPMixtureVB", "HDPTopicVB", "HDPHMMVB", "MemoryBoundedTopicVB"}
    assert BY_POSITION.issubset((name, method) for name, method, _ in methods())
