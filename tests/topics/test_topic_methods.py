"""`HDPTopicVB`: what its methods return, and how it goes with scikit-learn."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline

from sklearn_bnp import (
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
    Merge,
    MultinomialObservation,
    TopicBirth,
)
from tests.estimators import (
    TOPICS,
    assert_same_state,
    documents,
    grouped_rows,
    matches,
    public_state,
    same_partition,
)

X, truth = documents()
HELDOUT, _ = documents(seed=1)
ROWS, GROUPS, LABELS = grouped_rows()
K, V = TOPICS.shape


@pytest.fixture(scope="module")
def model():
    return HDPTopicVB(random_state=0).fit(X)


@pytest.fixture(scope="module")
def admixture():
    return HDPTopicVB(observation="gaussian", random_state=0).fit(ROWS, groups=GROUPS)


# ---------------------------------------------------------------------- methods


@pytest.mark.extended
def test_transform(model):
    shares = model.transform(HELDOUT)
    assert shares.shape == (80, K)
    assert_allclose(shares.sum(axis=1), 1.0)
    _, expected = documents(seed=1)
    order = model.means_.reshape(K, 3, 4).sum(axis=2).argmax(axis=1)
    assert np.abs(shares - expected[:, order]).mean() < 0.05
    assert_allclose(model.fit_transform(X), model.transform(X))
    assert model.transform(HELDOUT.astype(np.float32)).dtype == np.float32


def test_inverse_transform(model):
    shares = model.transform(HELDOUT)
    proportions = model.inverse_transform(shares)
    assert_allclose(proportions, shares @ model.means_)
    assert_allclose(proportions.sum(axis=1), 1.0)
    counts = model.inverse_transform(shares, n_tokens=HELDOUT.sum(axis=1))
    assert_allclose(counts.sum(axis=1), HELDOUT.sum(axis=1))
    assert np.abs(counts - HELDOUT).mean() < 2.0
    column = model.inverse_transform(shares, n_tokens=sparse.csr_matrix(HELDOUT).sum(axis=1))
    assert_allclose(column, counts)


@pytest.mark.parametrize(
    "n_tokens, message",
    [
        ([3.0, 4.0], "n_tokens has 2 lengths, but X has"),
        (-1.0, "n_tokens=-1 is below 0"),
        (np.nan, "n_tokens contains NaN"),
        ("long", "could not convert string"),
    ],
)
def test_lengths_that_suit_no_documents(model, n_tokens, message):
    with pytest.raises(ValueError, match=message):
        model.inverse_transform(model.transform(HELDOUT), n_tokens=n_tokens)


def test_completion_by_hand(model):
    """One type of a document of two is hidden; its probability is that under the other's topics."""
    document = np.zeros((1, V))
    document[0, [0, 5]] = 4, 3
    scores = {
        3 * np.log(model.transform(document * (np.arange(V) == 0)) @ model.means_)[0, 5] / 3,
        4 * np.log(model.transform(document * (np.arange(V) == 5)) @ model.means_)[0, 0] / 4,
    }
    found = {model.score_completion(document, random_state=seed) for seed in range(20)}
    assert_allclose(sorted(found), sorted(scores))
    assert min(abs(model.score(document) - score) for score in scores) < 1e-12


def test_scores(model):
    score = model.score(HELDOUT)
    assert model.perplexity(HELDOUT) == pytest.approx(np.exp(-score))
    assert score == model.score(HELDOUT)
    assert model.score(HELDOUT[::-1]) == pytest.approx(score)  # of each document alone
    assert_allclose(model.score_samples(HELDOUT[5:6]), model.score_samples(HELDOUT)[5:6])
    for by in ("types", "tokens"):
        other = model.score_completion(HELDOUT, by=by, heldout=0.3)
        assert other == model.score_completion(HELDOUT, by=by, heldout=0.3)
        assert abs(other - score) < 0.3
        assert other != model.score_completion(HELDOUT, random_state=1, by=by, heldout=0.3)


def test_score_tells_numbers_of_topics_apart(model):
    few = HDPTopicVB(2, proposals=None, random_state=0).fit(X)
    many = HDPTopicVB(30, proposals=None, random_state=0).fit(X)
    assert model.score(HELDOUT) > few.score(HELDOUT) + 0.1
    assert model.score(HELDOUT) > many.score(HELDOUT)


