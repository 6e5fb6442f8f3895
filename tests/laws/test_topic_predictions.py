"""Predictions of topic models: laws of `transform`, `predict_proba` and scores, for words and rows."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from sklearn_bnp import ColumnObservation, GaussianObservation, HDPTopicVB, MemoryBoundedTopicVB
from sklearn_bnp.topics.batch import DocumentBatch
from sklearn_bnp.topics.completion import (
    drawn_keys,
    hidden_entries,
    keys_of_content,
    tokens_apart,
)
from tests.estimators import documents, grouped_rows
from tests.reference import collapsed

X, _ = documents()
HELDOUT = np.minimum(documents(seed=1)[0], 3)
ROWS, GROUPS, _ = grouped_rows()


@pytest.fixture(scope="module")
def model():
    return HDPTopicVB(4, init_params="k-means++", proposals=None, random_state=0).fit(X)


@pytest.fixture(scope="module")
def admixture():
    model = HDPTopicVB(4, observation="gaussian", proposals=None, random_state=0)
    return model.fit(ROWS[:300], groups=GROUPS[:300])


def prior_of(model):
    """Parameters of the prior of a document's shares."""
    return model.doc_topic_prior_ * model.topic_probs_


def log_likelihoods(admixture, rows):
    """Log predictive densities of rows in each topic."""
    z = admixture._model.likelihood.prepare(rows)
    return admixture._model.likelihood.log_predictive(
        admixture._model.prior, admixture._statistics, z
    )


def test_a_document_of_one_word_is_exact(model):
    """By Bayes' rule, under topics at their expectation."""
    prior = prior_of(model)
    resp = (model.means_.T * prior) / (model.means_.T @ prior)[:, np.newaxis]
    expected = (resp + prior) / (1.0 + prior.sum())
    assert_allclose(model.transform(np.eye(X.shape[1])), expected, rtol=1e-10)


def test_a_row_alone_is_exact(admixture):
    resp = admixture.predict_proba(ROWS, groups=np.arange(len(ROWS)))
    expected = softmax(log_likelihoods(admixture, ROWS) + np.log(prior_of(admixture)), axis=1)
    assert_allclose(resp, expected, rtol=1e-9, atol=1e-12)


def test_documents_are_solved_as_by_hand(model):
    model.set_params(doc_tol=1e-6, max_doc_update_iter=2000)
    shares, prior = model.transform(HELDOUT), prior_of(model)
    for row, found in zip(HELDOUT[:20], shares, strict=False):
        used, c = np.flatnonzero(row), row[row > 0].astype(float)
        expected = c @ collapsed.shares(model.means_.T[used], c, prior, 2000, 1e-6) + prior
        assert_allclose(found, expected / expected.sum(), atol=1e-6)
    model.set_params(doc_tol=0.05, max_doc_update_iter=100)


def test_rows_are_solved_as_by_hand(admixture):
    admixture.set_params(doc_tol=1e-6, max_doc_update_iter=2000)
    resp = admixture.predict_proba(ROWS, groups=GROUPS)
    for group in range(15):
        log_lik = log_likelihoods(admixture, ROWS[group == GROUPS])
        table = np.exp(log_lik - log_lik.max(axis=1, keepdims=True))
        ones = np.ones(len(table))
        expected = collapsed.shares(table, ones, prior_of(admixture), 2000, 1e-6)
        assert_allclose(resp[group == GROUPS], expected, atol=1e-6)
    admixture.set_params(doc_tol=0.05, max_doc_update_iter=100)


def test_no_words_say_nothing(model):
    prior = prior_of(model)
    assert_allclose(model.transform(np.zeros((2, X.shape[1]))), [prior / prior.sum()] * 2)


def test_documents_are_alone(model, admixture):
    """In any order and company, with equal ones beside them."""
    shares, scores = model.transform(HELDOUT), model.score_samples(HELDOUT)
    order = np.random.RandomState(0).permutation(np.tile(np.arange(len(HELDOUT)), 2))
    assert_array_equal(model.transform(HELDOUT[order]), shares[order])
    assert_allclose(model.score_samples(HELDOUT[order]), scores[order], rtol=1e-12)
    resp = admixture.predict_proba(ROWS, groups=GROUPS)
    order = np.random.RandomState(1).permutation(len(ROWS))
    assert_allclose(
        admixture.predict_proba(ROWS[order], groups=GROUPS[order]), resp[order], atol=1e-9
    )


def test_one_topic_has_everything():
    one = HDPTopicVB(proposals=None).fit(X)
    assert_array_equal(one.transform(HELDOUT), np.ones((len(HELDOUT), 1)))


