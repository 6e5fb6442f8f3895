"""Parameters that a class does not have: the message names what was meant."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import sklearn_bnp
from sklearn_bnp import (
    HDPHMMVB,
    AutoregressiveObservation,
    Birth,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
    PitmanYorAllocation,
)
from tests.estimators import blobs, chains, documents, names


def classes():
    """All public classes with parameters of their own."""
    for name in sklearn_bnp.__all__:
        cls = getattr(sklearn_bnp, name)
        if inspect.isclass(cls) and issubclass(cls, BaseEstimator) and cls._get_param_names():
            yield pytest.param(cls, id=name)


@pytest.mark.parametrize("cls", list(classes()))
def test_slips_of_the_pen(cls):
    for name in cls._get_param_names():
        slip = f"{name}s" if f"{name}s" not in cls._get_param_names() else f"{name}_"
        with pytest.raises(TypeError, match=names(cls.__name__, repr(slip), f"mean {name!r}")):
            cls(**{slip: None})


CALLS = {
    "of the likelihood": (
        lambda: DPMixtureVB(covariance_type="diag"),
        ["'covariance_type'", "observation=GaussianObservation(covariance_type=...)"],
    ),
    "of another likelihood": (
        lambda: HDPHMMVB(order=2),
        ["'order'", "observation=AutoregressiveObservation(order=...)"],
    ),
    "of the likelihood that is given": (
        lambda: HDPHMMVB(reg_covar=2, observation=AutoregressiveObservation()),
        ["'reg_covar'", "observation="],
    ),
    "a number of clusters": (
        lambda: DPMixtureVB(n_clusters=3),
        ["'n_clusters'", "'n_components'", "learned", "max_components"],
    ),
    "a number of topics": (lambda: HDPTopicVB(n_topics=3), ["'n_topics'", "'n_components'"]),
    "a prior of documents": (lambda: HDPTopicVB(alpha=0.1), ["'alpha'", "'doc_topic_prior'"]),
    "iterations": (lambda: HDPHMMVB(n_iter=10), ["'n_iter'", "'max_iter'"]),
    "the kind of a prior": (
        lambda: DPMixtureVB(weight_concentration_prior_type="dirichlet_process"),
        ["'weight_concentration_prior_type'", "'allocation'"],
    ),
    "by position": (
        lambda: DPMixtureVB(3, "gaussian"),
        ["n_components by position", "'gaussian'", "DPMixtureVB(observation=...)"],
    ),
}


@pytest.mark.parametrize(("call", "words"), CALLS.values(), ids=CALLS)
def test_names_of_elsewhere(call, words):
    with pytest.raises(TypeError, match=names(*words)):
        call()


class Named(DPMixtureVB):
    """A class of a user's own, with a parameter more."""

    def __init__(self, n_components=1, *, title="", random_state=None):
        super().__init__(n_components, random_state=random_state)
        self.title = title


class Any(PitmanYorAllocation):
    """A class that takes what its base takes."""

    def __init__(self, **given):
        super().__init__(**given)


def test_classes_of_users():
    model = Named(2, title="a")
    for copy in (model, clone(model), pickle.loads(pickle.dumps(model))):
        assert (copy.n_components, copy.title) == (2, "a")
    with pytest.raises(TypeError, match=names("Named", "'titel'", "'title'")):
        Named(titel="a")
    with pytest.raises(TypeError, match=names("Any", "'discont'", "'discount'")):
        Any(discont=0.5)


def test_signatures_stay():
    assert list(inspect.signature(Birth).parameters) == [
        name for name in inspect.signature(Birth.__init__).parameters if name != "self"
    ]
    assert inspect.signature(GaussianObservation).parameters["covariance_type"].default == "full"


@pytest.mark.parametrize("seed", [np.random.default_rng(0), -1, 1.5, "0"], ids=str)
def test_seeds_of_methods(seed):
    settings = {"proposals": None, "max_iter": 0, "random_state": 0}
    words = documents(9, 9)[0]
    topics = HDPTopicVB(2, **settings).fit(words)
    for call in (
        DPMixtureVB(2, **settings).fit(blobs(20)[0]).sample,
        topics.sample,
        lambda random_state: topics.score_completion(words, random_state=random_state),
        HDPHMMVB(2, **settings).fit(chains(2, 10)[0]).sample,
    ):
        with pytest.raises(ValueError, match=names("random_state=", seed, "random_state=0")):
            call(random_state=seed)


def test_a_class_without_a_likelihood_by_name():
    with pytest.raises(TypeError, match=names("'n_components'", "'max_components'")):
        MemoryBoundedTopicVB(500, n_components=3)
