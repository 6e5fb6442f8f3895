"""A document of weight w is w equal documents, in everything but time."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln

from sklearn_bnp.engine.merge import Merge
from sklearn_bnp.topics import creation
from sklearn_bnp.topics.counts import BatchCounts, DocumentCounts
from sklearn_bnp.topics.delete import TopicDelete
from sklearn_bnp.topics.documents import Documents
from sklearn_bnp.topics.local import document_summary
from sklearn_bnp.topics.sampling import DocumentSample

from .harness import random_resp
from .test_topics_memo import PROPOSALS, SCENARIOS, assert_follows
from .topic_harness import objective_by_hand, soft_resp, topic_learner
from .topic_kinds import KINDS, PRIORS
from .topic_shadow import TopicShadow


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request):
    return request.param


@pytest.fixture(params=[PRIORS[0], PRIORS[2]], ids=lambda prior: prior.name)
def prior(request):
    return request.param


def weighted(corpus, weight):
    return corpus._replace(batch=corpus.batch._replace(weight=np.asarray(weight, dtype=float)))


def copies(corpus, times):
    """Documents so many times each, one after another; and the entries that theirs are copies of."""
    docs, indptr = np.repeat(np.arange(corpus.n_docs), times), corpus.batch.indptr
    entries = [np.arange(indptr[d], indptr[d + 1]) for d in docs]
    return corpus.part(docs), np.concatenate(entries).astype(int)


def pair(kind, prior, n_batches, n_topics, proposals=(), seed=3):
    """Two `Followed` with one model and start: of weighted documents, and of as many copies."""
    rng = np.random.default_rng(seed)
    corpus = kind.corpus(rng, 12)
    times = rng.integers(1, 4, size=corpus.n_docs)
    repeated, entries = copies(corpus, times)
    resp = soft_resp(rng, len(corpus.rows), n_topics)
    made = []
    for c, r in ((weighted(corpus, times), resp), (repeated, resp[entries])):
        c = c._replace(batch=c.batch._replace(resp=r))
        chosen = [type(p)(**p.get_params()) for p in proposals]
        made.append(topic_learner(kind, prior, c, n_topics, proposals=chosen, n_batches=n_batches))
    first, second = made
    second.source.edges = np.concatenate([[0], np.cumsum(times)])[first.source.edges]
    for follow in made:  # units are those of the copies
        follow.learner.model = second.learner.model
        follow.learner.start(np.zeros((n_topics, second.learner.totals.s.shape[1])))
    return made


SEARCHES = {
    "none": (),
    "merge": (Merge(max_members=2),),
    "delete": (TopicDelete(),),
    "both": (Merge(max_members=2), TopicDelete()),
}


@pytest.mark.quarter
@pytest.mark.parametrize("n_batches", [1, 3])
@pytest.mark.parametrize("search", SEARCHES)
def test_whole_weights_are_repetition(kind, prior, n_batches, search):
    """Objective, statistics and decisions of each lap: nothing in these searches is left to chance.

    Documents stop when their counts move by 0.05 and the sticks' search when it gains little; rounding
    may let them stop a step apart.
    """
    made = pair(kind, prior, n_batches, 6, SEARCHES[search])
    sources = [follow.source for follow in made]
    for lap in range(5):
        one, other = (f.learner.run_lap(s) for f, s in zip(made, sources, strict=True))
        sources = [source.without_responsibilities() for source in sources]
        assert one.accepted == other.accepted and one.n_components == other.n_components
        assert one.lower_bound == pytest.approx(other.lower_bound, rel=1e-11 if lap == 0 else 1e-6)
        a, b = (follow.learner.totals for follow in made)
        mass = b.n.sum()
        assert a.n.sum() == pytest.approx(mass, rel=1e-12)
        assert_allclose(a.n, b.n, atol=1e-10 * mass if lap == 0 else 1e-3 * mass)
        assert_allclose(a.entropy, b.entropy, atol=1e-10 * mass if lap == 0 else 1e-3 * mass)
        if lap == 0:
            assert_allclose(a.s, b.s, atol=1e-10 * np.abs(b.s).sum())


def test_searches_found_something():
    """So that the law above is not about fits that stay as they are."""
    accepted = set()
    for kind, search in itertools.product(KINDS, ("merge", "delete")):
        one, _ = pair(kind, PRIORS[0], 1, 6, SEARCHES[search])
        source = one.source
        for _ in range(5):
            accepted |= one.learner.run_lap(source).accepted.keys()
            source = source.without_responsibilities()
    assert accepted == {"merge", "delete"}


@pytest.mark.quarter
@pytest.mark.parametrize("proposals, n_components, n_laps", SCENARIOS)
def test_totals_are_those_of_all_responsibilities(kind, prior, proposals, n_components, n_laps):
    """With all proposals: totals, memory, and the objective of the copies summed by hand."""
    rng = np.random.default_rng(1)
    corpus = kind.corpus(rng, 24)
    times = rng.integers(1, 4, size=corpus.n_docs)
    follow = topic_learner(
        kind, prior, weighted(corpus, times), n_components,
        proposals=PROPOSALS[proposals](), n_batches=3, seed=1,
    )  # fmt: skip
    shadow = TopicShadow(follow)
    repeated, entries = copies(corpus, times)
    for _ in range(n_laps):
        follow.learner.run_lap(follow.source)
        assert_follows(follow.learner, shadow, names=range(3))
        resp, uids = shadow.all_resp()[entries], follow.learner.totals.uids
        expected = objective_by_hand(follow._replace(corpus=repeated), resp, uids)
        assert_allclose(follow.learner.lower_bound, expected, rtol=1e-9)


@pytest.mark.parametrize("n_components, proposals", [(1, "birth"), (6, "all")])
def test_objective_never_falls(kind, prior, n_components, proposals):
    """With weights that are no whole numbers, some of them small."""
    rng = np.random.default_rng(2)
    corpus = kind.corpus(rng, 24, spread=1.3)
    weight = np.exp(rng.normal(size=corpus.n_docs))
    follow = topic_learner(
        kind, prior, weighted(corpus, weight), n_components,
        proposals=PROPOSALS[proposals](), n_batches=3, seed=2,
    )  # fmt: skip
    values = [follow.learner.run_lap(follow.source).lower_bound for _ in range(6)]
    assert np.all(np.diff(values) >= -1e-9 * abs(values[-1]))
    assert follow.learner.totals.n.sum() == pytest.approx(follow.source.total_weight)


def test_nested_models(kind, prior, monkeypatch):
    """Statistics, unions and objectives of a birth's own model, of a sample and of its copies."""
    monkeypatch.setattr(creation, "_PRUNING_PASSES", 100)  # it is work that this bounds
    rng = np.random.default_rng(4)
    corpus = kind.corpus(rng, 20)
    follow = topic_learner(kind, prior, corpus, 1)
    follow.learner.run_lap(follow.source, propose=False)
    model, times = follow.learner.model, rng.integers(1, 4, size=corpus.n_docs)
    repeated, entries = copies(corpus, times)
    mass = rng.uniform(0.3, 1.0, size=len(corpus.rows))
    prepare = model.likelihood.prepare
    samples = [
        DocumentSample(c.batch.documents(0, c.n_docs, prepare), m)
        for c, m in ((weighted(corpus, times), mass), (repeated, mass[entries]))
    ]
    assert samples[0].total == pytest.approx(samples[1].total)
    resp = random_resp(rng, len(mass), 5)
    found = []
    for sample, r in zip(samples, (resp, resp[entries]), strict=True):
        nested = creation.Nested(model, sample, 0.7, 1)
        s = document_summary(model.likelihood, sample.docs, sample.mass[:, np.newaxis] * r).s
        step = nested.step(sample, s, 2)  # topics that died may come and go: it changes nothing
        pruned = nested.pruned(sample, step, s)
        values = [
            nested._objective(x.s, x.entropy, x.counts, slice(None), sample) for x in (step, pruned)
        ]
        alive = np.count_nonzero(pruned.s[:, -1] > 1e-9)
        found.append((step.s, step.entropy, values, nested.groups(sample, step), alive))
    one, other = found
    assert_allclose(one[0], other[0], atol=1e-9 * np.abs(other[0]).sum())
    assert_allclose(one[1], other[1], atol=1e-9 * samples[0].total)
    assert_allclose(one[2], other[2], rtol=1e-9)
    assert one[3:] == other[3:]


