"""Predictions of topic models: laws of `transform`, `predict_proba` and scores, for words and rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

from sklearn_bnp import HDPTopicVB
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