def test_top_words(model):
    names = np.array([f"word{v}" for v in range(V)])
    words = model.top_words(names, 4)
    blocks = {frozenset(names[4 * k : 4 * k + 4]) for k in range(3)}
    assert {frozenset(topic) for topic in words} == blocks
    assert all(isinstance(word, str) for topic in words for word in topic)
    assert model.top_words(n=1)[0] == [f"x{model.components_[0].argmax()}"]


def test_sample(model):
    corpus, shares = model.sample(300, n_tokens=50, random_state=0)
    assert sparse.issparse(corpus)
    assert_array_equal(corpus.sum(axis=1), 50)
    assert_allclose(shares.sum(axis=1), 1.0)
    assert_allclose(
        corpus.toarray().mean(axis=0) / 50, (shares @ model.means_).mean(axis=0), atol=0.01
    )
    assert model.sample()[0].sum() == 40  # as long as the documents were
    again, _ = model.sample(300, n_tokens=50, random_state=0)
    assert (again != corpus).nnz == 0


@pytest.mark.parametrize("doc_topic_prior", [1e-2, 1e-4, 1e-8, 1e-30])
def test_samples_of_documents_with_one_topic_each(doc_topic_prior):
    """Under a small prior, documents have a single topic, not all of them alike."""
    corpus = np.kron(np.eye(3, dtype=int), np.full((20, 4), 5))
    model = HDPTopicVB(doc_topic_prior=doc_topic_prior, random_state=0)
    model.fit(corpus)
    assert model.n_components_ == 3
    drawn, shares = model.sample(600, 20, random_state=0)
    assert_allclose(shares.sum(axis=1), 1.0)
    assert np.mean(shares.max(axis=1) > 0.99) > (0.9 if doc_topic_prior > 1e-3 else 0.99)
    assert_allclose(np.bincount(shares.argmax(axis=1)) / 600, model.topic_probs_[:3], atol=0.07)
    assert abs(model.score(drawn) - model.score(corpus)) < 0.1


# ---------------------------------------------------------------------- admixtures


def test_admixture_of_rows(admixture):
    assert admixture.n_components_ == 3
    assert admixture.means_.shape == (3, 3)
    assert admixture.covariances_.shape == (3, 3, 3)
    labels = admixture.predict(ROWS, groups=GROUPS)
    assert same_partition(labels, LABELS)
    resp = admixture.predict_proba(ROWS, groups=GROUPS)
    assert_allclose(resp.sum(axis=1), 1.0)
    assert_array_equal(resp.argmax(axis=1), labels)
    assert admixture.score(ROWS, groups=GROUPS) > DPMixtureVB(random_state=0).fit(ROWS).score(ROWS)


def test_rows_are_answered_in_their_order(admixture):
    names = np.array([f"d{g:02d}" for g in GROUPS])
    order = np.argsort(names, kind="stable")
    rows, groups = ROWS[order], names[order]
    sorted_rows = HDPTopicVB(observation="gaussian", random_state=0).fit(rows, groups=groups)
    assert_same_state(public_state(sorted_rows), public_state(admixture))
    for method in ("predict", "predict_proba", "transform", "score_samples"):
        expected = getattr(sorted_rows, method)(rows, groups=groups)
        assert_array_equal(getattr(admixture, method)(ROWS, groups=GROUPS)[order], expected)
    shares = admixture.transform(ROWS, groups=GROUPS)
    counts = np.array([np.bincount(LABELS[g == GROUPS], minlength=3) for g in GROUPS]) / 20
    assert_allclose(np.sort(shares), np.sort(counts), atol=0.06)
    for g in range(30):
        assert np.ptp(shares[g == GROUPS], axis=0).max() == 0.0


def test_rows_with_given_responsibilities():
    resp = np.eye(3)[LABELS]
    model = HDPTopicVB(observation="gaussian", init_params=resp, max_iter=0)
    model.fit(ROWS, groups=GROUPS)
    expected = [ROWS[k == LABELS].mean(axis=0) for k in range(3)]
    order = np.argsort(-np.bincount(LABELS))
    assert_allclose(model.means_, np.array(expected)[order], atol=0.05)


@pytest.mark.parametrize("init_params", ["random", "k-means++"])
def test_rows_with_a_fixed_number(init_params):
    model = HDPTopicVB(
        3, observation="gaussian", proposals=None, init_params=init_params, random_state=0
    )
    labels = model.fit(ROWS, groups=GROUPS).predict(ROWS, groups=GROUPS)
    assert adjusted_rand_score(LABELS, labels) > 0.5