def test_weights_and_scales_multiply():
    """What stochastic steps make of documents stands for so many times as many."""
    part = BatchCounts.of(
        np.array([[2.0, 0.0], [1.0, 3.0]]), np.array([2.0, 4.0]), [7, 8], np.array([0.5, 3.0])
    )
    scaled = DocumentCounts.of({0: part}).averaged(None, 0.0, 1.0, 4.0)
    for uid, expected in ((7, 2.0 * gammaln(2.3) + 12.0 * gammaln(1.3)), (8, 12.0 * gammaln(3.3))):
        histogram = scaled.topics[uid]
        assert histogram.weights @ gammaln(histogram.nodes + 0.3) == pytest.approx(expected)
    assert [scaled.topics[uid].total for uid in (7, 8)] == pytest.approx([14.0, 12.0])
    assert scaled.lengths.total == pytest.approx(14.0)
    assert scaled.mean_length == pytest.approx((0.5 * 2 + 3 * 4) / 3.5)


def test_documents_that_are_chosen_keep_their_weights():
    docs = Documents(
        np.array([0, 2, 2, 3, 6]), np.arange(1.0, 7.0), np.arange(6, dtype=np.int32),
        weight=np.array([1.0, 2.0, 0.5, 4.0]),
    )  # fmt: skip
    assert_allclose(docs.entry_weight, [1.0, 2.0, 1.5, 16.0, 20.0, 24.0])
    assert docs.total == 7.5
    some, entries = docs.chosen(np.array([False, False, True, True]))
    assert entries.tolist() == [2, 3, 4, 5] and some.weight.tolist() == [0.5, 4.0]
    assert some.indptr.tolist() == [0, 1, 4] and some.indices.tolist() == [2, 3, 4, 5]
