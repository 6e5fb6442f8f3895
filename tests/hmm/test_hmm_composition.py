"""`HDPHMMVB` with batches that come one by one, and together with the rest of scikit-learn."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_bnp import HDPHMMVB, GaussianObservation
from sklearn_bnp.hmm.model import SequenceModel
from tests.estimators import (
    CENTERS,
    FEW_PROPOSALS,
    assert_same_state,
    chains,
    one_hot,
    public_state,
    same_partition,
    shuffled_groups,
)

X, STATES = chains()
ROWS, LENGTHS = np.concatenate(X), [len(x) for x in X]
TRUTH = np.concatenate(STATES)
GROUPS = np.repeat(np.array(["e", "b", "f", "a", "c", "d"]), LENGTHS)
K = len(CENTERS)


def searching(**params):
    return HDPHMMVB(proposals=FEW_PROPOSALS, random_state=0, **params)


@pytest.fixture(scope="module")
def model():
    return searching().fit(X)


# ---------------------------------------------------------------------- batches


@pytest.mark.extended
def test_partial_fit_by_content_and_by_name():
    batches = [X[:2], X[2:4], X[4:]]
    found = []
    for named in (False, True):
        model = searching()
        for _ in range(3):
            for i, batch in enumerate(batches):
                model.partial_fit(batch, batch_id=i if named else None)
        assert model._learner_.totals.n.sum() == pytest.approx(len(ROWS))
        assert same_partition(np.concatenate(model.predict(X)), TRUTH)
        assert_allclose(model._learner_.totals.extra.counts[0].sum(), len(X))
        found.append(public_state(model))
    assert_same_state(*found)


def test_partial_fit_of_streams_keeps_no_more_than_a_pool(monkeypatch):
    """Batches are in memory, with their rows, until these are many; then their sum alone is."""
    room = LENGTHS[0] + LENGTHS[1]
    monkeypatch.setattr(SequenceModel, "pool_rows", room)
    model, held, in_memory = searching(memoize=False), [], []
    for x in X:
        learner = model.partial_fit(x)._learner_
        held.append(sum(batch.n_entries for batch in learner.stream.pool))
        in_memory.append(len(learner.memo))
        assert max(held) <= room
        gone = len(held) > len(learner.stream.pool)  # these are one sum
        assert in_memory[-1] == len(learner.stream.pool) + gone
    assert held[:2] == [LENGTHS[0], room]
    assert learner.totals.n.sum() == pytest.approx(len(ROWS))
    before = learner.totals.n.sum()
    model.partial_fit(X[0])  # nobody knows that it was seen
    assert model._learner_.totals.n.sum() == pytest.approx(before + len(X[0]))


def test_partial_fit_goes_on_after_fit(model):
    other = clone(model).fit(X[:4]).partial_fit(X[4:])
    assert other._learner_.totals.n.sum() == pytest.approx(len(ROWS))
    assert same_partition(np.concatenate(other.predict(X)), TRUTH)


def test_priors_of_transitions_may_change_on_the_way():
    model = searching().partial_fit(X[:3])
    model.set_params(stickiness=0.0, allocation="dirichlet").partial_fit(X[3:])
    assert_allclose(model.weights_, 1 / model.n_components_)
    assert np.isfinite(model.lower_bound_)


@pytest.mark.parametrize("kwargs", [{}, {"lengths": LENGTHS[:2]}])
def test_partial_fit_of_the_first_batch_finds_states(kwargs):
    data = np.concatenate(X[:2]) if kwargs else X[:2]
    model = searching().partial_fit(data, **kwargs)
    assert model.n_components_ == K


def test_stochastic():
    model = HDPHMMVB(
        K + 2,
        learning_method="stochastic",
        init_params="k-means++",
        batch_size=2,
        max_iter=20,
        random_state=0,
    ).fit(X)
    assert model.n_components_ == K + 2
    rows = np.bincount(np.concatenate(model.predict(X)), minlength=K + 2)
    assert_array_equal(rows[:K], np.sort(np.bincount(TRUTH))[::-1])
    assert_allclose(model._learner_.totals.n.sum(), len(ROWS))
    assert_allclose(model._learner_.totals.extra.counts[0].sum(), len(X))


def test_stochastic_steps_average_transitions():
    params = {"learning_method": "stochastic", "random_state": 0, "total_samples": 60}
    model = HDPHMMVB(3, init_params=one_hot(TRUTH[: LENGTHS[0]]), **params)
    model.partial_fit(X[0])
    totals = model._learner_.totals
    assert totals.n.sum() == pytest.approx(60 * LENGTHS[0])  # the first step is all there is
    model.partial_fit(X[1])
    rate = (1.0 + 2) ** -0.51
    expected = (1 - rate) * 60 * LENGTHS[1] + rate * 60 * LENGTHS[1]
    totals = model._learner_.totals
    assert totals.n.sum() == pytest.approx(expected)
    # of each sequence one row is a start; before, the sequences stood for as many rows as now
    kept = (1 - rate) * (60 * LENGTHS[1]) / (60 * LENGTHS[0]) * 60
    assert totals.extra.counts[0].sum() == pytest.approx(kept + rate * 60)


# ---------------------------------------------------------------------- scikit-learn


@pytest.mark.extended
def test_cross_validation_of_a_list_holds_out_whole_sequences():
    cv = KFold(3)
    found = cross_validate(searching(), X, cv=cv, return_estimator=True, error_score="raise")
    for (train, test), estimator, score in zip(
        cv.split(X), found["estimator"], found["test_score"], strict=True
    ):
        alone = searching().fit([X[i] for i in train])
        assert_same_state(public_state(estimator), public_state(alone))
        assert score == alone.score([X[i] for i in test])


@pytest.mark.extended
def test_groups_with_metadata_routing_hold_out_whole_sequences():
    rows, cv = shuffled_groups(GROUPS), GroupKFold(3)
    with config_context(enable_metadata_routing=True):
        model = searching().set_fit_request(groups=True).set_score_request(groups=True)
        found = cross_validate(
            model, ROWS[rows], cv=cv, params={"groups": GROUPS[rows]}, return_estimator=True,
            error_score="raise",
        )  # fmt: skip
    splits = cv.split(ROWS[rows], groups=GROUPS[rows])
    for (train, test), estimator, score in zip(
        splits, found["estimator"], found["test_score"], strict=True
    ):
        train, test = rows[train], rows[test]
        assert not set(GROUPS[train]) & set(GROUPS[test])
        assert estimator._learner_.totals.extra.counts[0].sum() == pytest.approx(4)  # sequences
        alone = searching().fit(ROWS[train], groups=GROUPS[train])
        assert_same_state(public_state(estimator), public_state(alone))
        assert score == alone.score(ROWS[test], groups=GROUPS[test])


@pytest.mark.extended
def test_grid_search_over_the_observation():
    mixing = np.array([[1.0, 0.9, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 1.0]])
    rng, (_, states) = np.random.default_rng(0), chains(10)
    data = [CENTERS[path] + rng.normal(size=(len(path), 3)) @ mixing for path in states]
    search = GridSearchCV(
        HDPHMMVB(proposals=("birth", "merge"), random_state=0),
        {"observation__covariance_type": ["diag", "full"]},
        cv=2, error_score="raise",
    ).fit(data)  # fmt: skip
    assert search.best_params_ == {"observation__covariance_type": "full"}
    assert same_partition(np.concatenate(search.predict(data)), np.concatenate(states))


def test_pipeline(model):
    pipe = make_pipeline(StandardScaler(), searching())
    states = pipe.fit_predict(ROWS, hdphmmvb__lengths=LENGTHS)
    assert same_partition(states, TRUTH)
    assert pipe.score_samples(ROWS).shape == (len(ROWS),)


@pytest.mark.extended
def test_probabilities_are_features(model):
    assert_array_equal(
        model.transform(ROWS, groups=GROUPS), model.predict_proba(ROWS, groups=GROUPS)
    )
    for given in ({"X": X}, {"X": ROWS, "lengths": LENGTHS}, {"X": ROWS, "groups": GROUPS}):
        found = searching().fit_transform(**given)
        assert_array_equal(
            np.concatenate(found) if given["X"] is X else found,
            model.predict_proba(ROWS, lengths=LENGTHS),
        )
    pipe = make_pipeline(searching(), LogisticRegression()).fit(ROWS, TRUTH)
    assert pipe.score(ROWS, TRUTH) > 0.99
    assert pipe[:-1].get_feature_names_out().tolist() == [f"hdphmmvb{k}" for k in range(K)]


def test_groups_are_routed_to_features(model):
    with config_context(enable_metadata_routing=True):
        states = searching().set_fit_request(groups=True)
        states.set_transform_request(groups=True)
        pipe = make_pipeline(states, StandardScaler(with_mean=False, with_std=False))
        found = pipe.fit_transform(ROWS, groups=GROUPS)
        assert_array_equal(found, model.predict_proba(ROWS, groups=GROUPS))
        assert_array_equal(pipe.transform(ROWS, groups=GROUPS), found)


def test_features_in_frames(model):
    """Sequences have a frame each, with the rows' own names."""
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2020-01-01", periods=len(ROWS))
    frame = pandas.DataFrame(ROWS, index=days)
    frames = [frame.iloc[hi - n : hi] for hi, n in zip(np.cumsum(LENGTHS), LENGTHS, strict=True)]
    columns, resp = [f"hdphmmvb{k}" for k in range(K)], model.predict_proba(X)
    framed = searching().set_output(transform="pandas")
    for listed in (framed.fit_transform(frames), framed.transform(frames)):
        for found, x, expected in zip(listed, frames, resp, strict=True):
            assert found.columns.tolist() == columns and found.index.equals(x.index)
            assert_allclose(found, expected, atol=1e-12)
    whole = framed.transform(frame, lengths=LENGTHS)
    assert whole.index.equals(days)
    assert_allclose(whole, np.concatenate(resp), atol=1e-12)
    assert framed.predict_proba(X)[0].__class__ is np.ndarray
    with config_context(transform_output="pandas"):
        assert [found.shape for found in model.transform(X)] == [r.shape for r in resp]
        assert model.transform(X)[0].columns.tolist() == columns


def test_clone_and_pickle(model):
    assert not hasattr(clone(model), "transmat_")
    copy = pickle.loads(pickle.dumps(model))
    assert_same_state(public_state(copy), public_state(model))
    assert_array_equal(copy.decode(X[0])[1], model.decode(X[0])[1])
    assert copy.score(X) == model.score(X)
    many = searching(n_batches=6).fit(chains(48)[0])
    assert many.n_components_ == K
    labels = sum(labels.nbytes for labels in many.labels_)
    assert len(pickle.dumps(many)) - labels < len(pickle.dumps(model)) + 3000  # no rows


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame(x, columns=["a", "b", "c"]) for x in X]
    model = searching().fit(frames)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert [len(part) for part in model.predict(frames)] == LENGTHS
    with pytest.raises(ValueError, match="feature names"):
        model.predict([frames[0], frames[1].rename(columns={"a": "z"})])


def test_single_precision_finds_the_same_states():
    model = searching(observation=GaussianObservation("diag"))
    single = model.fit([x.astype(np.float32) for x in X])
    assert same_partition(np.concatenate(single.predict(X)), TRUTH)
