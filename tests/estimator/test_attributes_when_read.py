"""Fitted attributes after `partial_fit`, which are computed when they are read, and ``labels_``."""

import io
import pickle
from copy import copy, deepcopy
from functools import cache

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

import sklearn_bnp
from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB, MemoryBoundedTopicVB
from sklearn_bnp.engine import streaming
from sklearn_bnp.estimator.publishing import complete
from sklearn_bnp.estimator.saved_state import _state
from tests.estimators import FEW_PROPOSALS, assert_same_state, blobs, documents, public_state

X, _ = blobs(300)
COUNTS, _ = documents(60)
MIXTURE = DPMixtureVB(proposals=FEW_PROPOSALS, random_state=0)
STREAMS = {
    "mixture": (MIXTURE, np.array_split(X, 3)),
    "endless mixture": (clone(MIXTURE).set_params(memoize=False), np.array_split(X, 3)),
    "topics": (HDPTopicVB(3, proposals=None, random_state=0), np.array_split(COUNTS, 3)),
    "sequences": (HDPHMMVB(3, proposals=None, random_state=0), np.array_split(X, 3)),
}


@cache
def streamed(name, n_batches):
    """A model after some batches."""
    model, batches = STREAMS[name]
    model = clone(model)
    for batch in batches[:n_batches]:
        model.partial_fit(batch)
    return model


def unread(name, n_batches=2):
    """A model after some batches, of which no attribute was read."""
    model = copy(streamed(name, n_batches))
    assert not {"means_", "n_components_", "lower_bound_"} & vars(model).keys()
    return model


@pytest.fixture(params=STREAMS)
def name(request):
    return request.param


@pytest.mark.quarter
def test_attributes_do_not_depend_on_when_they_are_read(name):
    read, batches = clone(STREAMS[name][0]), STREAMS[name][1]
    for batch in batches:
        complete(read.partial_fit(batch), labels=True)
    assert_same_state(public_state(unread(name, 3)), public_state(read))


def saved(model):
    model.save(path := "model.bnp")
    return sklearn_bnp.load(path)


def by_joblib(model):
    joblib.dump(model, file := io.BytesIO())
    file.seek(0)
    return joblib.load(file)


WAYS = [copy, deepcopy, lambda model: pickle.loads(pickle.dumps(model)), by_joblib, saved]


@pytest.mark.quarter
@pytest.mark.parametrize("way", WAYS, ids=["copy", "deepcopy", "pickle", "joblib", "save"])
def test_copies_have_all_attributes(name, way, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other = way(unread(name))
    assert_same_state(public_state(other), public_state(unread(name)))
    batch = STREAMS[name][1][2]
    assert_same_state(public_state(other.partial_fit(batch)), public_state(unread(name, 3)))


def test_a_call_that_fails_leaves_attributes_of_before(name, monkeypatch):
    model = unread(name)

    def fail(*args):
        raise RuntimeError("a fault")

    monkeypatch.setattr(streaming, "_come", fail)
    with pytest.raises(RuntimeError, match="a fault"):
        model.partial_fit(STREAMS[name][1][2])
    monkeypatch.undo()
    assert_same_state(public_state(model), public_state(unread(name)))


def test_parameters_set_later_do_not_change_them(name):
    model = unread(name).set_params(observation="poisson", proposals=None)
    assert_same_state(public_state(model), public_state(unread(name)))


def test_an_attribute_that_is_set_stays(name):
    model = unread(name)
    model.weights_ = "mine"
    assert model.n_components_ > 0
    assert model.weights_ == "mine"


def test_attributes_that_wait_may_be_deleted(name):
    """They are computed when they are read, as those that were there."""
    for attribute in public_state(unread(name)).keys() - {"labels_"}:
        model = unread(name)
        delattr(model, attribute)
        assert_same_state(public_state(model), public_state(unread(name)))
    with pytest.raises(AttributeError, match="mean_"):
        del model.mean_


def test_names_are_known_before_they_are_read(name):
    model = unread(name)
    check_is_fitted(model)
    names = {each for each in dir(model) if each.endswith("_")}
    assert names >= public_state(model).keys()
    for other in ("covariance_", "feature_names_in_", "_means"):
        with pytest.raises(AttributeError, match=f"has no attribute '{other}'"):
            getattr(model, other)


def test_a_stream_computes_none_that_nobody_reads(monkeypatch):
    model = unread("mixture")
    likelihood, calls = type(model._learner_.model.likelihood), []
    attributes = likelihood.attributes
    monkeypatch.setattr(
        likelihood, "attributes", lambda *args: calls.append(1) or attributes(*args)
    )
    for batch in STREAMS["mixture"][1]:
        model.partial_fit(batch)
    assert not calls
    assert len(model.means_) == len(model.covariances_) == model.n_components_
    assert len(calls) == 1


# ---------------------------------------------------------------------- labels


def test_labels_of_a_fit():
    for rows, observation in [(X, "gaussian"), (csr_array(COUNTS), "multinomial")]:
        model = clone(MIXTURE).set_params(observation=observation).fit(rows)
        labels = model.predict(rows)
        np.testing.assert_array_equal(model.labels_, labels)
        assert model.labels_.dtype == labels.dtype
        np.testing.assert_array_equal(clone(model).fit_predict(rows), labels)


@pytest.mark.quarter
@pytest.mark.parametrize("params", [{}, {"memoize": False}, {"max_batches": 2}])
def test_labels_of_the_last_batch(params):
    """New batches and old ones, whose rows the caller overwrites before labels are read."""
    model = clone(MIXTURE).set_params(**params)
    for batch in STREAMS["mixture"][1] * 2:
        given = batch.copy()
        model.partial_fit(given)
        given[:] = 0.0
        expected = copy(model).predict(batch)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).labels_, expected)
        np.testing.assert_array_equal(model.labels_, expected)