def test_single_precision_agrees(model, admixture):
    assert_allclose(
        model.transform(HELDOUT.astype(np.float32)), model.transform(HELDOUT), rtol=1e-6
    )
    rows = ROWS.astype(np.float32)
    resp = admixture.predict_proba(rows, groups=GROUPS)
    assert resp.dtype == np.float32
    assert_allclose(resp, admixture.predict_proba(ROWS, groups=GROUPS), atol=1e-3)


def test_threads_do_not_matter(model, admixture):
    expected = model.transform(HELDOUT), admixture.predict_proba(ROWS, groups=GROUPS)
    model.set_params(n_jobs=2), admixture.set_params(n_jobs=2)
    assert_array_equal(model.transform(HELDOUT), expected[0])
    assert_array_equal(admixture.predict_proba(ROWS, groups=GROUPS), expected[1])
    model.set_params(n_jobs=None), admixture.set_params(n_jobs=None)


def test_restarts_serve_the_fit_alone(model):
    shares = model.transform(HELDOUT)
    model.set_params(doc_restarts=0)
    assert_array_equal(model.transform(HELDOUT), shares)
    model.set_params(doc_restarts=5)


def test_rows_that_no_topic_explains():
    """Densities that underflow leave responsibilities that sum to 1."""
    model = HDPTopicVB(2, observation="gaussian", proposals=None, random_state=0)
    model.fit(ROWS[:100], groups=GROUPS[:100])
    far = np.array([[1e6, -1e6, 1e6], [0.0, 0.0, 0.0]])
    assert_allclose(model.predict_proba(far, groups=[0, 0]).sum(axis=1), 1.0)


def rows_with_copies(rng, kind, n):
    """Rows of any kind; many are equal."""
    codes = rng.integers(3, size=(n, 2)).astype(float)
    numbers = rng.normal(4.0 * codes[:, :1], size=(n, 2))
    numbers[::7] = numbers[0]
    with_gaps = np.where(rng.random((n, 2)) < 0.2, np.nan, numbers)
    rows = {
        "gaussian": numbers,
        "missing": with_gaps,
        "single precision": numbers.astype(np.float32),
        "poisson": rng.poisson(1.0 + codes),
        "sparse": sparse.csr_array(rng.poisson(codes)),
        "categorical": codes,
        "mixed": np.hstack([with_gaps, codes]),
        "multinomial": rng.poisson(1.0 + codes),
        "bernoulli": (codes > 1).astype(float),
    }
    return rows[kind]


OBSERVATIONS = {
    "gaussian": "gaussian",
    "missing": GaussianObservation("diag"),
    "single precision": GaussianObservation("diag"),
    "poisson": "poisson",
    "sparse": "poisson",
    "categorical": "categorical",
    "mixed": ColumnObservation([("n", "gaussian", [0, 1]), ("c", "categorical", [2, 3])]),
    "multinomial": "multinomial",
    "bernoulli": "bernoulli",
}
# Kinds of rows that clumps are not made of.
NOT_BOUNDED = {"missing", "sparse", "mixed"}
CASES = [(HDPTopicVB, kind) for kind in OBSERVATIONS]
CASES += [(MemoryBoundedTopicVB, kind) for kind in OBSERVATIONS if kind not in NOT_BOUNDED]


@pytest.mark.parametrize("estimator, kind", CASES)
def test_documents_are_bags_of_rows(estimator, kind):
    """No score depends on the order of rows, and what is found for a row follows it."""
    rng = np.random.default_rng(0)
    rows, groups = rows_with_copies(rng, kind, 240), np.repeat(np.arange(8), 30)
    given = {"n_components": 3, "proposals": None, "max_iter": 5, "random_state": 0}
    model = estimator(**(given if estimator is HDPTopicVB else {}), observation=OBSERVATIONS[kind])
    weight = np.repeat(rng.uniform(1.0, 2.0, size=8), 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, groups=groups, sample_weight=weight)
    score, each = model.score(rows, groups=groups), model.score_samples(rows, groups=groups)
    topics = model.predict_proba(rows, groups=groups)
    rtol = 1e-6 if kind == "single precision" else 1e-12
    for _ in range(3):
        order = rng.permutation(len(groups))
        moved = rows[order], groups[order]
        assert_allclose(model.score(moved[0], groups=moved[1]), score, rtol=rtol)
        assert_allclose(
            model.score_samples(moved[0], groups=moved[1]), each[order], rtol=rtol, atol=rtol
        )
        assert_allclose(
            model.predict_proba(moved[0], groups=moved[1]),
            topics[order],
            rtol=1e3 * rtol,
            atol=1e3 * rtol,
        )


