"""Topic models: the local step of one document."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp.topics.documents import DocumentSettings
from sklearn_bnp.topics.local import document_parameters, document_step
from tests.reference import documents, topics

from .harness import random_resp
from .topic_harness import (
    bag_of,
    documents_of,
    given,
    soft_resp,
)
from .topic_kinds import PRIORS

HDP, DIRICHLET = PRIORS[0], PRIORS[2]


class Problem:
    """Documents with topics that are known, as the engine and as the twins see them."""

    def __init__(self, kind, n_components=4, seed=4, n_docs=16, **corpus):
        rng = np.random.default_rng(seed)
        self.corpus = corpus = kind.corpus(rng, n_docs, **corpus)
        resp = random_resp(rng, len(corpus.rows), n_components)
        soft = np.eye(n_components)[corpus.labels] + 0.5 * resp
        self.follow = given(kind, HDP, corpus, soft / soft.sum(axis=1, keepdims=True))
        model, totals = self.follow.learner.model, self.follow.learner.totals
        self.likelihood, self.docs = model.likelihood, documents_of(self.follow, corpus)
        self.params = document_parameters(self.likelihood, model.prior, totals.s)
        self.prior = model.doc_prior(totals)
        twin, z = self.follow.twin, self.follow.prepared()
        order = totals.uids
        posteriors = [
            twin.posterior(z, corpus.weight * r) for r in soft.T[order] / soft.sum(axis=1)
        ]
        self.log_lik = np.array([twin.expected_log_lik(q, z) for q in posteriors]).T

    def solve(self, start=None, prior=None, **settings):
        settings = DocumentSettings(**{"cold": start is None, **settings})
        prior = self.prior if prior is None else prior
        return document_step(
            self.likelihood, self.params, self.docs, prior, settings, start=start, want_resp=True
        )

    def each(self):
        """Entries of each document that has any."""
        return [(d, np.flatnonzero(self.corpus.doc == d)) for d in np.unique(self.corpus.doc)]

    def objectives(self, resp, prior=None):
        """(5.40) of each document by hand."""
        prior = self.prior if prior is None else prior
        return np.array(
            [
                documents.score(self.log_lik[e], self.corpus.weight[e], prior, resp[e])
                for _, e in self.each()
            ]
        )


@pytest.mark.parametrize("start", [None, "equal", "random"])
def test_documents_are_solved_as_by_hand(kind, start):
    """Alg. 5.1, cold or from counts, to convergence; entropies, counts and statistics as well."""
    problem = Problem(kind)
    corpus, K = problem.corpus, problem.log_lik.shape[1]
    if start is not None:
        lengths = np.bincount(corpus.doc, corpus.weight, minlength=corpus.n_docs)
        shares = np.full((corpus.n_docs, K), 1.0 / K)
        if start == "random":
            shares = np.random.default_rng(5).dirichlet(np.ones(K), size=corpus.n_docs)
        start = shares * lengths[:, np.newaxis]
    step = problem.solve(start=start, tol=1e-9, max_iter=3000)
    bag = bag_of(problem.follow, corpus.batch, step.resp, np.arange(K))
    assert_allclose(step.resp.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(step.s, bag.s, atol=1e-10 * np.abs(bag.s).sum())
    assert_allclose(step.entropy, bag.entropy, atol=1e-10 * corpus.weight.sum())
    assert_allclose(step.counts, bag.extra.parts["all"].dense(range(K)), atol=1e-9)
    for d, e in problem.each():
        weight = corpus.weight[e]
        twin = documents.Document(problem.log_lik[e], weight, problem.prior, max_iter=3000)
        expected = twin.solve(None if start is None else start[d], cold=start is None).shares
        # topics leave a document for good below a hundredth of a token
        assert_allclose(weight @ step.resp[e], weight @ expected, atol=0.05)
        assert_allclose(
            documents.score(problem.log_lik[e], weight, problem.prior, step.resp[e]),
            documents.score(problem.log_lik[e], weight, problem.prior, expected),
            atol=0.05,
        )


def test_documents_end_at_a_fixed_point(kind):
    """One more step by hand never lowers a document's objective, and hardly moves its counts."""
    problem = Problem(kind)
    step = problem.solve(n_restarts=5)
    before = problem.objectives(step.resp)
    again = np.empty_like(step.resp)
    for d, e in problem.each():
        twin = documents.Document(problem.log_lik[e], problem.corpus.weight[e], problem.prior)
        again[e] = twin.local(twin.log_weights(step.counts[d], problem.prior > 0)).shares
        assert np.abs(problem.corpus.weight[e] @ again[e] - step.counts[d]).max() < 0.06
    gain = problem.objectives(again) - before
    assert np.all((gain > -1e-9 * np.abs(before)) & (gain < 0.1))


@pytest.mark.parametrize("settings", [{}, {"cold": True}, {"n_restarts": 5}, {"max_iter": 1}])
def test_warm_starts_never_lower_a_document(kind, settings):
    """From the counts of any responsibilities, under any topics."""
    problem = Problem(kind)
    corpus, K = problem.corpus, problem.log_lik.shape[1]
    rng = np.random.default_rng(6)
    for resp in (
        soft_resp(rng, len(corpus.rows), K),
        np.eye(K)[rng.integers(K, size=len(corpus.rows))],
    ):
        counts = topics.document_counts(resp, corpus.weight, corpus.doc, corpus.n_docs)
        before = problem.objectives(resp)
        after = problem.objectives(problem.solve(start=counts, **settings).resp)
        assert np.all(after >= before - 1e-9 * np.abs(before))


@pytest.mark.parametrize("n_components", [4, 8])
def test_restarts_never_lower_a_document(kind, n_components):
    """And raise some, where topics are many and alike."""
    gains = []
    for seed in range(3):
        problem = Problem(kind, n_components, seed=seed, spread=2.0)
        without = problem.objectives(problem.solve().resp)
        gains.append(problem.objectives(problem.solve(n_restarts=5).resp) - without)
        assert np.all(gains[-1] >= -1e-9 * np.abs(without))
    if kind.name == "words":
        assert max(gain.max() for gain in gains) > 0.01


def test_topics_without_prior_are_out(kind):
    """What a topic that is retired has as its prior: no entry goes there, cold or warm."""
    problem = Problem(kind)
    prior = problem.prior.copy()
    prior[1] = 0.0
    start = problem.solve().counts
    start[:, 2] += start[:, 1]
    start[:, 1] = 0.0
    for given_start in (None, start):
        step = problem.solve(start=given_start, prior=prior, cold=True, n_restarts=5)
        assert not step.resp[:, 1].any() and not step.counts[:, 1].any()
        assert not step.s[1].any()
        assert_allclose(step.counts.sum(axis=1), problem.docs.lengths, rtol=1e-12)
