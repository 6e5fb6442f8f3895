"""`MemoryBoundedTopicVB` from the outside: what it finds, what it keeps, and what it says of bad input."""

import contextlib
import pickle
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import GaussianObservation, HDPTopicVB, MemoryBoundedTopicVB
from sklearn_bnp.memory_bounded.epochs import default_groups
from tests.estimators import CENTERS, assert_same_state, cases, grouped_rows, names, same_partition
from tests.reference import collapsed

ROWS, GROUPS, LABELS = grouped_rows(20, 25)
BOUND = 900


def state(model):
    """Fitted attributes, without seconds."""
    found = {name: value for name, value in vars(model).items() if name.endswith("_")}
    found["history_"] = [record._replace(seconds=0.0) for record in found["history_"]]
    return found


def epochs(n_epochs, n_docs=10, n_rows=25, seed=0, centers=CENTERS):
    """Rows, documents and clusters of a stream."""
    return [grouped_rows(n_docs, n_rows, 100 * seed + e, centers) for e in range(n_epochs)]


def streamed(n_epochs=6, seed=0, centers=CENTERS, **params):
    """A model after a stream."""
    model = MemoryBoundedTopicVB(**{"memory_bound": BOUND, **params})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="memory_bound=.* has room")
        for X, groups, _ in epochs(n_epochs, seed=seed, centers=centers):
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
    distance = np.linalg.norm(stream.means_[:, np.newaxis] - CENTERS, axis=2)
    assert distance.min(axis=0).max() < 0.3


def test_keeps_within_the_bound(stream):
    assert all(record.memory <= BOUND for record in stream.history_)
    assert stream.n_rows_ == 6 * 250
    assert stream.n_documents_ == 60
    assert stream.n_document_groups_ == default_groups(BOUND, 10) == 21
    assert stream.n_clumps_ > 0
    assert stream.n_iter_ == len(stream.history_) == 6


def test_bytes_stay_flat_in_a_long_stream():
    model = streamed(12)
    late = [record.memory_bytes for record in model.history_[3:]]
    assert max(late) <= 1.1 * min(late)
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


@pytest.mark.extended
def test_more_memory_is_never_worse():
    # clusters that overlap: of rows that lie far apart a clump of sums keeps all that matters
    found = {}
    for bound in (310, 900, 4000, None):
        found[bound] = np.array(
            [
                streamed(
                    4, seed, 0.3 * CENTERS, memory_bound=bound, max_document_groups=20
                ).lower_bound_
                for seed in range(3)
            ]
        )
    assert np.all(found[900] > found[310] + 5.0)
    assert np.all(found[4000] > found[900] + 0.5)
    np.testing.assert_allclose(found[4000], found[None], rtol=1e-12)  # 1,000 rows need no clump


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


def test_a_limit_that_was_raised_holds_from_the_next_epoch_on():
    first, second, third = epochs(3)
    model = MemoryBoundedTopicVB(max_components=2)
    for X, groups, _ in (first, second):
        assert model.partial_fit(X, groups=groups).n_components_ == 2
    model.set_params(max_components=None).partial_fit(third[0], groups=third[1])
    assert model.n_components_ == len(CENTERS)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_topics_that_have_no_room_are_told_of(method):
    # nine numbers of statistics and a count for each group, a topic
    model = MemoryBoundedTopicVB(2 * (9 + 20), max_document_groups=20)
    message = names("memory_bound=58", "room for 2 clumps", "20 groups", "max_document_groups")
    with pytest.warns(UserWarning, match=message) as caught:
        getattr(model, method)(ROWS, groups=GROUPS)
    assert caught[0].filename == __file__
    assert model.n_components_ <= 2
    # the user's own limit is no lack of room
    model.set_params(max_components=1).fit(ROWS, groups=GROUPS)


