"""Objects that were saved before a parameter existed: once loaded, they have its default."""

import pickle
from copy import copy
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sklearn_bnp
from sklearn_bnp import (
    HDPHMMVB,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
    Merge,
)

X = np.random.default_rng(0).normal(size=(30, 2))
GROUPS = np.arange(30) // 5
ESTIMATORS = {
    "mixture": (DPMixtureVB, {}),
    "sequences": (HDPHMMVB, {}),
    "topics": (HDPTopicVB, {"groups": GROUPS}),
    "memory-bounded": (MemoryBoundedTopicVB, {"groups": GROUPS}),
}


@cache
def fitted(kind):
    estimator, given = ESTIMATORS[kind]
    settings = {"observation": "gaussian"}
    if estimator is not MemoryBoundedTopicVB:
        settings.update(proposals=None, max_iter=200)
    return estimator(**settings).fit(X, **given), given


def by_file(model, folder):
    model.save(folder / "model.bnp")
    return sklearn_bnp.load(folder / "model.bnp")


@pytest.mark.quarter
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_estimators(kind, tmp_path):
    model, given = fitted(kind)
    defaults = type(model)().get_params(deep=False)
    expected = model.transform(X, **given)
    for i, (name, default) in enumerate(defaults.items()):
        old = copy(model)
        del vars(old)[name]
        # a file takes ten times as long as a pickle, and is read by the same code
        loaded = by_file(old, tmp_path) if i % 10 == 0 else pickle.loads(pickle.dumps(old))
        assert loaded.get_params(deep=False)[name] == default
        assert type(model).__name__ in repr(loaded)
        assert_array_equal(loaded.transform(X, **given), expected)
    assert loaded.partial_fit(X, **given).n_features_in_ == 2


def test_estimators_that_were_not_fitted():
    old = DPMixtureVB(max_iter=7)
    del vars(old)["n_init"]
    loaded = pickle.loads(pickle.dumps(old))
    assert loaded.get_params() == DPMixtureVB(max_iter=7).get_params()


@pytest.mark.parametrize("component", [GaussianObservation(), Merge()], ids=repr)
def test_components(component, tmp_path):
    """Likelihoods and proposals, alone and as parameters of an estimator."""
    for name, default in type(component)().get_params().items():
        old = copy(component)
        del vars(old)[name]
        assert pickle.loads(pickle.dumps(old)).get_params()[name] == default
        parameter = "observation" if isinstance(old, GaussianObservation) else "proposals"
        model = by_file(DPMixtureVB(**{parameter: old}), tmp_path)
        assert getattr(model, parameter).get_params()[name] == default
