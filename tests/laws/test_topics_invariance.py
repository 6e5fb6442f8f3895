"""Topic models: what changes nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp.engine.merge import Merge
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.inputs.groups import GroupSource
from sklearn_bnp.topics.batch import DocumentBatch
from sklearn_bnp.topics.birth import TopicBirth
from sklearn_bnp.topics.counts import DocumentCounts
from sklearn_bnp.topics.delete import TopicDelete
from sklearn_bnp.topics.documents import Documents, DocumentSettings
from sklearn_bnp.topics.local import document_parameters, document_step
from sklearn_bnp.topics.model import LocalSchedule
from tests.reference import documents

from .harness import random_resp
from .topic_harness import (
    assert_same_bag,
    bag_of,
    documents_of,
    given,
    model_of,
    soft_resp,
    topic_learner,
)
from .topic_kinds import PRIORS
from .topic_shadow import TopicShadow

HDP, DIRICHLET = PRIORS[0], PRIORS[2]


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
            follow.learner.add_up_anew()
            follow.learner.end_lap(propose=False, first=lap == 0)
    for learner in learners[1:]:
        assert_same_fit(learner, learners[0])
        one = np.concatenate([p.dense(range(4)) for p in learners[0].totals.extra.parts.values()])
        parts = learner.totals.extra.parts
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
                twin = documents.Document(log_lik[e], corpus.weight[e], prior_of_docs, tol=0.05)
                found[e] = twin.solve().shares
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
    counts = learner.totals.extra.parts[0].dense(range(4))
    assert_allclose(other.totals.extra.parts[0].dense(range(4)), counts[order], atol=1e-3)


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
    empty = GroupSource(corpus.batch._replace(indptr=np.zeros(4, dtype=np.int64)), 1).batch(0)
    follow = topic_learner(
        kind, prior, corpus, 3, proposals=[Merge(max_members=2), TopicDelete(), TopicBirth()]
    )
    shadow, learner = TopicShadow(follow), follow.learner
    shadow.batches["empty"] = empty._replace(batch_id="empty")
    for lap in range(3):
        learner.begin_lap(follow.source.total_weight if lap == 0 else None)
        for batch in [*follow.source.batches(), shadow.batches["empty"]]:
            learner.visit(batch, update=lap > 0)
        learner.add_up_anew()
        learner.end_lap(first=lap == 0)
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
        extra=one.extra.averaged(None, 0.0, 1.0, float(times)),
    )  # fmt: skip
    part = one.extra.parts[0]
    repeated = scaled._replace(extra=DocumentCounts.of(dict.fromkeys(range(times), part)))
    assert_allclose(model.elbo(scaled), model.elbo(repeated), rtol=1e-11)
    better = [model.updated(totals) for totals in (scaled, repeated)]
    values = [m.elbo(totals) for m, totals in zip(better, (scaled, repeated), strict=True)]
    assert_allclose(values[0], values[1], rtol=1e-8)
    uids = one.uids.tolist()
    gains = []
    removed = [uids[0], uids[2]]
    of_one = one.extra.union(removed, 9)
    unions = of_one.averaged(None, 0.0, 1.0, float(times)), repeated.extra.union(removed, 9)
    for totals, union in zip((scaled, repeated), unions, strict=True):
        row = totals.take([0, 2])
        union = StatBag(
            np.array([9]), row.s.sum(axis=0, keepdims=True), row.entropy[:1],
            union,
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
    part = one.extra.parts[0]
    weight = np.full(len(part.lengths), float(times))
    scaled = one._replace(extra=DocumentCounts.of({0: part._replace(weight=weight)}))
    repeated = one._replace(extra=DocumentCounts.of(dict.fromkeys(range(times), part)))
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
    theta = document_parameters(model.likelihood, model.prior, bags[0].s)
    steps = []
    for b in (weighted.batch, batch):
        docs = b.documents(0, corpus.n_docs, model.likelihood.prepare)
        steps.append(
            document_step(
                model.likelihood,
                theta,
                docs,
                np.array([0.5, 0.3, 0.1]),
                DocumentSettings(n_restarts=5),
                want_resp=True,
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
    expected = model.local_pass(corpus.batch, params, first.uids, carry=model.carry(first, "all"))
    for size in (1, 7, 60):
        monkeypatch.setattr("sklearn_bnp.topics.batch._BLOCK_ENTRIES", size)
        found = model.local_pass(corpus.batch, params, first.uids, carry=model.carry(first, "all"))
        assert_same_bag(found, expected, rtol=1e-12)
        assert_array_equal(found.extra.parts["all"].lengths, expected.extra.parts["all"].lengths)


def test_lengths_are_exact():
    docs = Documents(np.array([0, 2, 2, 5]), np.array([1.0, 2.0, 3.0, 1e6, 4.0]))
    assert docs.lengths.tolist() == [3.0, 0.0, 1000007.0]