def test_topics_that_lose_their_room_are_told_of():
    model = streamed(3, memory_bound=2000)
    X, groups, _ = grouped_rows(10, 25, seed=50)
    with pytest.warns(UserWarning, match=names("memory_bound=30", "Topics were joined")):
        model.set_params(memory_bound=30).partial_fit(X, groups=groups)
    assert model.n_components_ <= 2


@pytest.mark.extended
def test_topics_last_for_a_long_life():
    """By default neither documents without end nor their groups take the room of topics."""
    rng = np.random.default_rng(1)
    centers = 8.0 * rng.normal(size=(8, 3))
    model = MemoryBoundedTopicVB(600)
    for epoch in range(40):
        X, groups, _ = grouped_topics(centers, 10, 20, seed=epoch)
        model.partial_fit(X, groups=groups)
    X, groups, labels = grouped_topics(centers, 20, 40, seed=999)
    assert model.n_components_ == 8
    assert adjusted_rand_score(labels, model.predict(X, groups=groups)) > 0.95


@pytest.mark.extended
def test_old_topics_survive_new_ones():
    """Clusters that come no more are told apart as well as those that still come."""
    rng = np.random.default_rng(2)
    centers = 2.5 * rng.normal(size=(8, 3))
    model = MemoryBoundedTopicVB(2000)
    for epoch in range(24):
        own = slice(0, 4) if epoch < 12 else slice(4, 8)
        X, groups, _ = grouped_topics(centers[own], 10, 30, seed=epoch)
        model.partial_fit(X, groups=groups)
        if epoch == 11:
            old, of_old, labels = grouped_topics(centers[:4], 20, 40, seed=999)
            before = adjusted_rand_score(labels, model.predict(old, groups=of_old))
    assert adjusted_rand_score(labels, model.predict(old, groups=of_old)) > before - 0.1


