"""Where the first topics come from: anchors and documents, short texts, and fits that end with one topic."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sklearn_bnp import HDPTopicVB
from sklearn_bnp.topics import starts
from sklearn_bnp.topics.common_topic import with_common_topic
from sklearn_bnp.topics.seeding import Anchors, anchor_topics
from tests.benchmarks import corpora
from tests.benchmarks.one_start_topics import boilerplate, common_words, power_law, thinned
from tests.estimators import documents, grouped_rows


@pytest.fixture(scope="module")
def short():
    """Texts of a dozen tokens with words of power-law frequencies."""
    return power_law(12, 0, n_topics=5, V=300, total=24_000, strength=60.0, alpha=0.1)


@pytest.mark.extended
@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
def test_one_start_is_enough_for_short_texts(seed, short):
    """The default ends no lower than a start from anchors, and with topics."""
    one = HDPTopicVB(random_state=seed).fit(short.train)
    anchors = HDPTopicVB(10, init_params="anchor", random_state=seed).fit(short.train)
    assert one.n_components_ > 1
    n_tokens = short.train.sum()
    assert one.lower_bound_ > anchors.lower_bound_ - 0.005 * n_tokens
    assert one.score(short.heldout) > anchors.score(short.heldout) - 0.02


def test_the_first_anchors_are_those_of_fewer(short):
    anchors = Anchors(short.train, 8, np.random.RandomState(0))
    for n in (3, 8):
        topics = anchors.topics(n)
        assert topics.shape == (n, short.train.shape[1])
        assert topics.min() >= 0
        assert_allclose(topics.sum(axis=0), short.train.sum(axis=0).A1, rtol=1e-9)
    assert_array_equal(anchor_topics(short.train, 8, np.random.RandomState(0)), anchors.topics(8))


def test_thinned_texts_are_parts_of_documents():
    X = np.random.default_rng(0).poisson(0.5, size=(20, 50))
    pieces = thinned(X, 6, np.random.default_rng(1), most_pieces=2)
    assert np.all(pieces.sum(axis=1) == 6)
    assert pieces.shape[0] == np.minimum(X.sum(axis=1) // 6, 2).sum()
    assert np.all(X.sum(axis=0) >= pieces.sum(axis=0).A1)


@pytest.mark.extended
def test_documents_of_millions_of_tokens():
    """They have few entries, so that births look at all of them: their counts alone make no sample large."""
    rng = np.random.default_rng(0)
    phi = rng.dirichlet(np.full(60, 0.1), size=4)
    X = rng.poisson(4e6 * rng.dirichlet(np.full(4, 0.3), size=20) @ phi)
    model = HDPTopicVB(random_state=0).fit(X)
    assert model.n_components_ >= 4
    told = HDPTopicVB(4, init_params="anchor", random_state=0).fit(X)
    assert model.lower_bound_ > told.lower_bound_ - 1e-3 * X.sum()


@pytest.mark.extended
def test_topics_that_share_their_frequent_words():
    """One topic was better than those of the first birth; another search finds those that were drawn."""
    X, phi = common_words(300, seed=1, n_topics=6, n_docs=250, alpha=0.2)
    model = HDPTopicVB(random_state=0).fit(X)
    alone = [lap.lower_bound for lap in model.history_[2:] if lap.n_components == 1]
    assert model.n_components_ == len(phi)
    assert model.lower_bound_ > max(alone) + 100


@pytest.mark.extended
def test_blends_give_way_to_topics_that_share_their_frequent_words():
    """Several topics had settled as blends; at the last resort, those that were drawn take their place."""
    X, phi = common_words(300, seed=0, n_topics=6, n_docs=400)
    model = HDPTopicVB(random_state=0).fit(X)
    records = [r for lap in model.history_ for r in lap.trials if r.kind == "restart"]
    assert any(r.verdict == "accepted" and r.gain > 1000 for r in records)
    assert model.n_components_ == len(phi)


@pytest.mark.extended
@pytest.mark.parametrize("seed", [0, 2])
def test_what_all_documents_have_in_common_is_a_topic(seed):
    """Each topic had held its share of it, and no topic was right."""
    X, phi = boilerplate(seed)
    model = HDPTopicVB(random_state=0).fit(X)
    assert corpora.match_topics(model.components_, phi).n_matched == len(phi)
    told = HDPTopicVB(len(phi), init_params=phi, random_state=0).fit(X)
    assert model.lower_bound_ > told.lower_bound_ - 1e-3 * abs(told.lower_bound_)


def with_stop_words(seed, n_topics=15, n_words=500, n_docs=500, n_tokens=150, n_stop=20):
    """Counts of documents of topics (K, V) that have half of their words in common, and these."""
    rng = np.random.default_rng(seed)
    own = rng.dirichlet(np.full(n_words, 0.05), n_topics)
    stop = rng.dirichlet(np.ones(n_stop))
    topics = 0.5 * np.hstack([own, np.tile(stop, (n_topics, 1))])
    shares = rng.dirichlet(np.full(n_topics, 0.1), n_docs)
    return np.array([rng.multinomial(n_tokens, p) for p in shares @ topics]), topics


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_stop_words_are_a_topic(seed):
    """The others had to be sharper and documents to mix fewer of them: it was refused, for .14 % less."""
    X, topics = with_stop_words(seed)
    model = HDPTopicVB(random_state=0).fit(X)
    told = HDPTopicVB(len(topics), init_params=topics, random_state=0).fit(X)
    assert model.lower_bound_ > told.lower_bound_ - 5e-4 * abs(told.lower_bound_)
    shares = model.means_[:, -20:].sum(axis=1)
    assert shares.max() > 0.9


def test_what_is_taken_out_of_topics_is_what_they_share():
    words = np.array([[60.0, 0.0, 30.0, 10.0], [0.0, 70.0, 20.0, 10.0], [50.0, 50.0, 60.0, 40.0]])
    s = np.column_stack([words, words.sum(axis=1)])
    found = with_common_topic(s, 1.0)
    np.testing.assert_allclose(found.sum(axis=0), s.sum(axis=0))
    np.testing.assert_allclose(found[:, :-1].sum(axis=1), found[:, -1])
    assert np.all(found >= 0.0)
    assert found[-1, 2] > found[-1, 0] > 0.0
    assert with_common_topic(s, 0.01) is None  # documents of one topic each
    apart = np.column_stack([50.0 * np.eye(3), np.full(3, 50.0)])
    assert with_common_topic(apart, 1.0) is None


def test_one_topic_after_refused_births_warns():
    """Documents of one topic: births are tried, refused and recorded."""
    X = np.random.default_rng(0).multinomial(40, np.full(30, 1 / 30), size=200)
    with pytest.warns(UserWarning, match="ends with one topic.*n_components=40"):
        model = HDPTopicVB(random_state=0).fit(X)
    assert model.n_components_ == 1
    assert sum(lap.tried.get("birth", 0) for lap in model.history_) > 0
    assert not any(lap.accepted for lap in model.history_)


def test_no_warning_without_refused_births():
    X, _ = documents()
    rows, groups, _ = grouped_rows()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert HDPTopicVB(proposals=None).fit(X).n_components_ == 1
        assert HDPTopicVB(max_components=1).fit(X).n_components_ == 1
        assert HDPTopicVB(random_state=0).fit(sparse.csr_matrix(X)).n_components_ > 1
        HDPTopicVB(observation="gaussian", random_state=0).fit(rows, groups=groups)


@pytest.mark.parametrize("n_docs", [450, 60])
@pytest.mark.filterwarnings("ignore:HDPTopicVB did not converge")
def test_first_births_try_their_starts_on_all_documents(n_docs, monkeypatch):
    """What fits a few of the documents need not fit others; single documents are seeds of few texts."""
    seen, seeds = [], []
    after, single = starts._after, starts.document_seeds

    def watched(some, pairs, *args, **rounds):
        seen.extend((len(some.docs), len(nested.sample.docs)) for nested, _ in pairs)
        return after(some, pairs, *args, **rounds)

    def counted(nested, n_seeds, rng):
        seeds.append(n_seeds)
        return single(nested, n_seeds, rng)

    monkeypatch.setattr(starts, "_after", watched)
    monkeypatch.setattr(starts, "document_seeds", counted)
    X, _ = documents(n_docs, n_tokens=300)
    HDPTopicVB(max_iter=2, random_state=0).fit(X)
    assert seen
    assert all(some == everything for some, everything in seen)
    assert bool(seeds) == (n_docs < 400)