@pytest.mark.parametrize("form", ["rows", "list", "groups"])
def test_labels_of_sequences(form):
    given = {
        "rows": {"X": X},
        "list": {"X": np.array_split(X, 3)},
        "groups": {"X": X, "groups": np.arange(300) % 3},
    }[form]
    model = HDPHMMVB(3, proposals=None, max_iter=3, tol=1e9, random_state=0).fit(**given)
    np.testing.assert_equal(model.labels_, model.predict(**given))
    model = pickle.loads(pickle.dumps(clone(model).partial_fit(**given)))
    np.testing.assert_equal(model.labels_, model.predict(**given))
    if form == "list":
        assert not hasattr(model.fit(given["X"], sample_weight=[1.0, 0.0, 1.0]), "labels_")


def test_labels_take_no_pass_unless_they_are_read(monkeypatch):
    model, passes = clone(STREAMS["mixture"][0]), []
    labels = DPMixtureVB._labels
    monkeypatch.setattr(DPMixtureVB, "_labels", lambda *a: passes.append(1) or labels(*a))
    for batch in STREAMS["mixture"][1]:
        assert model.partial_fit(batch).n_components_ > 0
    assert not passes
    assert len(model.labels_) == len(model.labels_) == 100
    assert len(passes) == 1


def test_labels_are_gone_when_they_are_those_of_nothing():
    model = clone(MIXTURE)
    for i, batch in enumerate(STREAMS["mixture"][1]):
        model.partial_fit(batch, batch_id=i)
    combined = sklearn_bnp.combine([deepcopy(model), deepcopy(model)])
    for other in (combined, model.forget(1)):
        assert not hasattr(other, "labels_")
        assert "labels_" not in dir(other)
    assert len(model.partial_fit(X[:50]).labels_) == 50


@pytest.mark.extended
def test_memory_maps_leave_no_labels(tmp_path):
    X.tofile(tmp_path / "x")
    rows = np.memmap(tmp_path / "x", mode="r").view(X.dtype).reshape(X.shape)
    model = DPMixtureVB(random_state=0).fit(rows)
    assert not hasattr(model, "labels_")
    with pytest.raises(AttributeError, match=r"no attribute 'labels_'.* Call predict\(X\)"):
        model.labels_  # noqa: B018
    np.testing.assert_array_equal(clone(model).fit_predict(rows), model.predict(rows))
    assert not hasattr(model.partial_fit(rows), "labels_")


# ---------------------------------------------------------------------- labels that a user deletes


def by_file(model, folder):
    model.save(folder / "model.bnp")
    return sklearn_bnp.load(folder / "model.bnp")


@pytest.mark.quarter
@pytest.mark.parametrize("how", ["of fit", "of a batch", "of a batch, read", "from vars"])
@pytest.mark.parametrize("kind", ["mixture", "sequences"])
def test_labels_may_be_deleted(kind, how, tmp_path):
    estimator, batches = STREAMS[kind]
    if how in ("of fit", "from vars"):
        model = clone(estimator).fit(batches[0])
    else:
        model = copy(streamed(kind, 2))
        if how == "of a batch, read":
            assert len(model.labels_) == len(batches[1])
    if how == "from vars":
        vars(model).pop("labels_")
    else:
        del model.labels_
    assert "_unlabelled" not in vars(model)
    for other in (model, copy(model), pickle.loads(pickle.dumps(model)), by_file(model, tmp_path)):
        assert not hasattr(other, "labels_")
        with pytest.raises(AttributeError, match=r"was deleted. Call predict\(X\)"):
            _ = other.labels_
        assert len(other.predict(batches[1])) == len(batches[1])
        assert len(copy(other).partial_fit(batches[1]).labels_) == len(batches[1])
    with pytest.raises(AttributeError):
        del model.labels_


