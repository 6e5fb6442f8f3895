"""Documents that are there several times, and weights in other units, bring about few topics."""

import numpy as np
import pytest

from sklearn_bnp import FixedVarianceGaussianObservation, HDPTopicVB
from sklearn_bnp.topics.documents import Documents
from sklearn_bnp.topics.sampling import DocumentSample


def corpus(n_documents=150, n_words=50, n_topics=4, n_tokens=40):
    rng = np.random.default_rng(0)
    topics = rng.dirichlet([0.1] * n_words, n_topics)
    shares = rng.dirichlet([0.4] * n_topics, n_documents)
    return np.array([rng.multinomial(n_tokens, p @ topics) for p in shares])


X = corpus()


@pytest.mark.extended
@pytest.mark.parametrize("scale", [4.0, 12.0, 500.0, "uneven"])
def test_weights_of_other_units_make_few_topics(scale):
    """With a weight of 12 there were 54 topics for four."""
    weight = np.full(len(X), scale) if isinstance(scale, float) else None
    if weight is None:
        weight = np.random.default_rng(1).lognormal(-0.5, 1.0, size=len(X))
    model = HDPTopicVB(random_state=0).fit(X, sample_weight=weight)
    assert 4 <= model.n_components_ <= 6
    plain = HDPTopicVB(random_state=0).fit(X)
    assert model.score(X) == pytest.approx(plain.score(X), abs=0.05)


@pytest.mark.quarter
@pytest.mark.parametrize("kind", ["drawn", "all", "some"])
def test_copies_of_documents_make_no_topics(kind):
    """300 documents of six topics, five times each, had 299 topics."""
    documents = {
        "drawn": X[np.random.default_rng(1).integers(len(X), size=len(X))],
        "all": np.repeat(X, 5, axis=0),
        "some": np.concatenate([X, np.repeat(X[:30], 4, axis=0)]),
    }[kind]
    model = HDPTopicVB(random_state=0).fit(documents)
    assert 4 <= model.n_components_ <= 5


def templates(n_varied, n_constant, n_words, times):
    """Documents that are all alike, of so many words each, among others in which some words vary."""
    rng, fixed = np.random.default_rng(0), np.arange(n_constant * n_words).reshape(n_constant, -1)
    n_all, rows = fixed.size + 15 * n_varied, []
    for k in range(n_varied):
        own = np.zeros((50, n_all), dtype=int)
        first = fixed.size + 15 * k
        own[:, first : first + 5] = 1
        own[np.arange(50), first + 5 + rng.integers(10, size=50)] = 1
        rows.append(own)
    constant = np.zeros((n_constant, n_all), dtype=int)
    np.put_along_axis(constant, fixed, 1, axis=1)
    return np.concatenate([*rows, np.repeat(constant, times, axis=0)])


@pytest.mark.parametrize(
    ("n_varied", "n_constant", "n_words", "times"),
    [(0, 3, 5, 40), (0, 10, 15, 30), pytest.param(0, 25, 6, 20, marks=pytest.mark.extended),
     (1, 5, 6, 50), pytest.param(5, 5, 15, 40, marks=pytest.mark.extended)],
)  # fmt: skip
def test_documents_that_are_all_alike_are_a_topic(n_varied, n_constant, n_words, times):
    """Lines of a log, of which all but one kind had been one topic, up to 60 % below the best bound."""
    lines = templates(n_varied, n_constant, n_words, times)
    model = HDPTopicVB(random_state=0).fit(lines)
    assert model.n_components_ == n_varied + n_constant
    start = HDPTopicVB(2 * model.n_components_, init_params="k-means++", random_state=0).fit(lines)
    assert model.lower_bound_ > start.lower_bound_ - 1.0


@pytest.mark.quarter
@pytest.mark.parametrize("kind", ["rows", "documents", "weights"])
def test_copies_of_rows_make_few_topics(kind):
    """40 documents of 20 rows, each of them twenty times, had 476 topics for four."""
    rng = np.random.default_rng(0)
    means = 5.0 * rng.normal(size=(4, 2))
    topics = [rng.choice(4, size=20, p=rng.dirichlet([0.5] * 4)) for _ in range(40)]
    rows = np.concatenate([means[k] + rng.normal(size=(20, 2)) for k in topics])
    groups, weight = np.repeat(np.arange(40), 20), None
    if kind == "weights":
        weight = np.full(800, 12.0)
    elif kind == "rows":
        rows, groups = rows.repeat(20, axis=0), groups.repeat(20)
    else:
        rows, groups = np.tile(rows, (12, 1)), np.repeat(np.arange(480), 20)
    model = HDPTopicVB(observation="gaussian", random_state=0)
    assert 4 <= model.fit(rows, groups=groups, sample_weight=weight).n_components_ <= 7


