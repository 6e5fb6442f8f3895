"""Topic models: the objective, bounds, what never falls, and what changes nothing."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from sklearn_bnp.core.corpus import Documents, Settings
from sklearn_bnp.core.document_counts import DocumentCounts
from sklearn_bnp.core.documents import DocumentBatch, DocumentSource
from sklearn_bnp.core.scheduler import _Judged, _State
from sklearn_bnp.core.stats import StatBag, union_row
from sklearn_bnp.core.topic_model import LocalSchedule
from sklearn_bnp.proposals.base import UnionTrial
from sklearn_bnp.proposals.merge import Merge
from sklearn_bnp.proposals.topic_birth import TopicBirth
from sklearn_bnp.proposals.topic_delete import TopicDelete
from tests.reference import topics
from tests.reference.partitions import partitions

from .harness import random_resp
from .topic_harness import (
    KINDS,
    PRIORS,
    Corpus,
    TopicShadow,
    assert_same_bag,
    bag_of,
    given,
    model_of,
    objective_by_hand,
    topic_learner,
)

HDP, DIRICHLET = PRIORS[0], PRIORS[2]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request):
    return request.param


@pytest.fixture(params=PRIORS, ids=lambda prior: prior.name)
def prior(request):
    return request.param


def soft_resp(rng, n, K):
    """Responsibilities with many exact zeros."""
    resp = random_resp(rng, n, K) * (rng.random((n, K)) < 0.6)
    resp[:, -1] += resp.sum(axis=1) == 0
    return resp / resp.sum(axis=1, keepdims=True)


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
    assert_same_bag(
        totals._replace(docs=bag.docs), bag.aligned(totals.uids), rtol=1e-12
    )  # documents are in batches


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


# ---------------------------------------------------------------------- one document


def documents_of(follow, corpus):
    batch = corpus.batch
    return batch.documents(0, corpus.n_docs, follow.learner.model.likelihood.prepare)


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
        self.params = self.likelihood.document_parameters(model.prior, totals.s)
        self.prior = model.doc_prior(totals)
        twin, z = self.follow.twin, self.follow.prepared()
        order = totals.uids
        posteriors = [
            twin.posterior(z, corpus.weight * r) for r in soft.T[order] / soft.sum(axis=1)
        ]
        self.log_lik = np.array([twin.expected_log_lik(q, z) for q in posteriors]).T

    def solve(self, start=None, prior=None, **settings):
        settings = Settings(**{"cold": start is None, **settings})
        return self.likelihood.document_step(
            self.params, self.docs, self.prior if prior is None else prior, settings, start=start,
            want_resp=True,
        )  # fmt: skip

    def each(self):
        """Entries of each document that has any."""
        return [(d, np.flatnonzero(self.corpus.doc == d)) for d in np.unique(self.corpus.doc)]

    def objectives(self, resp, prior=None):
        """(5.40) of each document by hand."""
        prior = self.prior if prior is None else prior
        return np.array(
            [
                topics.document_objective(self.log_lik[e], self.corpus.weight[e], prior, resp[e])
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
    assert_allclose(step.counts, bag.docs.parts["all"].dense(range(K)), atol=1e-9)
    for d, e in problem.each():
        expected = topics.document_step(
            problem.log_lik[e], corpus.weight[e], problem.prior,
            None if start is None else start[d], max_iter=3000, tol=1e-9,
        )  # fmt: skip
        # topics leave a document for good below a hundredth of a token
        weight = corpus.weight[e]
        assert_allclose(weight @ step.resp[e], weight @ expected, atol=0.05)
        assert_allclose(
            topics.document_objective(problem.log_lik[e], weight, problem.prior, step.resp[e]),
            topics.document_objective(problem.log_lik[e], weight, problem.prior, expected),
            atol=0.05,
        )


def test_documents_end_at_a_fixed_point(kind):
    """One more step by hand never lowers a document's objective, and hardly moves its counts."""
    problem = Problem(kind)
    step = problem.solve(n_restarts=5)
    before = problem.objectives(step.resp)
    again = np.empty_like(step.resp)
    for d, e in problem.each():
        again[e] = topics.best_shares(problem.log_lik[e], problem.prior, step.counts[d])
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


