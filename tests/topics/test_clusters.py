"""Clusters of documents, from which topics of short texts start."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import HDPTopicVB
from sklearn_bnp.topics.document_clusters import _shares, clustered_documents
from tests.benchmarks import corpora


def corpus(rng, n_docs=40, V=12, length=5):
    return sparse.csr_matrix(rng.multinomial(length, rng.dirichlet(np.ones(V)), size=n_docs) * 1.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_shares_are_those_of_documents_that_are_left_out(weighted):
    """Word by word, document by document, cluster by cluster."""
    rng = np.random.default_rng(0)
    X, J = corpus(rng), 3
    times = rng.uniform(0.5, 2.0, X.shape[0]) if weighted else np.ones(X.shape[0])
    prior = rng.uniform(0.1, 1.0, X.shape[1])
    before = rng.dirichlet(np.full(J, 20.0), size=X.shape[0])
    # too small shares of a cluster for the document to be left out of it
    before[0] = [0.98, 0.01, 0.01]
    dense, lengths = X.toarray(), X.toarray().sum(axis=1)
    s = (before * times[:, np.newaxis]).T @ dense
    expected = np.empty((X.shape[0], J))
    for d in range(X.shape[0]):
        for j in range(J):
            own = before[d, j] * times[d]
            left = s[j] - (own if before[d, j] > 0.05 else 0.0) * dense[d] + prior
            expected[d, j] = np.log((before[:, j] * times).sum() - own + 1.0 / J)
            expected[d, j] += dense[d] @ np.log(left) - lengths[d] * np.log(left.sum())
    expected = np.exp(expected - expected.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    found = _shares(X, lengths, times, s, before, prior)
    assert_allclose(found, expected, rtol=1e-9)


def test_documents_of_one_topic_each_are_told_apart():
    rng = np.random.default_rng(1)
    phi = rng.dirichlet(np.full(200, 0.05), size=6)
    labels = rng.integers(6, size=400)
    X = corpora.draw_documents(rng, phi, np.eye(6)[labels], 8).astype(float)
    s = clustered_documents(X, np.full(200, 0.1), 40, np.random.RandomState(0))
    log_p = X @ np.log(s.T + 0.1) - np.outer(X.sum(axis=1), np.log(s.sum(axis=1) + 20.0))
    assert adjusted_rand_score(labels, log_p.argmax(axis=1)) > 0.7
    # but for clusters of less than a document, which leave
    assert_allclose(s.sum(), X.sum(), atol=8)


def test_few_documents_have_no_clusters():
    X = corpus(np.random.default_rng(2), n_docs=15)
    assert clustered_documents(X, np.ones(12), 50, np.random.RandomState(0)) is None


def test_weights_are_copies():
    """Whole weights and copies of documents lead to clusters of the same counts, from the same seeds."""
    rng = np.random.default_rng(3)
    X, J = corpus(rng, n_docs=30), 2
    times, prior = np.full(30, 2.0), np.ones(12)
    lengths, s = X.toarray().sum(axis=1), rng.uniform(1, 5, (J, 12))
    once = _shares(X, lengths, times, s, None, prior)
    twice = _shares(sparse.vstack([X, X]).tocsr(), np.tile(lengths, 2), np.ones(60), s, None, prior)
    assert_allclose(np.vstack([once, once]), twice, rtol=1e-12)


@pytest.mark.extended
def test_texts_of_eight_words_have_topics():
    """From anchors and single documents alone there would be no birth here."""
    rng = np.random.default_rng(4)
    phi = rng.dirichlet(np.full(600, 0.2), size=12)
    shares = rng.dirichlet(np.full(12, 0.025), size=800)
    X = corpora.draw_documents(rng, phi, shares, 8)
    model = HDPTopicVB(random_state=0).fit(X)
    one = HDPTopicVB(proposals=None).fit(X)
    assert 11 <= model.n_components_ <= 17
    assert model.lower_bound_ > one.lower_bound_ + 200
    assert model.score(X) > one.score(X) + 0.5
