"""`MemoryBoundedTopicVB` from the outside: what it finds, what it keeps, and what it says of bad input."""

import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_bnp import GaussianObservation, MemoryBoundedTopicVB
from tests.estimators import CENTERS, assert_same_state, cases, grouped_rows, names, same_partition

ROWS, GROUPS, LABELS = grouped_rows(20, 25)
BOUND = 900


def state(model):
    """Fitted attributes, without seconds."""
    found = {name: value for name, value in vars(model).items() if name.endswith("_")}
    found["history_"] = [record._replace(seconds=0.0) for record in found["history_"]]
    return found


def epochs(n_epochs, n_docs=10, n_rows=25, seed=0):
    """Rows, documents and clusters of a stream."""
    return [grouped_rows(n_docs, n_rows, seed=100 * seed + e) for e in range(n_epochs)]


def streamed(n_epochs=6, seed=0, **params):
    """A model after a stream."""
    model = MemoryBoundedTopicVB(**{"memory_bound": BOUND, **params})
    for X, groups, _ in epochs(n_epochs, seed=seed):
        model.partial_fit(X, groups=groups)
    return model


@pytest.fixture(scope="module")
def stream():
    return streamed()


@pytest.fixture(scope="module")
def pickled():
    return pickle.dumps(MemoryBoundedTopicVB(BOUND).fit(ROWS, groups=GROUPS))


@pytest.fixture
def fitted(pickled):
    return pickle.loads(pickled)


# ---------------------------------------------------------------------- what it finds


def test_finds_the_clusters_of_a_stream(stream):
    assert stream.n_components_ == len(CENTERS)
    X, groups, labels = grouped_rows(10, 40, seed=999)
    assert same_partition(stream.predict(X, groups=groups), labels)
    assert same_partition(stream.predict(X), labels)
    distance = np.linalg.norm(stream.means_[:, np.newaxis] - CENTERS, axis=2)
    assert distance.min(axis=0).max() < 0.3


def test_keeps_within_the_bound(stream):
    assert all(record.memory <= BOUND for record in stream.history_)
    assert stream.n_rows_ == 6 * 250
    assert stream.n_documents_ == 60 == stream.n_document_groups_
    assert stream.n_clumps_ > 0
    assert stream.n_iter_ == len(stream.history_) == 6


def test_bytes_stay_flat_in_a_long_stream():
    model = streamed(12, max_document_groups=10)
    late = [record.memory_bytes for record in model.history_[3:]]
    assert max(late) <= 1.1 * min(late)
    assert model.n_document_groups_ == 10
    own = sum(array.nbytes for array in (*model._kept, *model._topics[:4]))
    assert model.memory_bytes_ == own


def test_epochs_of_fit_are_those_of_partial_fit_in_the_same_units():
    observation = GaussianObservation(
        covariance_prior=np.eye(3), mean_prior=np.zeros(3), reg_covar=1e-9, resolution=None
    )
    model = MemoryBoundedTopicVB(
        BOUND, observation=observation, target_points=1e3, documents_per_epoch=7
    )
    model.fit(ROWS, groups=GROUPS)
    parts = clone(model)
    for first in (0, 7, 14):
        own = (first <= GROUPS) & (first + 7 > GROUPS)
        parts.partial_fit(ROWS[own], groups=GROUPS[own])
    assert parts.n_components_ == model.n_components_
    # units differ, of all the data or of the first epoch, and so by rounding what is compressed
    np.testing.assert_allclose(parts.lower_bound_, model.lower_bound_, rtol=1e-3)


def test_more_memory_is_never_worse():
    # of bounds that are all of the same evidence, the median over streams
    found = {}
    for bound in (310, 900, 4000, None):
        found[bound] = np.array(
            [
                streamed(4, seed, memory_bound=bound, max_document_groups=20).lower_bound_
                for seed in range(5)
            ]
        )
    gains = [np.median(found[b] - found[a]) for a, b in ((310, 900), (900, 4000), (4000, None))]
    assert min(gains) > -1e-6 * abs(found[None]).max()
    assert np.median(found[None] - found[310]) > 0