# ---------------------------------------------------------------------- what never falls


def assert_rises(values):
    """Up to rounding of 1e-9, as for mixtures."""
    values = np.asarray(values)
    falls = np.flatnonzero(np.diff(values) < -1e-9 * np.abs(values[1:]))
    assert len(falls) == 0, f"falls after {falls}: {values[falls]} -> {values[falls + 1]}"


# What a search over the sticks, or over orders of topics, may be short of the best, in nats.
SEARCH = 0.2


def used_by_few(n_docs=30):
    """`Followed` with topics of which the largest is used by few documents, and its responsibilities."""
    corpus = KINDS[0].corpus(np.random.default_rng(0), n_docs)
    few = (corpus.doc < 8)[:, np.newaxis]
    resp = np.where(few, [0.07, 0.03, 0.1, 0.8], [0.7, 0.1, 0.2, 0.0])
    corpus = corpus._replace(batch=corpus.batch._replace(resp=resp))
    return topic_learner(KINDS[0], HDP, corpus, 4, resp=resp)


def test_putting_topics_in_order_costs_nothing():
    """Of a topic that few documents use much and one that all use a little, the second has more weight."""
    follow = used_by_few()
    learner = follow.learner
    learner.begin_lap(follow.corpus.weight.sum())
    learner.visit(follow.source.batch(0), update=False)
    before = learner.model.updated(learner.totals).elbo(learner.totals)
    learner.end_lap(propose=False)
    assert learner.lower_bound >= before - 1e-9 * abs(before)
    assert np.any(np.diff(learner.totals.n) > 0)  # by mass they would have less


def test_order_of_topics_suits_the_sticks():
    """From any order: not worse than that, hardly worse than the best of all, and by weight."""
    follow = used_by_few()
    follow.learner.run_lap(follow.source, propose=False)
    model, totals = follow.learner.model, follow.learner.totals
    before, after = [], []
    for order in itertools.permutations(range(4)):
        given_order = totals.take(np.array(order))
        before.append(model.updated(given_order).elbo(given_order))
        ordered, there = model.in_order(given_order)
        after.append(there.elbo(ordered))
        assert after[-1] >= before[-1] - 1e-9 * abs(before[-1])
        rows = totals.positions(ordered.uids)
        assert sorted(rows) == [0, 1, 2, 3]
        assert_same_bag(ordered, totals.take(rows), rtol=1e-14)
        assert there.uids == tuple(ordered.uids.tolist())
        assert np.all(np.diff(there.allocation.weights(there.sticks)) < 0)
    assert max(before) - min(before) > 10 * SEARCH
    assert max(before) - min(after) < SEARCH


def test_topics_of_equal_weight_lie_by_mass():
    """Where the order is worth nothing: whatever the order before."""
    rng = np.random.default_rng(26)
    for prior in 4 * PRIORS[2:]:
        corpus = KINDS[0].corpus(rng, 12)
        follow = given(KINDS[0], prior, corpus, soft_resp(rng, len(corpus.rows), 4))
        model, totals = follow.learner.model, follow.learner.totals
        by_mass = totals.uids[np.argsort(-totals.n)]
        for order in itertools.permutations(range(4)):
            ordered, there = model.in_order(totals.take(np.array(order)))
            assert_allclose(there.elbo(ordered), model.elbo(totals), rtol=1e-12)
            assert ordered.uids.tolist() == by_mass.tolist()


SEARCHES = [
    pytest.param(lambda: [TopicBirth(min_tokens=20), Merge(max_members=2)], 1, id="up"),
    pytest.param(lambda: [Merge(max_members=2), TopicDelete()], 9, id="down"),
    pytest.param(
        lambda: [TopicBirth(n_seeds=3, min_tokens=20), Merge(max_members=2), TopicDelete()], 4,
        id="both",
    ),
]  # fmt: skip