def grouped_topics(centers, n_docs, n_rows, seed):
    """Rows, documents and clusters, of which each document prefers some."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_docs), n_rows)
    shares = rng.dirichlet(np.full(len(centers), 0.4), size=n_docs)
    labels = np.array([rng.choice(len(centers), p=shares[d]) for d in groups])
    return centers[labels] + rng.normal(size=(len(labels), centers.shape[1])), groups, labels


# ---------------------------------------------------------------------- what it says of rows


def test_shares_of_documents(fitted):
    shares = fitted.transform(ROWS, groups=GROUPS)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert shares.shape == (len(ROWS), fitted.n_components_)
    label_of = fitted.predict(CENTERS, groups=np.arange(3))
    for d in range(20):
        own = d == GROUPS
        assert np.ptp(shares[own], axis=0).max() == 0.0
        true = np.bincount(LABELS[own], minlength=3) / own.sum()
        np.testing.assert_allclose(shares[own][0][label_of], true, atol=0.1)


def test_fit_and_transform_at_once(fitted):
    shares = MemoryBoundedTopicVB(BOUND).fit_transform(ROWS, groups=GROUPS)
    np.testing.assert_array_equal(shares, fitted.transform(ROWS, groups=GROUPS))


METHODS = ["fit", "partial_fit", "fit_transform", "predict", "predict_proba", "transform", "score",
           "score_samples", "similarity"]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_groups_are_required(fitted, method):
    before = state(fitted)
    with pytest.raises(ValueError, match=names("groups=None", "zeros")):
        getattr(fitted, method)(ROWS)
    assert_same_state(state(fitted), before)


def test_documents_of_weight_zero_are_not_seen():
    """What is known of documents is in the order of the ids of those that count."""
    weight = np.arange(20) % 3.0
    model = MemoryBoundedTopicVB(BOUND).fit(ROWS, groups=GROUPS, sample_weight=weight[GROUPS])
    seen = np.isin(GROUPS, np.flatnonzero(weight))
    others = MemoryBoundedTopicVB(BOUND).fit(
        ROWS[seen], groups=GROUPS[seen], sample_weight=weight[GROUPS[seen]]
    )
    assert model.n_documents_ == len(model.document_groups_) == np.count_nonzero(weight)
    np.testing.assert_array_equal(model.document_groups_, others.document_groups_)
    assert model.similarity(ROWS, groups=GROUPS).shape == (20, np.count_nonzero(weight))


def test_rows_of_one_document_share_the_weights_of_a_mixture():
    one = np.full(len(ROWS), 7)
    model = MemoryBoundedTopicVB(BOUND).fit(ROWS, groups=one)
    assert model.n_documents_ == 1
    resp = model.predict_proba(ROWS, groups=one)
    np.testing.assert_allclose(resp.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(resp.mean(axis=0), model.topic_probs_, atol=0.01)
    shares = model.transform(ROWS, groups=one)
    np.testing.assert_array_equal(shares, np.tile(shares[0], (len(ROWS), 1)))
    # of single rows the prior says more than the row
    of_each = model.transform(ROWS[:5], groups=np.arange(5))
    assert np.all(of_each.max(axis=1) < model.predict_proba(ROWS[:5], groups=one[:5]).max(axis=1))


@pytest.mark.parametrize("batch", [True, False])
def test_weights_are_repetition(batch):
    """A document of weight 3 is three equal documents: with all rows kept, to the last digits."""
    rng = np.random.default_rng(4)
    weight = rng.integers(4, size=20)
    repeats = [np.flatnonzero(d == GROUPS) for d in range(20) for _ in range(weight[d])]
    X, groups = ROWS[np.concatenate(repeats)], np.repeat(np.arange(len(repeats)), 25)
    weighted = MemoryBoundedTopicVB(None if batch else BOUND, tol=1e-7)
    repeated = clone(weighted).fit(X, groups=groups)
    weighted.fit(ROWS, groups=GROUPS, sample_weight=weight[GROUPS])
    assert weighted.n_components_ == repeated.n_components_
    assert weighted.n_rows_ == repeated.n_rows_ == len(X)
    assert weighted.n_documents_ == np.count_nonzero(weight)
    # both end when an update changes the bound by 1e-7 of it
    np.testing.assert_allclose(weighted.lower_bound_, repeated.lower_bound_, rtol=1e-5)
    np.testing.assert_allclose(weighted.means_, repeated.means_, atol=1e-2)
    if not batch:  # what is kept counts as often
        np.testing.assert_allclose(weighted._kept.sizes.sum(), weight.sum())
        kept = weighted.clump_sizes_.sum() + weighted._kept.weight.sum()
        np.testing.assert_allclose(kept, len(X))
        weighted.partial_fit(ROWS, groups=GROUPS, sample_weight=0.5 * np.ones(len(ROWS)))
        assert weighted.n_rows_ == len(X) + len(ROWS) // 2


@pytest.mark.parametrize("weight", [0.1, 0.3, 1.0 / 3.0, 2.0])
def test_rows_are_counted_by_weight(weight):
    """Not by whole numbers, unless these come out."""
    model = MemoryBoundedTopicVB(BOUND).fit(ROWS, groups=GROUPS, sample_weight=[weight] * len(ROWS))
    assert model.n_rows_ == pytest.approx(weight * len(ROWS), rel=1e-12)
    assert isinstance(model.n_rows_, int) == (weight != 1.0 / 3.0)


def test_documents_are_inferred_with_their_shares_integrated_out():
    """Every topic gets what its rows want, where steps in psi(N + alpha) starve topics of few rows."""
    model = MemoryBoundedTopicVB(None).fit(ROWS, groups=GROUPS)
    X, groups, _ = grouped_rows(8, 5, seed=1)
    X = 0.5 * X  # between the clusters
    resp, shares = model.predict_proba(X, groups=groups), model.transform(X, groups=groups)
    likelihood, prior = model._likelihood, model._topics.prior
    log_lik = likelihood.log_predictive(prior, model._statistics, likelihood.prepare(X))
    table, alpha = np.exp(log_lik - log_lik.max(axis=1, keepdims=True)), model.doc_topic_prior_
    for d in range(8):
        own = collapsed.shares(table[groups == d], np.ones(5), alpha)
        np.testing.assert_allclose(resp[groups == d], own, atol=0.1)
        expected = own.sum(axis=0) + alpha
        np.testing.assert_allclose(shares[groups == d][0], expected / expected.sum(), atol=0.02)


def test_weights_of_a_document_are_one(fitted):
    before = state(fitted)
    with pytest.raises(ValueError, match=names("sample_weight", "document")):
        fitted.partial_fit(ROWS, groups=GROUPS, sample_weight=np.arange(1.0, 501.0))
    assert_same_state(state(fitted), before)


def test_clumps_are_public(stream):
    C, S = stream.n_clumps_, stream.n_document_groups_
    assert stream.clump_sizes_.shape == (C,)
    assert stream.clump_sizes_.sum() + stream.n_singlets_ == stream.n_rows_
    assert stream.clump_groups_.shape == (C, S)
    np.testing.assert_allclose(stream.clump_groups_.sum(axis=1), stream.clump_sizes_)
    assert stream.clump_probs_.shape == (C, stream.n_components_)
    np.testing.assert_allclose(stream.clump_probs_.sum(axis=1), 1.0)
    assert stream.clump_means_.shape == (C, 3)
    nearest = np.linalg.norm(stream.clump_means_[:, np.newaxis] - stream.means_, axis=2).argmin(
        axis=1
    )
    assert np.mean(nearest == stream.clump_probs_.argmax(axis=1)) > 0.95
    assert stream.document_groups_.shape == (60,)
    assert len(np.unique(stream.document_groups_)) == S


def test_means_of_clumps_are_those_of_their_rows():
    """All that is known of rows together: their mean, in the units of X."""
    model = MemoryBoundedTopicVB(9 + 1, max_document_groups=1, max_components=1)
    model.fit(ROWS + 100.0, groups=GROUPS)
    assert (model.n_clumps_, model.n_singlets_) == (1, 0)
    np.testing.assert_allclose(model.clump_means_[0], ROWS.mean(axis=0) + 100.0, rtol=1e-6)


def test_samples_and_score_are_of_the_same_rows(fitted):
    X, groups, _ = grouped_rows(10, 30, seed=5)
    each = fitted.score_samples(X, groups=groups)
    assert each.shape == (len(X),)
    of_documents = each[np.unique(groups, return_index=True)[1]]
    # documents are of one length
    np.testing.assert_allclose(of_documents.mean(), fitted.score(X, groups=groups), rtol=1e-9)


def test_score_prefers_what_it_knows(fitted):
    X, groups, _ = grouped_rows(10, 30, seed=5)
    alone = fitted.score(X, groups=np.arange(len(X)))  # a row has no others that tell of it
    assert fitted.score(X, groups=groups) > alone
    assert alone > fitted.score(X + 3.0, groups=np.arange(len(X)))


def test_similar_documents_are_found(fitted):
    affinity = fitted.similarity(ROWS, groups=GROUPS)
    assert affinity.shape == (20, 20)
    assert affinity.min() >= 0.0
    assert affinity.max() <= 1.0
    # a document is most like itself, or one with the same clusters
    shares = fitted.transform(ROWS, groups=GROUPS)[np.unique(GROUPS, return_index=True)[1]]
    best = shares[affinity.argmax(axis=1)]
    assert np.abs(best - shares).sum(axis=1).mean() < 0.2
    one = np.zeros(np.count_nonzero(GROUPS == 3))
    np.testing.assert_allclose(fitted.similarity(ROWS[GROUPS == 3], groups=one), affinity[3:4])


def test_affinity_is_that_of_the_distributions(fitted):
    """1 less the square of the Hellinger distance, written down term by term."""
    others, other_groups, _ = grouped_rows(7, 15, seed=8)
    affinity = fitted.similarity(ROWS, others, groups=GROUPS, other_groups=other_groups)
    first = [fitted.transform(x, groups=np.zeros(len(x)))[0] for x in by_document(ROWS, GROUPS)]
    second = [
        fitted.transform(x, groups=np.zeros(len(x)))[0] for x in by_document(others, other_groups)
    ]
    expected = [[1.0 - 0.5 * np.sum((np.sqrt(p) - np.sqrt(q)) ** 2) for q in second] for p in first]
    np.testing.assert_allclose(affinity, expected, rtol=1e-9)


def by_document(X, groups):
    return [X[groups == d] for d in np.unique(groups)]


def test_distances_of_documents_to_themselves_are_numbers(fitted):
    affinity = fitted.similarity(ROWS, ROWS, groups=GROUPS, other_groups=GROUPS)
    assert np.all(np.diagonal(np.sqrt(1.0 - affinity)) < 1e-7)


def test_documents_of_a_group_are_told_apart_if_they_are_given_again():
    model = streamed(3, max_document_groups=4)
    kept = model.similarity(ROWS, groups=GROUPS)
    assert kept.shape == (20, 30)
    assert all(len(np.unique(row)) <= 4 for row in kept)
    again = model.similarity(ROWS, ROWS, groups=GROUPS, other_groups=GROUPS)
    assert again.shape == (20, 20)
    np.testing.assert_allclose(np.diagonal(again), 1.0)
    assert all(len(np.unique(row)) > 4 for row in again)


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
        np.where(ROWS > 8, np.nan, ROWS),
        GROUPS,
        names("NaN", "in row", "MemoryBoundedTopicVB"),
        id="nan",
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
    model = MemoryBoundedTopicVB(20, max_document_groups=100)
    with pytest.raises(ValueError, match=names("memory_bound=20", "max_document_groups")) as error:
        model.fit(ROWS, groups=GROUPS)
    assert not hasattr(model, "n_components_")
    least = int(re.search(r"memory_bound=(\d+) at least", str(error.value))[1])
    assert least == 9 + 20
    for settings in ({"memory_bound": least}, {"memory_bound": 20, "max_document_groups": 11}):
        model.set_params(**settings)
        with pytest.warns(UserWarning, match="has room for 1 clump"):
            assert model.fit(ROWS, groups=GROUPS).memory_ <= settings["memory_bound"]


def test_a_stream_that_outgrows_its_bound_can_go_on():
    model = streamed(2, memory_bound=100, max_document_groups=50)
    before = state(model)
    X, groups, _ = grouped_rows(90, 25, seed=3)
    with pytest.raises(ValueError, match=names("memory_bound=100", "max_document_groups")):
        model.set_params(max_document_groups=1000).partial_fit(X, groups=groups)
    assert_same_state(state(model), before)
    model.set_params(max_document_groups=15).partial_fit(X, groups=groups)
    assert model.memory_ <= 100
    assert model.n_documents_ == 110


@pytest.mark.filterwarnings("ignore:memory_bound=900 has room for")
def test_an_outlier_or_repeated_rows_do_no_more_harm_than_to_other_topics():
    """Beside `HDPTopicVB` on the same data, which has the same units."""
    far, repeated = ROWS.copy(), np.repeat(ROWS[:100], 20, axis=0)
    far[3, 0] = 1e9
    hidden = pytest.warns(UserWarning, match="Nine of ten values in column 0")
    for X, groups, says in (
        (far, GROUPS, hidden),
        (repeated, np.repeat(GROUPS[:100], 20), contextlib.nullcontext()),
    ):
        with says:
            model = MemoryBoundedTopicVB(BOUND).fit(X, groups=groups)
        with says:
            other = HDPTopicVB(observation="gaussian", random_state=0).fit(X, groups=groups)
        assert abs(model.n_components_ - 3) <= abs(other.n_components_ - 3)
