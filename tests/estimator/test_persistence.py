"""Saving models and going on with them: pickle, joblib, skops and copies, at rest and in mid-lap."""

import copy
import io
import json
import pickle
import time
import warnings
from functools import cache
from itertools import chain
from typing import NamedTuple

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from scipy.special import digamma, gammaln
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning

import sklearn_bnp
from sklearn_bnp import (
    HDPHMMVB,
    DPAllocation,
    DPMixtureVB,
    HDPTopicVB,
    MemoryBoundedTopicVB,
    Merge,
    PitmanYorAllocation,
)
from sklearn_bnp.engine.learner import Learner
from sklearn_bnp.estimator.object_graph import graph_of, value_of
from sklearn_bnp.likelihood import ColumnObservation, Likelihood, PoissonObservation
from tests.estimators import FEW_PROPOSALS, assert_same_array, names
from tests.saved_models import IDS, MODELS, X, saved_model

ESTIMATORS = (DPMixtureVB, HDPTopicVB, HDPHMMVB, MemoryBoundedTopicVB)

every_model = pytest.mark.parametrize("name", MODELS)


def through_pickle(protocol):
    return lambda model: pickle.loads(pickle.dumps(model, protocol=protocol))


def through_joblib(**options):
    def saved(model):
        file = io.BytesIO()
        joblib.dump(model, file, **options)
        file.seek(0)
        return joblib.load(file)

    return saved


def through_cloudpickle(model):
    cloudpickle = pytest.importorskip("cloudpickle")
    return pickle.loads(cloudpickle.dumps(model))


def through_skops(model):
    skops_io = pytest.importorskip("skops.io")
    data = skops_io.dumps(model)
    return skops_io.loads(data, trusted=skops_io.get_untrusted_types(data=data))


WAYS = {
    **{f"pickle {n}": through_pickle(n) for n in range(pickle.HIGHEST_PROTOCOL + 1)},
    "joblib": through_joblib(),
    "joblib, compressed": through_joblib(compress=3),
    "cloudpickle": through_cloudpickle,
    "skops": through_skops,
    "deepcopy": copy.deepcopy,
}

every_way = pytest.mark.parametrize("way", WAYS)


def content(model):
    """Everything that a model holds, and what in it is shared."""
    graph = graph_of(vars(model), model)
    return graph.text, [array.tobytes() for array in graph.arrays], graph.checksum()


def assert_same_values(one, other):
    """Everything that two models hold is the same to the last bit, whatever of it is shared."""
    graphs = [graph_of(vars(model), model) for model in (one, other)]
    (root, first), (also, second) = (json.loads(graph.text) for graph in graphs)
    compared = set()

    def compare(a, b):
        """Two values: positions of nodes, or plain ones."""
        assert type(a) is type(b)
        if type(a) is not list:
            assert a == b or a != a
        elif (*a, *b) not in compared:
            compared.add((*a, *b))
            compare_nodes(*first[a[0]], other=second[b[0]])

    def compare_nodes(kind, *content, other):
        assert kind == other[0]
        if kind in ("array", "scalar"):
            arrays = graphs[0].arrays[content[0]], graphs[1].arrays[other[1]]
            assert_same_array(*arrays)
        elif kind == "other":
            mine, its = graphs[0].others[content[0]], graphs[1].others[other[1]]
            states = [x.get_state() if hasattr(x, "get_state") else x for x in (mine, its)]
            np.testing.assert_equal(*states)
        else:
            groups = [content, other[1:]]
            if kind == "new":
                groups = [chain(*group) for group in groups]
            for x, y in zip(*groups, strict=True):
                compare(x, y)

    compare(root, also)


@pytest.mark.quarter
@every_model
@every_way
def test_round_trip(name, way):
    model = saved_model(name)
    copied = WAYS[way](model)
    if way == "deepcopy":  # which leaves values that never change to both
        assert_same_values(copied, model)
    else:
        assert content(copied) == content(model)
    assert type(copied) is type(model)


@cache
def gone_on(name):
    """What a model predicts, and the model after it has gone on without being saved."""
    model = copy.deepcopy(saved_model(name))
    results = MODELS[name].results(model)
    MODELS[name].go_on(model)
    return results, model


@pytest.mark.quarter
@every_model
@pytest.mark.parametrize("way", ["pickle 5", "skops"])
def test_goes_on_as_if_it_had_never_been_saved(name, way, monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)  # laps take no time: histories are equal
    copied, (expected, later) = WAYS[way](saved_model(name)), gone_on(name)
    for one, other in zip(MODELS[name].results(copied), expected, strict=True):
        assert_same_array(one, other)
    MODELS[name].go_on(copied)
    assert_same_values(copied, later)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@every_way