@pytest.mark.parametrize("proposals, n_components", SEARCHES)
def test_every_lap_with_proposals(kind, prior, proposals, n_components):
    """With warm starts: from lap to lap, at each global step, and at the end of each lap."""
    corpus = kind.corpus(np.random.default_rng(7), 20, spread=1.3)
    follow = topic_learner(
        kind, prior, corpus, n_components, proposals=proposals(), n_batches=3, seed=1
    )
    shadow = TopicShadow(follow)
    for _ in range(6):
        follow.learner.run_lap(follow.source)
    assert_rises(shadow.lap_values)
    for pair in shadow.step_values:
        assert_rises(pair)
    for pair in shadow.end_values:
        assert_rises(pair)


@pytest.mark.parametrize("every, n_restarts", [(1, 5), (2, 5), (100, 0)])
def test_every_visit_after_the_first_lap(kind, prior, every, n_restarts):
    """With warm starts, whether documents start anew as well or not, at a fixed truncation."""
    corpus = kind.corpus(np.random.default_rng(8), 16)
    follow = topic_learner(
        kind, prior, corpus, 5, n_batches=4, schedule=LocalSchedule(True, every, n_restarts)
    )
    learner = follow.learner
    learner.run_lap(follow.source, propose=False)
    first, values = None, [learner.lower_bound]
    for _ in range(4):
        learner.begin_lap()
        for batch in follow.source.batches(learner.rng):
            learner.visit(batch)
            values.append(learner.lower_bound)
        assert_rises(values)
        learner.end_lap(propose=False)
        assert_rises([values[-1], learner.lower_bound])
        first, values = values[0] if len(learner.history) == 2 else first, [learner.lower_bound]
    assert values[-1] > first + 1.0


def test_without_warm_starts_only_documents_may_lose(kind, prior):
    """The errata's exception: the local step. Global steps and ends of laps still never lower."""
    corpus = kind.corpus(np.random.default_rng(9), 20, spread=1.5)
    follow = topic_learner(
        kind, prior, corpus, 6, n_batches=3, schedule=LocalSchedule(warm=False),
        proposals=[Merge(max_members=2), TopicDelete()],
    )  # fmt: skip
    shadow = TopicShadow(follow)
    for _ in range(5):
        follow.learner.run_lap(follow.source)
    assert len(shadow.step_values) > 0
    for pair in shadow.step_values:
        assert_rises(pair)
    for pair in shadow.end_values:
        assert_rises(pair)


def test_every_verdict_raises_the_objective():
    """Each trial accepted, with the topics settled before and after."""
    gains = []
    for seed, n_components in itertools.product((1, 2, 15), (1, 20, 30)):
        rng = np.random.default_rng(seed)
        corpus = KINDS[0].corpus(rng, 40, spread=1 + seed % 4 * 0.7, mean_length=60)
        proposals = [Merge(max_members=2), TopicDelete()]
        if n_components == 1:
            proposals = [TopicBirth(n_first_seeds=10, min_tokens=20), Merge(max_members=2)]
        follow = topic_learner(
            KINDS[0], HDP, corpus, n_components, proposals=proposals, n_batches=1 + seed % 4,
            seed=seed,
        )  # fmt: skip
        shadow = TopicShadow(follow)
        for _ in range(4):
            follow.learner.run_lap(follow.source)
        gains += [after - before for before, after in shadow.verdicts]
    assert len(gains) > 20
    assert min(gains) > -SEARCH


def test_trials_are_judged_against_topics_that_are_settled():
    """Else what a better order of all topics brings would be to the credit of each of them."""
    kind = KINDS[1]
    corpus = kind.corpus(np.random.default_rng(104), 30)
    follow = topic_learner(
        kind, PRIORS[1], corpus, 20, proposals=[Merge(max_members=2), TopicDelete()], seed=4
    )
    shadow = TopicShadow(follow)
    for _ in range(3):
        follow.learner.run_lap(follow.source)
    assert len(shadow.unsettled) > 0
    assert max(shadow.unsettled) < SEARCH


