"""A sequence of weight w is w equal sequences, in everything but time."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp.hmm.batch import PreparedRows
from sklearn_bnp.hmm.creation import windows
from sklearn_bnp.hmm.model import chain_counts
from sklearn_bnp.hmm.nested_chain import NestedModel
from sklearn_bnp.hmm.nested_links import NestedSettings
from sklearn_bnp.hmm.sampling import RunSampling, StateSample

from . import chain_harness as h
from .harness import finding_of

LENGTHS = (40, 25, 1, 60, 33, 18)


def weighted(batch, weight):
    return batch._replace(weight=np.asarray(weight, dtype=float))


def pair(allocation, n_batches, proposals=(), *, n_states=6, seed=0, low_memory=False):
    """Learners of weighted sequences and of as many copies, with one model and start; their sources."""
    rng = np.random.default_rng(seed)
    rows, _ = h.toy(rng, lengths=LENGTHS, spread=3.0)
    times = rng.integers(1, 4, size=len(rows))
    copies = [rows[d] for d in np.repeat(np.arange(len(rows)), times)]
    resp = rng.dirichlet(np.full(n_states, 0.4), sum(LENGTHS))
    each = np.split(resp, np.cumsum(LENGTHS)[:-1])
    repeated = np.concatenate([each[d] for d in np.repeat(np.arange(len(rows)), times)])
    made = []
    for data, r in ((rows, resp), (copies, repeated)):
        learner, batch = h.learner_of(data, allocation, proposals=proposals)
        made.append((learner, batch._replace(resp=r)))
    (one, batch), (other, batch_of_copies) = made
    sources = [h.source(weighted(batch, times), n_batches), h.source(batch_of_copies, n_batches)]
    sources[1].edges = np.concatenate([[0], np.cumsum(times)])[sources[0].edges]
    for learner in (one, other):  # units are those of the copies
        learner.model = other.model._replace(low_memory=low_memory)
        learner.start(np.zeros((n_states, other.model.likelihood.n_statistics)))
    return (one, other), sources


@pytest.mark.quarter
@pytest.mark.parametrize("name", h.ALLOCATIONS)
@pytest.mark.parametrize("n_batches", [1, 3])
@pytest.mark.parametrize("proposals", [(), ("merge",), ("delete",), ("merge", "delete")])
def test_whole_weights_are_repetition(name, n_batches, proposals):
    """Objective, statistics and decisions of each lap: nothing in these searches is left to chance.

    The sticks' search stops when it gains little; rounding may let it stop a step apart.
    """
    learners, sources = pair(h.ALLOCATIONS[name], n_batches, proposals)
    for lap in range(6):
        one, other = (q.run_lap(s) for q, s in zip(learners, sources, strict=True))
        sources = [source.without_responsibilities() for source in sources]
        assert one.accepted == other.accepted and one.n_components == other.n_components
        assert one.lower_bound == pytest.approx(other.lower_bound, rel=1e-11 if lap == 0 else 1e-7)
        a, b = (learner.totals for learner in learners)
        atol = (1e-11 if lap == 0 else 1e-5) * np.abs(b.s).sum()
        assert_allclose(a.s, b.s, atol=atol)
        assert_allclose(chain_counts(a), chain_counts(b), atol=atol)
        assert a.extra.entropy == pytest.approx(b.extra.entropy, rel=1e-6, abs=1e-6)


def test_searches_found_something():
    learners, sources = pair(h.ALLOCATIONS["sticky"], 1, ("merge", "delete"))
    accepted = set()
    for _ in range(6):
        accepted |= learners[0].run_lap(sources[0]).accepted.keys()
        sources = [source.without_responsibilities() for source in sources]
    assert accepted


def test_low_memory_leaves_the_same():
    made = [pair(h.ALLOCATIONS["sticky"], 2, low_memory=low) for low in (False, True)]
    for learners, sources in made:
        learners[0].run_lap(sources[0])
        learners[0].run_lap(sources[0].without_responsibilities())
    one, other = (learners[0] for learners, _ in made)
    assert one.lower_bound == pytest.approx(other.lower_bound, rel=1e-12)


def collected(batches, likelihood, budget, seed):
    """`StateSample` of the only state, of rows that all are its own."""
    totals = h.learner_of([b.x for b in batches], h.ALLOCATIONS["sticky"])[0]
    totals.start(np.zeros((1, likelihood.n_statistics)))
    bag = totals.totals
    bag.s[0, -1] = sum(batch.total_weight for batch in batches)
    sampling = RunSampling({(0,): budget}, bag, batches[0].mean_weight)
    for i, batch in enumerate(batches):
        rows = PreparedRows(batch, likelihood.prepare, keep=True)
        block = SimpleNamespace(
            resp=np.ones((len(batch.x), 1)), uids=bag.uids, part=SimpleNamespace(begin=0)
        )
        finding = finding_of(sampling.probe, [block], bag.uids, seed=(seed, i), rows=rows)
        sampling.take(i, finding)
    return sampling.samples()[0]


def test_runs_keep_their_weights():
    """All runs, if there is room for their rows; else about as many rows, and fair shares of weight."""
    rng = np.random.default_rng(5)
    rows, _ = h.toy(rng, lengths=LENGTHS)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"])
    likelihood, n = learner.model.likelihood, sum(LENGTHS)
    weight = np.array([0.3, 1.4, 2.0, 0.8, 1e5, 5.0])
    sample = collected([weighted(batch, weight)], likelihood, n, 0)
    assert np.diff(sample.indptr).tolist() == list(LENGTHS)
    assert_allclose(sample.weight, weight)
    assert sample.total == pytest.approx(weight @ LENGTHS)
    batches = [weighted(batch, scale * weight[:6]) for scale in (1.0, 2.0, 0.5, 1.0, 3.0)]
    for seed in range(20):
        sample = collected(batches, likelihood, n, seed)
        assert 0.5 * n <= sample.n_rows <= 2 * n
        assert np.all(sample.weight > 0)
        scaled = [b._replace(weight=2.0**20 * b.weight) for b in batches]
        other = collected(scaled, likelihood, n, seed)
        assert_array_equal(other.indptr, sample.indptr)
        assert_allclose(other.weight, 2.0**20 * sample.weight)


@pytest.mark.parametrize("L", [1, 10])
def test_nested_chains_of_weighted_runs_are_those_of_copies(L):
    """Seeds of windows, passes, cuts and bounds."""
    rng = np.random.default_rng(8)
    rows, _ = h.toy(rng, lengths=LENGTHS, spread=2.0)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"])
    likelihood = learner.model.likelihood
    z, indptr = batch.prepared(likelihood.prepare)
    times = np.array([3, 1, 2, 1, 2, 4])
    runs = np.repeat(np.arange(len(LENGTHS)), times)
    copies = np.concatenate([np.arange(indptr[d], indptr[d + 1]) for d in runs])
    edges = np.concatenate([[0], np.cumsum(np.diff(indptr)[runs])])
    samples = [StateSample(z, indptr, times.astype(float)), StateSample(z[copies], edges)]
    assert samples[0].total == samples[1].total
    made, settings = [], NestedSettings(1.0, 5.0)
    models = [NestedModel(likelihood, likelihood.prior, sample, settings) for sample in samples]
    s, labels = windows(likelihood, likelihood.prior, samples[0], L).seeded(
        4, np.random.RandomState(0)
    )
    first = models[0].labelled(s, labels)
    other, _ = windows(likelihood, likelihood.prior, samples[1], L).seeded(
        4, np.random.RandomState(0)
    )
    assert_allclose(s.sum(axis=0), other.sum(axis=0))
    for model in models:
        chain = model.pass_over(first)
        cut = model.cut(chain)
        found = [(c.s, *c.links, c.entropy, model.bound(c)) for c in (chain, cut)]
        made.append((*found[0], *found[1]))
    for a, b in zip(*made, strict=True):
        assert_allclose(a, b, rtol=1e-8, atol=1e-8)


def test_sequences_apart_add_up():
    """What weighted sequences leave is the weighted sum of what each leaves alone."""
    rows, _ = h.toy(np.random.default_rng(6), lengths=LENGTHS)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"])
    h.start(learner, batch, 3)
    weight = np.array([0.2, 3.0, 1.0, 0.0, 2.5, 1e-3])
    params, uids = learner.coef, learner.totals.uids
    bag = learner.model.local_pass(weighted(batch, weight), params, uids)
    s, counts, entropy = 0.0, 0.0, 0.0
    for w, (i, j) in zip(weight, itertools.pairwise(range(len(LENGTHS) + 1)), strict=True):
        alone = learner.model.local_pass(batch.part(None, i, j), params, uids)
        s, counts = s + w * alone.s, counts + w * alone.extra.counts
        entropy += w * alone.extra.entropy
    assert_allclose(bag.s, s, rtol=1e-11, atol=1e-11)
    assert_allclose(bag.extra.counts, counts, rtol=1e-11, atol=1e-11)
    assert bag.extra.entropy == pytest.approx(entropy, rel=1e-10)