def test_bound_is_the_sum_of_its_terms(stream):
    last = stream.history_[-1]
    assert stream.lower_bound_ == last.lower_bound
    assert list(stream.elbo_terms_) == ["data", "entropy", "allocation"]
    np.testing.assert_allclose(sum(stream.elbo_terms_.values()), last.lower_bound, rtol=1e-12)


def test_batch_is_one_epoch_without_a_bound(fitted):
    batch = MemoryBoundedTopicVB(None).fit(ROWS, groups=GROUPS)
    assert batch.n_clumps_ == 0
    assert batch.n_singlets_ == len(ROWS)
    assert batch.lower_bound_ == fitted.lower_bound_  # of before compression


def test_order_of_rows_and_documents_changes_nothing(fitted):
    order = np.random.default_rng(0).permutation(len(ROWS))
    renamed = np.random.default_rng(1).permutation(20)[GROUPS]
    other = MemoryBoundedTopicVB(BOUND).fit(ROWS[order], groups=renamed[order])
    # sums in another order: rounding, through some tens of updates
    np.testing.assert_allclose(other.lower_bound_, fitted.lower_bound_, rtol=1e-9)
    np.testing.assert_allclose(other.means_, fitted.means_, atol=1e-6)
    np.testing.assert_allclose(np.sort(other.topic_probs_), np.sort(fitted.topic_probs_), rtol=1e-6)
    assert other.memory_ <= BOUND


def test_fits_are_repeatable(fitted):
    again = clone(fitted).fit(ROWS, groups=GROUPS)
    assert_same_state(state(again), state(fitted))


def test_threads_change_nothing(fitted):
    again = clone(fitted).set_params(n_jobs=2).fit(ROWS, groups=GROUPS)
    assert_same_state(state(again), state(fitted))


def test_pickled_models_go_on(stream):
    X, groups, _ = grouped_rows(10, 25, seed=77)
    copy = pickle.loads(pickle.dumps(stream))
    again = pickle.loads(pickle.dumps(stream))
    assert_same_state(state(copy), state(stream))
    assert_same_state(
        state(copy.partial_fit(X, groups=groups)), state(again.partial_fit(X, groups=groups))
    )


def test_single_precision_is_near_double(stream):
    model = MemoryBoundedTopicVB(BOUND)
    for X, groups, _ in epochs(6):
        model.partial_fit(X.astype(np.float32), groups=groups)
    assert model.n_components_ == stream.n_components_
    # some rows may go to other clumps
    np.testing.assert_allclose(model.lower_bound_, stream.lower_bound_, rtol=1e-2)


def test_verbose_says_a_line_an_epoch(capsys):
    MemoryBoundedTopicVB(BOUND, documents_per_epoch=5, verbose=1).fit(ROWS, groups=GROUPS)
    assert len(capsys.readouterr().err.splitlines()) == 4


def test_components_are_limited():
    assert MemoryBoundedTopicVB(max_components=2).fit(ROWS, groups=GROUPS).n_components_ == 2
    # three numbers of statistics and a count for each document, a topic
    bound = 2 * (9 + 20)
    assert MemoryBoundedTopicVB(bound).fit(ROWS, groups=GROUPS).n_components_ <= 2


# ---------------------------------------------------------------------- what it says of rows


def test_shares_of_documents(fitted):
    shares = fitted.transform(ROWS, groups=GROUPS)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert shares.shape == (len(ROWS), fitted.n_components_)
    label_of = fitted.predict(CENTERS)
    for d in range(20):
        own = d == GROUPS
        assert np.ptp(shares[own], axis=0).max() == 0.0
        true = np.bincount(LABELS[own], minlength=3) / own.sum()
        np.testing.assert_allclose(shares[own][0][label_of], true, atol=0.1)