def test_rows_of_counts():
    """With groups, a row of counts is one token."""
    rng = np.random.default_rng(0)
    rows = rng.multinomial(30, TOPICS[LABELS])
    model = HDPTopicVB(6, init_params="k-means++", random_state=0).fit(rows, groups=GROUPS)
    best = model.transform(rows, groups=GROUPS)
    assert best.shape == (600, model.n_components_)
    assert matches(model)
    binary = HDPTopicVB(4, observation="bernoulli", init_params="k-means++", random_state=0)
    assert binary.fit(rows > 0, groups=GROUPS).predict(rows > 0, groups=GROUPS).shape == (600,)


@pytest.mark.parametrize("observation", ["multinomial", "poisson", "bernoulli", "categorical"])
def test_rows_of_documents_have_topics_whatever_the_family(observation):
    """Topics of rows depend on how the model was fitted, and not on whether its family could take words."""
    rows = (np.random.default_rng(0).random((120, 4)) < 0.5).astype(int)
    rows[:, 0] = 1  # a row has counts
    groups = np.repeat(np.arange(6), 20)
    model = HDPTopicVB(3, observation=observation, proposals=None, random_state=0, max_iter=3)
    assert hasattr(model, "predict") == (observation != "multinomial")  # words are expected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, groups=groups)
    loaded = pickle.loads(pickle.dumps(model))
    streamed = clone(model).partial_fit(rows, groups=groups)
    for fitted in (model, loaded, streamed):
        assert hasattr(fitted, "predict") and hasattr(fitted, "predict_proba")
        resp = fitted.predict_proba(rows, groups=groups)
        assert resp.shape == (120, 3)
        assert_array_equal(fitted.predict(rows, groups=groups), resp.argmax(axis=1))
    if observation == "multinomial":
        words = HDPTopicVB(3, proposals=None, max_iter=0, random_state=0).fit(rows)
        assert not hasattr(words, "predict") and not hasattr(words, "predict_proba")
        with pytest.raises(AttributeError, match="fit with groups"):
            words.predict(rows)


def test_samples_of_rows(admixture):
    rows, shares = admixture.sample(40, n_tokens=15, random_state=0)
    assert rows.shape == (600, 3)
    groups = np.repeat(np.arange(40), 15)
    assert_allclose(
        np.sort(admixture.transform(rows, groups=groups)[::15]), np.sort(shares), atol=0.3
    )
    assert admixture.inverse_transform(shares).shape == (40, 3)


# ---------------------------------------------------------------------- with scikit-learn

WORDS = {
    "pets": ["cat", "dog", "kitten", "puppy", "leash", "bone", "purr", "bark", "fur", "paw"],
    "money": ["stock", "bond", "market", "bank", "trade", "price", "loan", "fund", "share", "rate"],
}
_rng = np.random.RandomState(0)
ABOUT = np.repeat(list(WORDS), 20)
TEXTS = [" ".join(_rng.choice(WORDS[about], 25)) for about in ABOUT]


def test_pipeline_of_text():
    pipe = make_pipeline(CountVectorizer(), HDPTopicVB(random_state=0), LogisticRegression())
    assert pipe.fit(TEXTS, ABOUT).score(TEXTS, ABOUT) == 1.0
    names = pipe[:-1].get_feature_names_out()
    assert names.tolist() == [f"hdptopicvb{k}" for k in range(pipe[1].n_components_)]
    words = pipe[1].top_words(pipe[0].get_feature_names_out(), 3)
    assert {about for about in WORDS for topic in words if set(topic) <= set(WORDS[about])} == {
        *WORDS
    }


@pytest.mark.extended
def test_grid_search():
    search = GridSearchCV(
        HDPTopicVB(proposals=None, init_params="k-means++", random_state=0),
        {"n_components": [1, 3], "allocation": ["dirichlet"]},
        cv=2,
        error_score="raise",
    ).fit(X)
    assert search.best_params_["n_components"] == 3
    pipe = make_pipeline(CountVectorizer(), HDPTopicVB(random_state=0), LogisticRegression())
    over = GridSearchCV(
        pipe, {"hdptopicvb__topic_word_prior": [0.1, 1.0]}, cv=2, error_score="raise"
    )
    assert over.fit(TEXTS, ABOUT).best_score_ == 1.0