class Biased(UnionTrial):
    """A merge of which it is known what it brings: its entropy is made up."""

    def __init__(self, removed, created, bag):
        super().__init__("merge", removed, created)
        self.bag, self.entropies = bag, {0: None}

    def successors(self, totals, rest=None):
        return self.bag


def merge_that_brings(gain, model, totals, removed, created, value=TopicShadow.settled):
    """`Biased` for two topics by their uids; ``value(model, totals)`` is what it raises by ``gain``."""
    bag = union_row(totals, removed, (created,), 0.0)
    bias = value(model, totals.replaced(removed, bag)) - value(model, totals)
    return Biased(removed, (created,), bag._replace(entropy=np.array([gain - bias])))


def six_topics(kind, prior=HDP):
    """`Followed` with topics of half of the tokens, a quarter, and so on."""
    rng = np.random.default_rng(23)
    corpus = kind.corpus(rng, 30)
    labels = rng.choice(6, size=len(corpus.rows), p=[0.5, 0.25, 0.12, 0.07, 0.04, 0.02])
    return given(kind, prior, corpus, np.eye(6)[labels])


@pytest.mark.parametrize(
    "gain, backwards",
    [
        (-2.0, False),
        (2.0, False),
        (2.0, True),
        (-2.0, True),
    ],
)
def test_verdicts_do_not_depend_on_the_order_of_topics(gain, backwards):
    """A merge that brings 2 nats is accepted as a lap ends, one that costs 2 nats is not."""
    learner = six_topics(KINDS[0]).learner
    proposal = Merge()
    proposal.reset()
    totals, learner.scheduler.proposals = learner.totals, [proposal]
    trial = merge_that_brings(gain, learner.model, totals, tuple(totals.uids[[1, 3]].tolist()), 9)
    learner.scheduler.trials = [trial]
    if backwards:
        learner.totals = totals.take(np.arange(6)[::-1])
    lap = learner.end_lap(propose=False)
    assert lap.tried == {"merge": 1}
    assert (9 in learner.totals.uids) == (gain > 0)


def value_under_adapted_priors(model, totals):
    """The objective of settled topics under the prior as it stands or the one that suits them."""
    adapted = model.with_adapted_prior(totals, 10)
    return max(TopicShadow.settled(m, totals) for m in (model, adapted))


@pytest.mark.parametrize(
    "gain, before",
    [
        (-2.0, False),
        (2.0, False),
        (2.0, True),
        (-2.0, True),
    ],
)
def test_verdicts_under_an_adapted_prior(gain, before):
    """They too are about topics that are settled, also when another such trial was accepted before."""
    follow = six_topics(KINDS[2])
    model, totals = follow.learner.model, follow.learner.totals
    removed = [tuple(totals.uids[rows].tolist()) for rows in ([0, 3], [1, 4])]
    state = _State(model, totals)

    def accepts(gain, removed, created):
        trial = merge_that_brings(
            gain, state.model, state.totals, removed, created, value_under_adapted_priors
        )
        return state.accept_adapted(_Judged(trial, removed, trial.bag, False))

    if before:
        assert accepts(300.0, removed[0], 9)
    assert accepts(gain, removed[1], 10) == (gain > 0)


def test_laps_with_adoptions_are_judged_by_what_they_end_with(kind):
    """Not by an objective that still counts retired topics, or has those adopted last."""
    corpus = kind.corpus(np.random.default_rng(24), 24)
    follow = topic_learner(kind, HDP, corpus, 1, proposals=[TopicBirth(min_tokens=20)], n_batches=2)
    learner, values = follow.learner, []
    end = learner._end_adoptions

    def end_adoptions():
        if learner._before is not None:
            totals = learner.totals.take(np.flatnonzero(learner.totals.n > 1e-8))
            values.append((learner.lower_bound, TopicShadow.settled(learner.model, totals)))
        return end()

    learner._end_adoptions = end_adoptions
    for _ in range(4):
        learner.run_lap(follow.source)
    assert len(values) > 0
    for judged, settled in values:
        assert abs(judged - settled) < SEARCH