def test_models_that_were_not_fitted(estimator, way):
    model = estimator(observation=PoissonObservation(prior=(1.0, 2.0)))
    copied = WAYS[way](model)
    if way == "deepcopy":  # which leaves values that never change to both
        assert_same_values(copied, model)
    else:
        assert content(copied) == content(model)
    assert content(clone(copied)) == content(clone(model))


@every_model
def test_clone_of_a_loaded_model(name):
    copied = clone(through_pickle(5)(saved_model(name)))
    assert not any(attribute.endswith("_") for attribute in vars(copied))
    assert content(copied) == content(clone(saved_model(name)))


@every_way
def test_one_random_generator(way):
    rng = np.random.RandomState(0)
    copied = WAYS[way]([DPMixtureVB(proposals=None, random_state=rng).fit(X), rng])
    assert copied[0].random_state is copied[1]
    learner = Learner(copied[0]._learner_)
    assert learner.new_uids is learner.scheduler.new_uids


@every_way
def test_requests_of_metadata(way):
    with config_context(enable_metadata_routing=True):
        model = DPMixtureVB().set_fit_request(sample_weight=True)
        copied = WAYS[way](model)
        assert content(copied) == content(model)
        owner = copied._metadata_request.owner
        if isinstance(owner, str):  # of scikit-learn before 1.8
            assert owner == "DPMixtureVB"
        else:
            assert owner is copied
        assert copied.get_metadata_routing().fit.requests == {"sample_weight": True}


def test_shallow_copies_share():
    model = saved_model("mixture")
    assert copy.copy(model)._learner_ is model._learner_


def test_batches_keep_their_names():
    for way in ("pickle 5", "skops"):
        copied = WAYS[way](saved_model("birth under way"))
        assert copied._learner_.memo.batch_ids == tuple(IDS[:3])


class KeepsATable(Merge):
    """A user's proposal, with things in it that formats to save models in do not know."""

    def reset(self):
        super().reset()
        self._table = {(1, "a"): {frozenset({2}), b"c"}, 1: 2, "1": [complex(1, 2), range(3)]}
        self._table[None] = self._table[True, None] = self._method = self.reset


class HasItsOwnForm(Merge):
    """A user's proposal that says itself how it is saved."""

    def __reduce__(self):
        return _with_its_own_form, (self.get_params(), getattr(self, "_failures", None))


def _with_its_own_form(params, failures):
    proposal = HasItsOwnForm(**params)
    proposal._failures, proposal._barren = failures, {}
    return proposal


@cache
def model_with(proposal):
    return DPMixtureVB(proposals=[proposal()], random_state=0).fit(X)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "deepcopy"])
def test_proposals_of_a_user(way):
    model = model_with(KeepsATable)
    copied = WAYS[way](model)
    proposal = copied._learner_.schedule.proposals[0]
    assert proposal._table[None] == proposal.reset
    assert content(copied) == content(model)


@pytest.mark.parametrize("way", ["pickle 0", "pickle 5", "joblib", "cloudpickle"])
def test_proposals_that_say_how_they_are_saved(way):
    model = model_with(HasItsOwnForm)
    copied = WAYS[way](model)
    assert copied._learner_.schedule.proposals[0]._failures._memory == (
        model._learner_.schedule.proposals[0]._failures._memory
    )
    assert np.array_equal(copied.predict_proba(X), model.predict_proba(X))


def test_what_cannot_be_taken_apart_is_for_the_outer_pickler():
    """Of modules, pickle knows nothing and cloudpickle the name."""
    model = DPMixtureVB(init_params=np)
    with pytest.raises(TypeError, match="module"):
        pickle.dumps(model)
    cloudpickle = pytest.importorskip("cloudpickle")
    assert pickle.loads(cloudpickle.dumps(model)).init_params is np


class OwnWeights(DPAllocation):
    """A user's prior of weights, with a parameter that is no number."""

    def __init__(self, note=("mine", None)):
        super().__init__(2.0)
        self.note = note