@pytest.mark.extended
def test_metadata_routing():
    with config_context(enable_metadata_routing=True):
        model = HDPTopicVB(observation="gaussian", random_state=0)
        model.set_fit_request(groups=True).set_score_request(groups=True)
        found = cross_validate(
            model, ROWS, cv=GroupKFold(2), params={"groups": GROUPS}, error_score="raise"
        )
        train, test = GROUPS % 2 == 0, GROUPS % 2 == 1
        alone = clone(model).fit(ROWS[train], groups=GROUPS[train])
        score = alone.score(ROWS[test], groups=GROUPS[test])
    assert_allclose(found["test_score"], score, atol=0.5)


def test_set_output():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"w{v}" for v in range(V)], index=np.arange(80) + 7)
    model = HDPTopicVB(random_state=0).set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert out.columns.tolist() == [f"hdptopicvb{k}" for k in range(K)]
    assert out.index.tolist() == list(range(7, 87))
    assert set(model.top_words(n=4)[0]) <= set(frame.columns)


def test_clone_and_pickle(model):
    settings = HDPTopicVB(
        proposals=(TopicBirth(max_targets=3), Merge(), "delete"), observation=MultinomialObservation(0.1),
        random_state=0,
    ).fit(X)  # fmt: skip
    assert_same_state(public_state(clone(settings).fit(X)), public_state(settings))
    copy = pickle.loads(pickle.dumps(model))
    assert_same_state(public_state(copy), public_state(model))
    assert_array_equal(copy.transform(HELDOUT), model.transform(HELDOUT))
    assert repr(HDPTopicVB()) == "HDPTopicVB()"
    assert HDPTopicVB().set_params(observation__prior=0.5).observation.prior == 0.5


@pytest.mark.quarter
@pytest.mark.parametrize("params", [{}, {"n_batches": 3, "n_nonzero_resp": 2}], ids=str)
def test_threads_do_not_matter(params, model):
    one = HDPTopicVB(random_state=0, n_jobs=1, **params).fit(X)
    two = HDPTopicVB(random_state=0, n_jobs=2, **params).fit(X)
    assert_same_state(public_state(two), public_state(one))
    assert_array_equal(two.transform(HELDOUT), one.transform(HELDOUT))


def test_threads_do_not_matter_for_rows():
    one, two = (
        HDPTopicVB(observation="gaussian", random_state=0, n_jobs=n).fit(ROWS, groups=GROUPS)
        for n in (1, 2)
    )
    assert_same_state(public_state(two), public_state(one))


def test_at_most_so_many_topics_a_word():
    model = HDPTopicVB(3, n_nonzero_resp=1, init_params=TOPICS, proposals=None).fit(X)
    assert matches(model)
    assert model.elbo_terms_["entropy"] == pytest.approx(0.0, abs=1e-9)


def test_document_settings_matter():
    topics = 0.5 * TOPICS + 0.5 / V  # after one lap
    params = {"init_params": topics, "proposals": None}
    bounds = [
        HDPTopicVB(max_iter=0, **params, **more).fit(X).lower_bound_
        for more in (
            {"max_doc_update_iter": 1, "doc_restarts": 0},
            {"doc_tol": 5.0, "doc_restarts": 0},
            {"doc_tol": 1e-6, "doc_restarts": 0},
            {"doc_tol": 1e-6, "doc_restarts": 1},
        )
    ]
    assert len({round(bound, 2) for bound in bounds}) == 4
    warm, cold = (HDPTopicVB(warm_start_docs=warm, **params).fit(X) for warm in (True, False))
    assert cold.lower_bound_ == pytest.approx(warm.lower_bound_, rel=1e-3)


def test_progress(capsys):
    model = HDPTopicVB(verbose=1, random_state=0).fit(X)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("HDPTopicVB: lap") == model.n_iter_


def test_perplexity_beyond_doubles():
    """Densities of rows of many columns vanish, and their inverses are infinite; scores are not."""
    rows, groups, _ = grouped_rows(n_docs=5)
    rows = np.tile(1e9 * rows, 20)
    observation = GaussianObservation("diag")
    model = HDPTopicVB(observation=observation, random_state=0).fit(rows, groups=groups)
    assert model.score(rows, groups=groups) < -np.log(np.finfo(float).max)
    assert model.perplexity(rows, groups=groups) == np.inf
    assert model.bound_ == np.inf
