"""Starts from directions of the corpus, and first births of documents that mix many topics."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from sklearn_bnp import HDPTopicVB
from sklearn_bnp.topics.spectral import spectral_topics, varimax


def mixed_documents(seed=0, n_docs=250, n_tokens=500, n_topics=15, n_types=400, share=0.5):
    """Documents (n_docs, V) that mix many topics (K, V) each, and these."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(n_types, 0.05), size=n_topics)
    weights = rng.dirichlet(np.full(n_topics, share), size=n_docs)
    return sparse.csr_matrix(np.array([rng.multinomial(n_tokens, p) for p in weights @ phi])), phi


def distances(phi, found):
    """Total variation between each true topic and the found topic that is matched with it."""
    table = 0.5 * np.abs(phi[:, np.newaxis] - found[np.newaxis]).sum(axis=2)
    return table[linear_sum_assignment(table)]


def spectral(X, n, weight=None):
    (topics,) = spectral_topics(X, [n], np.random.RandomState(0), weight)
    return topics


class TestDirections:
    def test_they_are_the_topics(self):
        X, phi = mixed_documents()
        assert np.max(distances(phi, spectral(X, 15))) < 0.35

    def test_they_are_the_topics_if_there_are_too_many(self):
        X, phi = mixed_documents()
        assert np.median(distances(phi, spectral(X, 25))) < 0.35

    def test_they_are_distributions(self):
        X, _ = mixed_documents()
        topics = spectral(X, 20)
        assert topics.min() >= 0
        assert topics.sum(axis=1) == pytest.approx(np.ones(20))

    def test_words_that_never_occur_have_no_probability(self):
        X, _ = mixed_documents()
        wide = sparse.hstack([X, sparse.csr_matrix((X.shape[0], 5))]).tocsr()
        topics = spectral(wide, 15)
        assert np.all(topics[:, -5:] == 0)
        assert distances(spectral(X, 15), topics[:, :-5]).max() < 1e-6

    def test_order_of_documents_and_words_does_not_matter(self):
        X, _ = mixed_documents()
        rng = np.random.default_rng(1)
        docs, words = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
        shuffled = spectral(X[docs][:, words], 15)
        assert distances(spectral(X, 15)[:, words], shuffled).max() < 0.02

    def test_a_weight_is_so_many_documents(self):
        X, _ = mixed_documents()
        times = np.random.default_rng(2).integers(1, 4, size=X.shape[0])
        copies = X[np.repeat(np.arange(X.shape[0]), times)]
        assert distances(spectral(copies, 15), spectral(X, 15, times.astype(float))).max() < 0.02

    def test_one_number_after_the_other(self):
        X, _ = mixed_documents()
        numbers = [len(t) for t in spectral_topics(X, [5, 12], np.random.RandomState(0))]
        assert numbers == [5, 12]
        assert list(spectral_topics(X, [], np.random.RandomState(0))) == []


class TestVarimax:
    @pytest.mark.parametrize("n_dims", [2, 5])
    def test_it_undoes_a_rotation(self, n_dims):
        rng = np.random.default_rng(3)
        simple = np.zeros((40 * n_dims, n_dims))
        simple[np.arange(40 * n_dims), np.arange(40 * n_dims) % n_dims] = rng.gamma(
            2.0, size=40 * n_dims
        )
        turned, _ = np.linalg.qr(rng.normal(size=(n_dims, n_dims)))
        back = turned @ varimax(simple @ turned)
        assert np.abs(back).max(axis=0) == pytest.approx(np.ones(n_dims), abs=1e-3)
        assert back.T @ back == pytest.approx(np.eye(n_dims), abs=1e-10)


class TestFits:
    @pytest.mark.extended
    @pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
    def test_topics_of_documents_that_mix_many_are_found(self, seed):
        X, phi = mixed_documents(seed)
        model = HDPTopicVB(random_state=seed).fit(X)
        found = model.components_ / model.components_.sum(axis=1, keepdims=True)
        assert model.n_components_ == 15
        assert np.max(distances(phi, found)) < 0.2
        # the sum of the true parameters is 7.5; starts from the true topics learn 10.1, and 10.4
        assert 5.0 < model.doc_topic_prior_ < 11.0

    @pytest.mark.slow
    def test_the_bound_is_about_that_of_a_start_from_the_truth(self):
        X, phi = mixed_documents()
        model = HDPTopicVB(random_state=0).fit(X)
        truth = HDPTopicVB(15, init_params=phi + 1e-9, random_state=0).fit(X)
        assert model.lower_bound_ > truth.lower_bound_ * (1 + 2e-3)  # it is negative

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_a_given_prior_of_documents_stays(self):
        X, _ = mixed_documents(n_docs=100, n_topics=5)
        model = HDPTopicVB(doc_topic_prior=5.0, random_state=0, max_iter=3).fit(X)
        assert model.n_components_ > 1
        assert model.doc_topic_prior_ == 5.0

    @pytest.mark.extended
    def test_documents_of_one_topic_lead_to_a_low_prior(self):
        X, _ = mixed_documents(share=0.01, n_docs=200, n_tokens=200)
        model = HDPTopicVB(random_state=0).fit(X)
        assert model.doc_topic_prior_ < 0.5


class TestConcentrationsOnTrial:
    """A trial may bring the concentrations that its components were found with."""

    def model(self, learned=("doc_concentration",)):
        X, _ = mixed_documents(n_docs=60, n_topics=3)
        fitted = HDPTopicVB(3, proposals=None, tol=1e-3, random_state=0).fit(X)
        learner = fitted._learner_
        return learner.model.released()._replace(learned=learned), learner.totals

    def test_the_lap_begins_with_them_and_learns_them_later(self):
        model, totals = self.model()
        there = model.adopting(totals, {totals.uids[0]: (99,)}, {"doc_concentration": 7.0})
        assert there.allocation.doc_concentration == 7.0
        assert there.waits
        assert not there.released().waits

    def test_those_that_are_given_stay(self):
        model, totals = self.model(learned=())
        there = model.adopting(totals, {totals.uids[0]: (99,)}, {"doc_concentration": 7.0})
        assert there.allocation == model.allocation
        assert not there.waits