@pytest.mark.quarter
@pytest.mark.parametrize("way", [way for way in WAYS if way != "deepcopy"])
def test_priors_of_weights_of_a_user(way):
    model = DPMixtureVB(allocation=OwnWeights(), proposals=FEW_PROPOSALS, random_state=0).fit(X)
    copied = WAYS[way](model)
    assert content(copied) == content(model)
    assert copied._model.allocation is copied._learner_.model.allocation
    assert np.array_equal(copied.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(("name", "value"), [("concentration", np.nan), ("discount", 1.5)])
def test_damaged_priors_of_weights(name, value):
    model = DPMixtureVB(allocation=PitmanYorAllocation(discount=0.5), random_state=0).fit(X)
    setattr(model._model.allocation, name, value)
    with pytest.raises(ValueError, match=names("damaged", name)):
        pickle.loads(pickle.dumps(model))


class Times(PoissonObservation):
    """A user's likelihood, whose values have the types that it likes."""

    def __init__(self, form=None, prior=None):
        super().__init__(prior=prior)
        self.form = form

    def bind(self, moments, *, streaming=False):
        return TimesLikelihood(self.form, len(moments.mean))


class TimesPrior(NamedTuple):
    a: object
    b: object


class TimesLikelihood(Likelihood):
    """Exponential times."""

    adapts_prior = True
    may_be_nan = ("largest_",)

    def __init__(self, form, n_features):
        self.form, self.n_features = form, n_features
        self.prior = TimesPrior(np.ones(n_features, dtype=int), 1.0)

    def prepare(self, x):
        return np.ascontiguousarray(x, dtype=float)

    def farthest(self, z):
        return 0.0

    def _posterior(self, prior, s):
        return prior.a + s[..., -1:], prior.b + s[..., :-1]

    def evidence(self, prior, s):
        a, b = self._posterior(prior, s)
        own = gammaln(prior.a) - prior.a * np.log(prior.b)
        return np.sum(gammaln(a) - a * np.log(b) - own, axis=-1)

    def coefficients(self, prior, s):
        a, b = self._posterior(prior, s)
        out = np.column_stack([-a / b, np.sum(digamma(a) - np.log(b), axis=1)])
        return out.astype(np.float32) if self.form is np.float32 else out

    def update_prior(self, prior, s, n_iter):
        """Of other types than the first one: numbers for arrays, arrays for numbers."""
        return TimesPrior(1, np.full(self.n_features, np.float32(1.5)))

    def log_predictive(self, prior, s, z):
        return self.log_table(self.coefficients(prior, s), z)

    def seeding_points(self, prior, s, z, *, whiten=True):
        return np.log(z)

    def attributes(self, prior, s):
        a, b = self._posterior(prior, s)
        return {
            "means_": self.form(b / a),
            "largest_": np.full(len(s), np.inf),
            "parts_": [np.ones(k + 1) for k in range(len(s))],
        }

    def sample(self, attributes, labels, rng):
        return np.zeros((len(labels), self.n_features))


@pytest.mark.quarter
@pytest.mark.parametrize("form", [np.asarray, np.float32, np.rint, np.ndarray.tolist])
@pytest.mark.parametrize("beside", [False, True])
def test_likelihoods_of_a_user(form, beside):
    """Nothing is asked of the types of their priors and attributes."""
    observation = Times(form)
    if beside:
        observation = ColumnObservation([("a", observation, [0, 1]), ("b", "gaussian", [2])])
    times = np.random.default_rng(0).exponential([1.0, 2.0, 3.0], size=(60, 3))
    model = DPMixtureVB(observation=observation, random_state=0).fit(times)
    for way in ("pickle 5", "joblib", "cloudpickle"):
        assert content(WAYS[way](model)) == content(model)
    state = copy.deepcopy(model)
    vars(state)["means_"] = state.means_[1:]
    with pytest.raises(ValueError, match=names("damaged", "means_", "entries")):
        pickle.loads(pickle.dumps(state))


class Noted(DPMixtureVB):
    """A user's class, with an attribute that fit has not set, and a method to leave one out."""

    def __init__(self, n_components=1):
        super().__init__(n_components=n_components)
        self.note_ = "mine"

    def _saved_attributes(self):
        return {name: value for name, value in vars(self).items() if name != "open_file"}


class HasTheUsualState(DPMixtureVB):
    def __init__(self, n_components=1):
        super().__init__(n_components=n_components)

    def __getstate__(self):
        return vars(self).copy()


def test_estimators_of_a_user():
    model = Noted()
    model.open_file = lambda: None
    for each in (model, copy.copy(model).fit(X)):
        copied = pickle.loads(pickle.dumps(each))
        assert copied.note_ == "mine"
        assert vars(copied).keys() == vars(each).keys() - {"open_file"}
    with pytest.raises(ValueError, match=names("HasTheUsualState", "super().__getstate__()")):
        pickle.loads(pickle.dumps(HasTheUsualState()))


class RenamingEdit:
    """What a trial of a user leaves behind when it is accepted."""

    def replay(self, bag, batch_id):
        return bag


def test_edits_of_a_user():
    model = copy.deepcopy(saved_model("birth under way"))
    model._learner_.memo._edits.append(RenamingEdit())
    assert content(pickle.loads(pickle.dumps(model))) == content(model)
    model._learner_.memo._edits[-1] = "no edit"
    with pytest.raises(ValueError, match=names("damaged", "an edit is a str")):
        pickle.loads(pickle.dumps(model))


def test_values_of_every_kind():
    shared = [1.5]
    value = {
        (1, "a"): [None, True, -0.0, 1e300, 10**30, "\ud800é"], 1: {"1": shared, 1: shared},
        "arrays": [
            np.arange(3), np.empty((0, 2), np.float32), np.array(2.0), np.array(["a", None], object),
            np.asfortranarray(np.eye(2)), np.array(["x"]), np.array(["2020-01-01"], "M8[D]"),
            np.arange(4.0)[::2], np.array([[1], [2, 3]], object), np.zeros(2, dtype=">i4"),
        ],
        "scalars": [np.float64(0.1), np.int32(3), np.str_("a"), np.bool_(True), float("inf")],
        "rest": [{1, 2}, frozenset("a"), b"\0", slice(1, 2), range(3), 1j, len, np.add, dict],
    }  # fmt: skip
    made = value_of(graph_of(value))
    np.testing.assert_equal(made, value)
    assert made[1]["1"] is made[1][1]
    assert [a.dtype for a in made["arrays"]] == [a.dtype for a in value["arrays"]]
    assert [type(x) for x in made["scalars"]] == [type(x) for x in value["scalars"]]
    assert np.isnan(value_of(graph_of(float("nan"))))


def test_what_refers_to_itself():
    a, b = [], {}
    a.append(b)
    b["a"] = a
    made = value_of(graph_of(a))
    assert made[0]["a"] is made


# ---------------------------------------------------------------------- versions


def test_another_version_is_warned_of(monkeypatch):
    model, mine = saved_model("mixture"), sklearn_bnp.__version__
    monkeypatch.setattr("sklearn_bnp.estimator.saved_state.__version__", "99.1")
    data = pickle.dumps(model)
    monkeypatch.undo()
    with pytest.warns(InconsistentVersionWarning, match=names("DPMixtureVB", "99.1", mine)):
        copied = pickle.loads(data)
    assert content(copied) == content(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(copied))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_another_format_is_refused(estimator):
    state = {**estimator().__getstate__(), "format": 0, "version": "0.0.7"}
    with pytest.raises(ValueError, match=names(estimator.__name__, "0.0.7", "format 0", "anew")):
        estimator().__setstate__(state)


def test_states_from_before_there_were_formats_are_refused():
    state = vars(saved_model("mixture")).copy()
    with pytest.raises(ValueError, match=names("unknown version", "format", "anew")):
        DPMixtureVB().__setstate__(state)


@pytest.mark.quarter
@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", [bool, np.uint16, np.float32])
@pytest.mark.parametrize("estimator", [DPMixtureVB, HDPTopicVB, HDPHMMVB])
def test_streams_of_all_kinds_of_rows_are_loaded_as_they_were(estimator, kind, container):
    rows = container((np.random.RandomState(0).rand(30, 6) < 0.5).astype(kind))
    whole = {"groups": np.repeat([0, 1, 2], 10)} if estimator is HDPTopicVB else {}
    model = estimator(observation="bernoulli", memoize=True, random_state=0)
    for i in range(2):
        model.partial_fit(rows, batch_id=i, **whole)
    (batch, *_) = model._learner_.stream.pool
    assert batch.x.dtype == kind and issparse(batch.x) == issparse(rows)
    copied = pickle.loads(pickle.dumps(model))
    assert content(copied) == content(model)


def test_a_state_that_is_refused_changes_nothing():
    model = copy.deepcopy(saved_model("topics"))
    before, state = content(model), saved_model("topics").__getstate__()
    state["arrays"][0] = state["arrays"][0][:-1]
    with pytest.raises(ValueError, match="damaged"):
        model.__setstate__(state)
    assert content(model) == before