def test_rows_of_a_device_that_stood_still_are_a_topic():
    """There had been one topic, 5500 nats below these two."""
    rng = np.random.default_rng(0)
    still = rng.random((30, 40)) < rng.beta(0.5, 0.5, size=(30, 1))
    rows = rng.normal(1.0, 1.0, size=(30, 40, 2))
    rows[still] = 0.0
    model = HDPTopicVB(observation="gaussian", random_state=0)
    assert model.fit(rows.reshape(-1, 2), groups=np.arange(30).repeat(40)).n_components_ == 2


@pytest.mark.extended
def test_rounded_rows_of_given_variance_are_no_copies():
    """There had been one topic for three: equal rows counted once."""
    rng = np.random.default_rng(0)
    rows = 6.0 * rng.integers(3, size=(1000, 1)) + rng.normal(size=(1000, 1))
    model = HDPTopicVB(observation=FixedVarianceGaussianObservation(1.0), random_state=0)
    groups = np.arange(1000) // 40
    for x in (np.round(rows), np.column_stack([np.round(rows), np.ones(1000)])):
        assert model.fit(x, groups=groups).n_components_ == 3
        assert model._model.likelihood.copies_tell
    assert not model.fit(rows, groups=groups)._model.likelihood.copies_tell


def sample(documents, weight):
    rows, words = np.nonzero(documents)
    indptr = np.searchsorted(rows, np.arange(len(documents) + 1)).astype(np.int64)
    counts = documents[rows, words].astype(float)
    weight = None if weight is None else np.asarray(weight, float)
    docs = Documents(indptr, counts, words.astype(np.int32), None, weight)
    return DocumentSample(docs, np.ones(len(counts)))


def test_frequencies_of_short_documents_stay():
    """A table of queries of one or two words, with how often each was made."""
    words = np.random.default_rng(0).multinomial(2, [0.4, 0.3, 0.2, 0.1], size=3000)
    queries, times = np.unique(words, axis=0, return_counts=True)
    found = sample(queries, times).with_frequencies()
    np.testing.assert_allclose(found.docs.weight, times)


def test_equal_documents_become_one():
    number = np.random.default_rng(0).permutation(np.repeat(np.arange(len(X)), 3))
    found = sample(X[number], None).with_frequencies()
    np.testing.assert_array_equal(found.docs.weight, 1.0)
    dense = np.zeros((len(found.docs), X.shape[1]), dtype=int)
    rows = np.repeat(np.arange(len(dense)), np.diff(found.docs.indptr))
    dense[rows, found.docs.indices] = found.docs.counts
    np.testing.assert_array_equal(np.unique(dense, axis=0), np.unique(X, axis=0))
    whole = sample(X, None)
    assert whole.with_frequencies() is whole


def test_equal_rows_of_documents_become_one():
    z = np.arange(6.0)[[0, 1, 1, 2, 0, 3, 4, 3, 5, 5]][:, np.newaxis]
    indptr = np.array([0, 4, 6, 8, 10])
    mass = np.linspace(0.1, 1.0, 10)
    docs = Documents(indptr, np.ones(10), None, z, None)
    found = DocumentSample(docs, mass).without_copies()
    np.testing.assert_array_equal(found.docs.z.ravel(), np.arange(6.0))
    np.testing.assert_array_equal(found.docs.indptr, [0, 3, 4, 5, 6])
    np.testing.assert_array_equal(found.mass, mass[[0, 1, 3, 5, 6, 8]])
    again = found.without_copies()
    assert again is found


def test_short_documents_may_be_equal():
    """Two tokens over four words: they count as often as they are there."""
    words = np.random.default_rng(0).multinomial(2, [0.4, 0.3, 0.2, 0.1], size=300)
    whole = sample(words, None)
    assert whole.with_frequencies() is whole


@pytest.mark.parametrize("scale", [1.0, 12.0, 1e4])
def test_long_documents_are_seen_once(scale):
    weight = scale * np.random.default_rng(0).uniform(0.5, 1.5, size=len(X))
    found = sample(X, weight).with_frequencies().docs.weight
    np.testing.assert_allclose(found, np.minimum(weight / max(1.0, weight.mean()), 1.0), rtol=1e-6)