def test_fit_and_transform_at_once(fitted):
    shares = MemoryBoundedTopicVB(BOUND).fit_transform(ROWS, groups=GROUPS)
    np.testing.assert_array_equal(shares, fitted.transform(ROWS, groups=GROUPS))


def test_rows_without_groups_stand_alone(fitted):
    resp = fitted.predict_proba(ROWS)
    np.testing.assert_allclose(resp.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(fitted.predict_proba(ROWS[7:9]), resp[7:9])


def test_without_groups_all_is_one_document():
    """To every method: rows share the weights of a mixture, and no row is a document of its own."""
    model = MemoryBoundedTopicVB(BOUND).fit(ROWS)
    named = MemoryBoundedTopicVB(BOUND).fit(ROWS, groups=np.full(len(ROWS), 7))
    assert model.n_documents_ == 1
    assert_same_state(state(named), state(model))
    shares = model.transform(ROWS)
    np.testing.assert_array_equal(shares, model.predict_proba(ROWS))
    np.testing.assert_allclose(shares.mean(axis=0), model.topic_probs_, atol=0.01)
    np.testing.assert_array_equal(MemoryBoundedTopicVB(BOUND).fit_transform(ROWS), shares)
    # of single rows of known documents the prior says more than the row
    of_each = model.transform(ROWS[:5], groups=np.arange(5))
    assert np.all(of_each.max(axis=1) < shares[:5].max(axis=1))


@pytest.mark.parametrize("grouped", [False, True])
def test_distributions_of_several_documents_want_groups(grouped):
    """Also if each of them was an epoch without groups."""
    model = MemoryBoundedTopicVB(BOUND)
    if grouped:
        model.fit(ROWS, groups=GROUPS)
    else:
        for part in (ROWS[:200], ROWS[200:]):
            model.partial_fit(part)
    message = names("groups=None", f"{model.n_documents_} documents", "zeros", "predict_proba")
    with pytest.raises(ValueError, match=message):
        model.transform(ROWS)
    together = model.transform(ROWS, groups=np.zeros(len(ROWS)))
    np.testing.assert_array_equal(together, np.tile(together[0], (len(ROWS), 1)))
    np.testing.assert_allclose(together[0], model.predict_proba(ROWS).mean(axis=0), atol=0.02)


def test_score_prefers_what_it_knows(fitted):
    X, groups, _ = grouped_rows(10, 30, seed=5)
    assert fitted.score(X, groups=groups) > fitted.score(X)  # documents have topics of their own
    assert fitted.score(X) > fitted.score(X + 3.0)


def test_similar_documents_are_found(fitted):
    scores = fitted.similarity(ROWS, GROUPS)
    assert scores.shape == (20, 20)
    # a document is most like itself, or one with the same clusters
    shares = fitted.transform(ROWS, groups=GROUPS)[np.unique(GROUPS, return_index=True)[1]]
    best = shares[scores.argmax(axis=1)]
    assert np.abs(best - shares).sum(axis=1).mean() < 0.2
    np.testing.assert_allclose(fitted.similarity(ROWS[GROUPS == 3]), scores[3:4])


def test_documents_of_a_group_share_its_score():
    model = streamed(3, max_document_groups=4)
    scores = model.similarity(ROWS, GROUPS)
    assert scores.shape == (20, 30)
    assert all(len(np.unique(row)) <= 4 for row in scores)


# ---------------------------------------------------------------------- bad input

PARAMETERS = {
    "memory_bound": [0, -1, 2.5, "all"],
    "target_points": [0, -1.0, np.nan, "many"],
    "target_documents": [0, -1.0, np.nan, "many"],
    "max_document_groups": [0, 1.5, "all"],
    "observation": ["gauss", 3, None],
    "doc_topic_prior_shape": [0.5, -1.0, np.nan, None],
    "doc_topic_prior_rate": [0, -1.0, np.nan, None],
    "max_components": [0, 1.5, "many"],
    "documents_per_epoch": [0, 1.5, "all"],
    "max_iter": [0, 1.5, None],
    "tol": [0, -1e-3, np.nan, None],
    "n_jobs": [0, 1.5, "all"],
    "verbose": ["loud", -1],
}


def test_every_parameter_is_tested():
    assert set(PARAMETERS) == set(MemoryBoundedTopicVB().get_params(deep=False))


@pytest.mark.parametrize(("name", "value"), cases(PARAMETERS))
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters(fitted, name, value, method):
    before = state(fitted)
    fitted.set_params(**{name: value})
    with pytest.raises(ValueError, match=names(name, value)):
        getattr(fitted, method)(ROWS, groups=GROUPS)
    assert_same_state(state(fitted), before)


BAD_DATA = [
    pytest.param(ROWS, GROUPS[:-1], names("groups", "ids", "rows"), id="too few ids"),
    pytest.param(ROWS, [None, "a"] * 250, names("groups", "sorted"), id="mixed ids"),
    pytest.param(ROWS, np.where(GROUPS > 3, GROUPS, np.nan), names("groups", "NaN"), id="nan id"),
    pytest.param(
        np.where(ROWS > 8, np.nan, ROWS), GROUPS, names("NaN", "MemoryBoundedTopicVB"), id="nan"
    ),
    pytest.param(1e200 * ROWS, GROUPS, names("Rescale X"), id="too large"),
    pytest.param(ROWS.astype(complex), GROUPS, "omplex", id="complex"),
    pytest.param(ROWS[:0], GROUPS[:0], names("0 sample"), id="empty"),
]


@pytest.mark.parametrize(("X", "groups", "message"), BAD_DATA)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_data(fitted, X, groups, message, method):
    before = state(fitted)
    with pytest.raises(ValueError, match=message):
        getattr(fitted, method)(X, groups=groups)
    assert_same_state(state(fitted), before)


def test_likelihoods_of_sequences_are_refused():
    model = MemoryBoundedTopicVB(observation="autoregressive")
    with pytest.raises(ValueError, match=names("observation", "HDPHMMVB")):
        model.fit(ROWS, groups=GROUPS)


def test_data_unlike_the_first(fitted):
    before = state(fitted)
    with pytest.raises(ValueError, match=names("features")):
        fitted.partial_fit(ROWS[:, :2], groups=GROUPS)
    with pytest.raises(ValueError, match=names("standard deviations away")):
        fitted.partial_fit(ROWS + 1e9, groups=GROUPS)
    with pytest.raises(ValueError, match=names("observation", "PoissonObservation", "begin anew")):
        fitted.set_params(observation="poisson").partial_fit(abs(ROWS), groups=GROUPS)
    assert_same_state(state(fitted), before)


def test_a_bound_too_small_says_the_least_that_works():
    model = MemoryBoundedTopicVB(20)
    with pytest.raises(ValueError, match=names("memory_bound=20", "max_document_groups")) as error:
        model.fit(ROWS, groups=GROUPS)
    assert not hasattr(model, "n_components_")
    least = int(re.search(r"memory_bound=(\d+) at least", str(error.value))[1])
    assert least == 9 + 20
    assert model.set_params(memory_bound=least).fit(ROWS, groups=GROUPS).memory_ <= least
    assert MemoryBoundedTopicVB(20, max_document_groups=11).fit(ROWS, groups=GROUPS).memory_ <= 20


def test_a_stream_that_outgrows_its_bound_can_go_on():
    model = streamed(2, memory_bound=100)
    before = state(model)
    X, groups, _ = grouped_rows(90, 25, seed=3)
    with pytest.raises(ValueError, match=names("memory_bound=100", "max_document_groups")):
        model.partial_fit(X, groups=groups)
    assert_same_state(state(model), before)
    model.set_params(max_document_groups=15).partial_fit(X, groups=groups)
    assert model.memory_ <= 100
    assert model.n_documents_ == 110