def test_gain_of_a_replacement_is_no_more_than_it_brings(kind, prior):
    """Candidates may be judged at sticks that are not the best, never at better than the best.

    And near enough to the best for a verdict on three nats.
    """
    rng = np.random.default_rng(10)
    corpus = kind.corpus(rng, 16)
    resp = soft_resp(rng, len(corpus.rows), 5)
    follow = given(kind, prior, corpus, resp)
    model, totals = follow.learner.model, follow.learner.totals
    for removed in ((0,), (1, 3), (0, 2, 4)):
        old = np.isin(np.arange(5), removed)
        for J in (1, 2, 3):
            shares = rng.dirichlet(np.full(J, 0.3), size=len(resp))
            columns = resp[:, old].sum(axis=1, keepdims=True) * shares
            created = np.arange(10, 10 + J)
            new = bag_of(follow, corpus.batch, columns, created)
            new = new._replace(docs=DocumentCounts({0: new.docs.parts["all"]}))
            after = totals.replaced(removed, new)
            fixed = model.elbo(after) - model.allocation_term(after)
            fixed -= model.elbo(totals) - model.allocation_term(totals)
            [gain] = model.replacement_gains(totals, [(removed, new)], np.array([fixed]))
            here, there = TopicShadow.settled(model, totals), TopicShadow.settled(model, after)
            assert gain <= there - here + SEARCH
            # with so little else in it that all depends on the sticks
            for nats in (3.0, -3.0):
                bias = np.array([fixed + nats - (there - here)])
                [gain] = model.replacement_gains(totals, [(removed, new)], bias)
                assert (gain > 0) == (nats > 0)


def test_successor_without_mass_changes_nothing():
    """Of the topics that a target is split into, one may have lost all of its mass."""
    rng = np.random.default_rng(25)
    model = model_of(KINDS[0], HDP, KINDS[0].corpus(rng, 6))
    counts, a = rng.gamma(1.0, size=(6, 3)), np.array([0.3, 0.2, 0.1])
    expected = model.nested_terms(counts, a)
    with_empty = model.nested_terms(np.column_stack([counts, np.zeros(6)]), np.append(a, 0.0))
    assert_allclose(with_empty, expected, rtol=1e-12)


# ---------------------------------------------------------------------- what changes nothing


def laps(follow, n=3):
    for _ in range(n):
        follow.learner.run_lap(follow.source, propose=False)
    return follow.learner


def start_resp(corpus, K=4, seed=11):
    """Soft responsibilities near the truth: far from it, rounding would decide between optima."""
    resp = random_resp(np.random.default_rng(seed), len(corpus.rows), K)
    resp += 2.0 * np.eye(K)[corpus.labels]
    return resp / resp.sum(axis=1, keepdims=True)