def test_hidden_rows_are_drawn_from_what_rows_hold():
    """Their places among the sorted rows differ between documents of equal length, and copies are seen."""
    rng = np.random.default_rng(0)
    sizes = np.full(300, 5)
    documents = DocumentBatch(None, np.append(0, np.cumsum(sizes)), x=rng.normal(size=(1500, 1)))
    hidden = hidden_entries(documents, keys_of_content(documents), 0.2).reshape(300, 5)
    assert_array_equal(hidden.sum(axis=1), 1)
    ranks = documents.x.reshape(300, 5).argsort(axis=1).argsort(axis=1)[hidden]
    assert np.bincount(ranks, minlength=5).min() > 40  # 60 are expected, with a deviation of 7
    copies = documents._replace(x=np.zeros((1500, 1)))
    hidden = hidden_entries(copies, keys_of_content(copies), 0.2)
    assert_array_equal(hidden.reshape(300, 5).sum(axis=1), 1)
    codes = documents._replace(indptr=np.array([0, 1500]), x=rng.integers(3, size=(1500, 1)))
    hidden = hidden_entries(codes, keys_of_content(codes), 0.2)
    assert_allclose(np.bincount(codes.x[hidden, 0]) / 300, 1 / 3, atol=0.1)


def test_random_splits_are_those_of_each_document(model, admixture):
    """Neither the order of documents, nor that of rows, nor other documents change what is hidden."""
    rng, n = np.random.RandomState(0), len(HELDOUT)
    counts, twice = sparse.csr_array(HELDOUT), np.tile(np.arange(n), 2)
    for by in ("types", "tokens"):
        for seed in (0, 1):
            score = model.score_completion(counts, seed, by)
            for order in (np.arange(n)[::-1], rng.permutation(n), rng.permutation(twice)):
                assert model.score_completion(counts[order], seed, by) == pytest.approx(
                    score, rel=1e-12
                )
    score = admixture.score_completion(ROWS, 1, groups=GROUPS)
    for _ in range(3):
        order = rng.permutation(len(ROWS))
        moved = admixture.score_completion(ROWS[order], 1, groups=GROUPS[order])
        assert moved == pytest.approx(score, rel=1e-12)


def test_random_splits_are_uniform():
    """Over seeds each entry, or token, is hidden as often as any other."""
    documents = DocumentBatch(
        None,
        np.array([0, 5, 6, 6]),
        counts=np.array([1.0, 2.0, 0.0, 4.0, 1.0, 3.0]),
        indices=np.array([0, 1, 2, 5, 6, 3]),
    )
    rngs = [np.random.RandomState(seed) for seed in range(2000)]
    types = np.array([hidden_entries(documents, drawn_keys(documents, rng), 0.4) for rng in rngs])
    assert_array_equal(types[:, :5].sum(axis=1), 2)
    assert_allclose(types[:, :5].mean(axis=0), 0.4, atol=0.045)  # four deviations
    assert types[:, 5].all()
    tokens = np.zeros((2000, 7))
    for found, rng in zip(tokens, rngs, strict=True):
        seen, hidden = tokens_apart(documents, rng, 0.4)
        assert min(seen.counts.min(), hidden.counts.min()) > 0
        np.add.at(found, hidden.indices, hidden.counts)
        both = found.copy()
        np.add.at(both, seen.indices, seen.counts)
        assert_array_equal(both, [1, 2, 0, 3, 0, 4, 1])
    assert_array_equal(tokens[:, [0, 1, 2, 5, 6]].sum(axis=1), 3)  # of 8, that is .4 rounded
    expected = 3 / 8 * np.array([1, 2, 0, 4, 1])
    assert_allclose(tokens[:, [0, 1, 2, 5, 6]].mean(axis=0), expected, atol=0.07)
    assert_array_equal(tokens[:, 3], 1)  # of 3


def test_many_tokens_are_hidden_without_a_list_of_them(model):
    """And no more of them than numbers are drawn from."""
    expected = model.score_completion(HELDOUT * 1000, by="tokens")
    assert model.score_completion(HELDOUT * 10**6, by="tokens") == pytest.approx(expected, abs=0.01)
    with pytest.raises(
        ValueError, match=r"fewer than 1e\+09 tokens, but X has one of .*by='types'"
    ):
        model.score_completion(HELDOUT * 10**9, by="tokens")


def test_hidden_rows_do_not_depend_on_how_numbers_are_stored():
    rows = np.random.default_rng(0).poisson(1.0, size=(60, 4))
    indptr = np.array([0, 20, 25, 60])
    keys = keys_of_content(DocumentBatch(None, indptr, x=rows))
    for same in (
        rows.astype(np.float32),
        -0.0 + rows,
        sparse.csr_array(rows),
        rows.astype(np.int8),
    ):
        assert_array_equal(keys_of_content(DocumentBatch(None, indptr, x=same)), keys)
    assert_array_equal(
        keys_of_content(DocumentBatch(None, indptr, x=np.where(rows, rows, -0.0))), keys
    )
