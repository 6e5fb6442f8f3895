"""Topic models: the objective, against the definitions and exact marginal likelihoods."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from sklearn_bnp.engine.merge import Merge
from sklearn_bnp.topics.batch import DocumentBatch
from sklearn_bnp.topics.birth import TopicBirth
from sklearn_bnp.topics.delete import TopicDelete
from tests.reference import topics
from tests.reference.partitions import partitions

from .harness import random_resp
from .topic_harness import (
    assert_same_bag,
    bag_of,
    given,
    objective_by_hand,
    soft_resp,
    topic_learner,
)
from .topic_kinds import PRIORS, Corpus

HDP, DIRICHLET = PRIORS[0], PRIORS[2]


# ---------------------------------------------------------------------- the objective


@pytest.mark.parametrize("n_batches", [1, 3])
@pytest.mark.parametrize("n_components", [1, 4])
def test_objective_of_given_responsibilities(kind, prior, n_components, n_batches):
    """From totals as summed by hand, with q(phi), q(u) and q(pi_d) explicit."""
    rng = np.random.default_rng(1)
    corpus = kind.corpus(rng, 12)
    resp = soft_resp(rng, len(corpus.rows), n_components)
    follow = given(kind, prior, corpus, resp, n_batches)
    uids = np.arange(n_components)
    expected = objective_by_hand(follow, resp, uids)
    assert_allclose(follow.learner.lower_bound, expected, rtol=1e-10)
    totals, bag = follow.learner.totals, bag_of(follow, corpus.batch, resp, uids)
    # documents are in batches
    assert_same_bag(totals._replace(extra=bag.extra), bag.aligned(totals.uids), rtol=1e-12)


@pytest.mark.parametrize("prior", [HDP, PRIORS[1]], ids=lambda prior: prior.name)
def test_global_step_ends_at_a_maximum(kind, prior):
    """No sticks near those found are better, by hand."""
    rng = np.random.default_rng(2)
    corpus = kind.corpus(rng, 12)
    resp = soft_resp(rng, len(corpus.rows), 3)
    follow = given(kind, prior, corpus, resp)
    learner = follow.learner
    sticks = learner.model.sticks
    best = objective_by_hand(follow, resp, np.arange(3))
    for k, factor, which in itertools.product(range(3), (0.9, 1.1), ("rho", "omega")):
        value = getattr(sticks, which).copy()
        value[k] = min(value[k] * factor, 0.5 * (1.0 + value[k]) if which == "rho" else np.inf)
        learner.model = learner.model._replace(sticks=sticks._replace(**{which: value}))
        assert objective_by_hand(follow, resp, np.arange(3)) <= best + 1e-4


# ---------------------------------------------------------------------- bounds

TINY = {"words": (3, 2.4), "full": (2, 3.0), "bernoulli": (3, 2.0)}


def tiny(kind, seed):
    """A corpus of six or seven tokens, each an entry of its own."""
    for s in itertools.count(100 * seed):
        corpus = kind.corpus(np.random.default_rng(s), *TINY[kind.name], spread=2.0)
        tokens = np.repeat(np.arange(len(corpus.rows)), corpus.weight.astype(int))
        if 6 <= len(tokens) <= 7 and len(np.unique(corpus.doc)) > 1:
            break
    doc = corpus.doc[tokens]
    sizes = np.bincount(doc, minlength=corpus.n_docs)
    batch, fields = corpus.batch, {}
    if batch.indices is not None:
        fields = {"indices": batch.indices[tokens]}
    else:
        fields = {"x": batch.x[tokens]}
    batch = DocumentBatch("all", np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), **fields)
    return Corpus(batch, corpus.rows[tokens], np.ones(len(tokens)), doc, corpus.labels[tokens])


def exact(follow, n_components):
    """``log p(x)`` under the prior as it stands, with the ridge where there is one."""
    corpus, twin = follow.corpus, follow.prior.twin(n_components)
    return topics.log_marginal(follow.twin, twin, follow.prepared(), corpus.doc, corpus.n_docs)


@pytest.mark.parametrize("q", ["soft", "hard", "fitted"])
def test_below_the_exact_marginal_likelihood(kind, prior, q):
    """By enumeration of all partitions; for the HDP by the Chinese restaurant franchise."""
    corpus, rng = tiny(kind, 1), np.random.default_rng(3)
    n, K = len(corpus.rows), 2
    if q == "fitted":
        follow = topic_learner(kind, prior, corpus, K, resp=np.eye(K)[corpus.labels % K])
        for _ in range(5):
            follow.learner.run_lap(follow.source, propose=False)
    else:
        resp = random_resp(rng, n, K) if q == "soft" else np.eye(K)[rng.integers(K, size=n)]
        follow = given(kind, prior, corpus, resp)
    log_p = exact(follow, K)
    assert follow.learner.lower_bound <= log_p + 1e-9
    if q == "fitted":
        assert log_p - follow.learner.lower_bound < 8.0  # not below by a constant


def test_below_it_after_proposals(kind, prior):
    """Whatever topics the search ends with."""
    corpus = tiny(kind, 2)
    proposals = [TopicBirth(min_tokens=0), Merge(max_members=2), TopicDelete()]
    follow = topic_learner(kind, prior, corpus, 3, proposals=proposals, n_batches=2)
    for _ in range(4):
        follow.learner.run_lap(follow.source)
    K = len(follow.learner.totals.uids)
    assert follow.learner.lower_bound <= exact(follow, K) + 1e-9


@pytest.mark.parametrize("prior", PRIORS[2:], ids=lambda prior: prior.name)
def test_hard_assignments_add_up_to_the_marginal_likelihood(kind, prior):
    """Of the finite prior: at hard responsibilities the objective is ``log p(x, z)``, not a bound."""
    corpus = tiny(kind, 3)
    n = len(corpus.rows)
    follow = given(kind, prior, corpus, np.eye(2)[np.arange(n) % 2])
    model, values = follow.learner.model, []
    for z in itertools.product(range(2), repeat=n):
        bag = bag_of(follow, corpus.batch, np.eye(2)[list(z)], np.arange(2))
        values.append(model.elbo(bag))
    assert_allclose(logsumexp(values), exact(follow, 2), rtol=1e-9)


@pytest.mark.parametrize("docs", [[0] * 6, [0, 0, 1, 1, 1], [0, 1, 2, 2, 0], [0, 1, 1, 2, 2, 1, 0]])
def test_prior_of_partitions_sums_to_one(prior, docs):
    """Of the twins: what the exact marginal likelihoods rest on."""
    docs, values = np.array(docs), []
    for partition in partitions(len(docs)):
        counts = [np.bincount(docs[list(b)], minlength=docs.max() + 1) for b in partition]
        values.append(prior.twin(3).log_prior_partition(np.array(counts, dtype=float).T))
    assert_allclose(logsumexp(values), 0.0, atol=1e-11)