def assert_same_fit(learner, other):
    """The same topics in any order, to what iterations that stop early let through."""
    assert_allclose(learner.lower_bound, other.lower_bound, rtol=1e-7)
    assert_allclose(learner.totals.n, other.totals.n, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("n_batches", [2, 5])
def test_batches_do_not_matter_while_parameters_stay(kind, prior, n_batches):
    """Any split leaves behind the same totals (Alg. 5.3 over slices); so does any order of visits."""
    corpus = kind.corpus(np.random.default_rng(12), 20)
    follows = [
        topic_learner(kind, prior, corpus, 4, n_batches=n, resp=start_resp(corpus))
        for n in (1, n_batches, n_batches)
    ]
    learners = [f.learner for f in follows]
    for follow, backwards in zip(follows, (False, False, True), strict=True):
        for lap in range(2):
            follow.learner.begin_lap(follow.source.total_weight if lap == 0 else None)
            batches = list(follow.source.batches())
            for batch in batches[::-1] if backwards else batches:
                follow.learner.visit(batch, update=False)
            follow.learner.end_lap(propose=False, first=lap == 0, resum=True)
    for learner in learners[1:]:
        assert_same_fit(learner, learners[0])
        one = np.concatenate([p.dense(range(4)) for p in learners[0].totals.docs.parts.values()])
        parts = learner.totals.docs.parts
        several = np.concatenate([parts[i].dense(range(4)) for i in range(n_batches)])
        assert_allclose(several, one, atol=1e-4)


def test_one_batch_is_the_full_algorithm(kind, prior):
    """Alg. 5.3: local step of all documents, then the global step, over and over."""
    corpus = kind.corpus(np.random.default_rng(13), 16)
    resp = start_resp(corpus)
    schedule = LocalSchedule(warm=False, n_restarts=0)
    follow = topic_learner(kind, prior, corpus, 4, resp=resp, schedule=schedule)
    learner = laps(follow, 3)
    # by hand, from the same start
    model = model_of(kind, prior, corpus)
    first = bag_of(follow, corpus.batch, resp, np.arange(4))
    totals = StatBag(first.uids, first.s, np.zeros(4))
    docs, z, found = documents_of(follow, corpus), follow.prepared(), resp
    for lap in range(3):
        twin = kind.twin(model.likelihood, model.prior)
        prior_of_docs = model.doc_prior(totals)
        posteriors = [twin.posterior(z, corpus.weight * r) for r in found.T[totals.uids]]
        log_lik = np.array([twin.expected_log_lik(q, z) for q in posteriors]).T
        found = np.empty((len(z), 4))
        for d in range(len(docs)):
            e = slice(docs.indptr[d], docs.indptr[d + 1])
            if e.start < e.stop:
                found[e] = topics.document_step(log_lik[e], corpus.weight[e], prior_of_docs)
        inverse = np.argsort(totals.uids)
        found = found[:, inverse]  # columns by uid
        bag = bag_of(follow, corpus.batch, found, np.arange(4)).aligned(totals.uids)
        model = model.updated(bag).with_adapted_prior(bag, 20 if lap == 0 else 4)
        totals, model = model.in_order(bag)
    assert learner.totals.uids.tolist() == totals.uids.tolist()
    # the engine's topics leave documents below a hundredth of a token
    assert_allclose(learner.totals.n, totals.n, rtol=1e-3, atol=0.05)
    assert_allclose(learner.lower_bound, model.elbo(totals), rtol=1e-4)


def test_order_of_documents(kind, prior):
    corpus = kind.corpus(np.random.default_rng(14), 16)
    order = np.random.default_rng(15).permutation(16)
    resp, permuted = start_resp(corpus), corpus.part(order)
    entries = np.concatenate([np.flatnonzero(corpus.doc == d) for d in order])
    learner = laps(topic_learner(kind, prior, corpus, 4, resp=resp))
    other = laps(topic_learner(kind, prior, permuted, 4, resp=resp[entries]))
    assert_same_fit(other, learner)
    assert other.totals.uids.tolist() == learner.totals.uids.tolist()
    counts = learner.totals.docs.parts[0].dense(range(4))
    assert_allclose(other.totals.docs.parts[0].dense(range(4)), counts[order], atol=1e-3)


def test_order_and_names_of_topics(kind, prior):
    corpus = kind.corpus(np.random.default_rng(16), 16)
    resp, order = start_resp(corpus), [2, 0, 3, 1]
    learner = laps(topic_learner(kind, prior, corpus, 4, resp=resp, n_batches=2))
    other = topic_learner(kind, prior, corpus, 4, resp=resp[:, order], n_batches=2)
    other.learner.new_uids(7)
    other.learner.totals = other.learner.totals._replace(uids=np.array([17, 5, 11, 2]))
    other = laps(other)
    # the first lap's sticks are for topics in the order given
    if prior.name.startswith("dirichlet"):
        assert_same_fit(other, learner)
        names = {u: [17, 5, 11, 2][order.index(u)] for u in range(4)}
        assert other.totals.uids.tolist() == [names[u] for u in learner.totals.uids.tolist()]
    else:
        assert_allclose(other.lower_bound, learner.lower_bound, rtol=0.02)


@pytest.mark.parametrize("n_batches", [1, 3])
def test_empty_documents_change_nothing(kind, prior, n_batches):
    """Neither what is found, nor the objective: they have no part in its surrogate bound."""
    corpus = kind.corpus(np.random.default_rng(17), 18)
    full = np.unique(corpus.doc)
    assert len(full) < corpus.n_docs
    without = corpus.part(full)
    # batches with the same documents, and more
    edges = np.array([0, *full[[5, 11]], corpus.n_docs]) if n_batches == 3 else [0, corpus.n_docs]
    fits = []
    for c, e in ((corpus, edges), (without, np.searchsorted(full, edges))):
        follow = topic_learner(kind, prior, c, 4, resp=start_resp(c), n_batches=n_batches)
        follow.source.edges = np.asarray(e)
        fits.append(laps(follow))
    assert_allclose(fits[0].lower_bound, fits[1].lower_bound, rtol=1e-12)
    assert_allclose(fits[0].totals.s, fits[1].totals.s, rtol=1e-12, atol=1e-12)


def test_batch_of_empty_documents(kind, prior):
    corpus = kind.corpus(np.random.default_rng(18), 10)
    empty = DocumentSource(corpus.batch._replace(indptr=np.zeros(4, dtype=np.int64)), 1).batch(0)
    follow = topic_learner(
        kind, prior, corpus, 3, proposals=[Merge(max_members=2), TopicDelete(), TopicBirth()]
    )
    shadow, learner = TopicShadow(follow), follow.learner
    shadow.batches["empty"] = empty._replace(batch_id="empty")
    for lap in range(3):
        learner.begin_lap(follow.source.total_weight if lap == 0 else None)
        for batch in [*follow.source.batches(), shadow.batches["empty"]]:
            learner.visit(batch, update=lap > 0)
        learner.end_lap(first=lap == 0, resum=True)
        assert_same_bag(learner.totals, shadow.totals())


@pytest.mark.parametrize("times", [2, 5])
def test_scale_is_repetition(kind, prior, times):
    """A part that stands for c documents each is those documents c times, in every global step."""
    rng = np.random.default_rng(19)
    corpus = kind.corpus(rng, 10)
    resp = soft_resp(rng, len(corpus.rows), 4)
    follow = given(kind, prior, corpus, resp)
    model = follow.learner.model
    one = follow.learner.totals
    scaled = one._replace(
        s=times * one.s, entropy=times * one.entropy,
        docs=DocumentCounts({0: one.docs.parts[0]._replace(scale=float(times))}),
    )  # fmt: skip
    part = one.docs.parts[0]
    repeated = scaled._replace(docs=DocumentCounts(dict.fromkeys(range(times), part)))
    assert_allclose(model.elbo(scaled), model.elbo(repeated), rtol=1e-11)
    better = [model.updated(totals) for totals in (scaled, repeated)]
    values = [m.elbo(totals) for m, totals in zip(better, (scaled, repeated), strict=True)]
    assert_allclose(values[0], values[1], rtol=1e-8)
    uids = one.uids.tolist()
    gains = []
    for totals in (scaled, repeated):
        row = totals.take([0, 2])
        union = StatBag(
            np.array([9]), row.s.sum(axis=0, keepdims=True), row.entropy[:1],
            totals.docs.union([uids[0], uids[2]], 9),
        )  # fmt: skip
        replacement = ((uids[0], uids[2]), union)
        gains.append(model.replacement_gains(totals, [replacement], np.zeros(1))[0])
    assert_allclose(gains[0], gains[1], rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("times", [2, 5])
def test_scale_is_repetition_for_unions(kind, prior, times):
    rng = np.random.default_rng(20)
    corpus = kind.corpus(rng, 10)
    follow = given(kind, prior, corpus, soft_resp(rng, len(corpus.rows), 4))
    one, model = follow.learner.totals, follow.learner.model
    part = one.docs.parts[0]
    scaled = one._replace(docs=DocumentCounts({0: part._replace(scale=float(times))}))
    repeated = one._replace(docs=DocumentCounts(dict.fromkeys(range(times), part)))
    pairs = [(0, 1), (1, 3), (2, 3)]
    assert_allclose(model.union_gains(scaled, pairs), model.union_gains(repeated, pairs), rtol=1e-9)


def test_whole_weights_of_entries_are_repetition(kind, prior):
    """An entry that occurs c times is c entries with the same responsibilities."""
    rng = np.random.default_rng(21)
    corpus = kind.corpus(rng, 10)
    times = rng.integers(1, 4, size=len(corpus.rows))
    resp = soft_resp(rng, len(times), 3)
    weighted = corpus._replace(batch=corpus.batch._replace(counts=times.astype(float)))
    each = np.repeat(np.arange(len(times)), times)
    sizes = np.bincount(corpus.doc, times, minlength=corpus.n_docs).astype(int)
    batch = DocumentBatch(
        "all", np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), None,
        *(None if f is None else f[each] for f in (corpus.batch.indices, corpus.batch.x)),
    )  # fmt: skip
    model = model_of(kind, prior, corpus)
    follow = given(kind, prior, weighted._replace(weight=times.astype(float)), resp)
    bags = [
        bag_of(follow, weighted.batch, resp, np.arange(3)), bag_of(follow, batch, resp[each], np.arange(3)),
    ]  # fmt: skip
    bags += [
        model.local_pass(b, None, np.arange(3), lap=0)
        for b in (weighted.batch._replace(resp=resp), batch._replace(resp=resp[each]))
    ]
    for bag in bags[1:]:
        assert_same_bag(bag, bags[0], rtol=1e-11)
    # and of the local step itself
    theta = model.likelihood.document_parameters(model.prior, bags[0].s)
    steps = []
    for b in (weighted.batch, batch):
        docs = b.documents(0, corpus.n_docs, model.likelihood.prepare)
        steps.append(
            model.likelihood.document_step(
                theta, docs, np.array([0.5, 0.3, 0.1]), Settings(n_restarts=5), want_resp=True
            )
        )
    assert_allclose(steps[0].counts, steps[1].counts, atol=1e-8)
    assert_allclose(steps[0].s, steps[1].s, atol=1e-8 * np.abs(steps[0].s).sum())
    assert_allclose(steps[0].resp[each], steps[1].resp, atol=1e-9)


def test_documents_in_blocks(kind, monkeypatch):
    """Batches go through the kernel in blocks of whole documents; their size changes nothing."""
    corpus = kind.corpus(np.random.default_rng(22), 14)
    model = model_of(kind, HDP, corpus)
    follow = topic_learner(kind, HDP, corpus, 3, resp=start_resp(corpus, 3))
    first = bag_of(follow, corpus.batch, start_resp(corpus, 3), np.arange(3))
    model = model.updated(first)
    params = model.coefficients(first)
    expected = model.local_pass(corpus.batch, params, first.uids, old=first)
    for size in (1, 7, 60):
        monkeypatch.setattr("sklearn_bnp.core.documents._BLOCK_ENTRIES", size)
        found = model.local_pass(corpus.batch, params, first.uids, old=first)
        assert_same_bag(found, expected, rtol=1e-12)
        assert_array_equal(found.docs.parts["all"].lengths, expected.docs.parts["all"].lengths)


def test_lengths_are_exact():
    docs = Documents(np.array([0, 2, 2, 5]), np.array([1.0, 2.0, 3.0, 1e6, 4.0]))
    assert docs.lengths.tolist() == [3.0, 0.0, 1000007.0]