@pytest.mark.parametrize("names", [["means_"], ["covariances_", "topic_probs_", "n_components_"]])
def test_epochs_find_deleted_attributes_again(names, tmp_path):
    """`MemoryBoundedTopicVB` has no learner, but keeps what its attributes follow from."""
    model = MemoryBoundedTopicVB()
    for _ in range(2):
        model.partial_fit(X, groups=np.arange(300) // 10)
    whole = {name: getattr(model, name) for name in names}
    for name in names:
        delattr(model, name)
    for other in (pickle.loads(pickle.dumps(model)), by_file(model, tmp_path), model):
        for name in names:
            np.testing.assert_allclose(getattr(other, name), whole[name], rtol=1e-12)
    del model.elbo_terms_
    with pytest.raises(AttributeError, match="'elbo_terms_'"):
        _ = model.elbo_terms_


def test_epochs_do_without_what_cannot_be_found_again(tmp_path):
    """The history of an endless stream may be deleted to save memory, and epochs count on."""
    model, groups = MemoryBoundedTopicVB(), np.arange(300) // 10
    model.partial_fit(X, groups=groups)
    whole = copy(model).partial_fit(X, groups=groups)
    del model.history_, model.elbo_terms_, model.n_clumps_
    for gone in ("history_", "elbo_terms_"):
        with pytest.raises(AttributeError, match=gone):
            delattr(model, gone)
    assert "elbo_terms_" not in dir(model)
    for other in (pickle.loads(pickle.dumps(model)), by_file(model, tmp_path), model):
        assert not hasattr(other, "history_")
        assert not hasattr(other, "elbo_terms_")
        assert other.n_clumps_ == whole.history_[0].n_clumps
        other.partial_fit(X, groups=groups)
        assert other.elbo_terms_ == whole.elbo_terms_
        assert other.history_ == [whole.history_[1]._replace(seconds=other.history_[0].seconds)]
        assert (other.n_iter_, other.lower_bound_) == (2, whole.lower_bound_)


# ---------------------------------------------------------------------- the number of columns


# Nothing here depends on what is found, so nothing is searched.
FOUND = {"n_components": 2, "proposals": None, "random_state": 0}
WIDE = {
    "mixture": (DPMixtureVB(observation="poisson", **FOUND), {}),
    "topics": (HDPTopicVB(**FOUND), {}),
    "rows of topics": (HDPTopicVB(observation="poisson", **FOUND), {"groups": [0, 1] * 30}),
    "sequences": (HDPHMMVB(observation="poisson", **FOUND), {}),
    "epochs": (MemoryBoundedTopicVB(observation="poisson"), {"groups": [0, 1] * 30}),
}


@pytest.mark.quarter
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize(("estimator", "given"), WIDE.values(), ids=WIDE)
def test_number_of_columns_is_found_again(estimator, given, call, tmp_path):
    """Without it scikit-learn compares no X with it, and kernels would read beyond the end of arrays."""
    model = getattr(clone(estimator), call)(COUNTS, **given)
    if call == "partial_fit":
        model.partial_fit(COUNTS + 1, **given)
    width = COUNTS.shape[1]
    del model.n_features_in_
    for other in (model, copy(model), pickle.loads(pickle.dumps(model)), by_file(model, tmp_path)):
        for method in ("transform", "score", "partial_fit"):
            vars(other).pop("n_features_in_", None)
            for X in (COUNTS[:, 1:], np.hstack([COUNTS, COUNTS])):
                with pytest.raises(ValueError, match=f"{X.shape[1]} features.*{width} features"):
                    getattr(other, method)(X, **given)
        assert other.n_features_in_ == width
        other.partial_fit(COUNTS, **given)
    narrow = model.fit(COUNTS[:, 1:], **given)
    del narrow.n_features_in_
    assert narrow.n_features_in_ == width - 1
    assert not hasattr(clone(estimator), "n_features_in_")


def test_states_that_were_saved_without_labels():
    """Versions before did not take the name from the list of attributes."""
    model = clone(STREAMS["mixture"][0]).fit(X[:50])
    state = copy(vars(model))
    del state["labels_"]
    old = copy(model)
    vars(old).clear()
    vars(old).update(state)
    saved = _state(old, state)
    loaded = type(model).__new__(type(model))
    loaded.__setstate__(saved)
    assert not hasattr(loaded, "labels_")
