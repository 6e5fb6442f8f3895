"""A sequence of weight w is w equal sequences, in everything but time."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp.core.run_collector import RunCollector
from sklearn_bnp.core.sequence_model import chain_counts
from sklearn_bnp.core.sequences import PreparedRows

from . import chain_harness as h

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
        assert a.docs.entropy == pytest.approx(b.docs.entropy, rel=1e-6, abs=1e-6)


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


def collected(batch, likelihood, owners, rate, rng):
    """`StateSample` of the only state, of rows that all are its own, kept at a rate."""
    resp = np.ones((len(batch.x), 1))
    totals = h.learner_of([batch.x], h.ALLOCATIONS["sticky"])[0]
    totals.start(np.zeros((1, likelihood.n_statistics)))
    bag = totals.totals
    bag.s[0, -1] = batch.total_weight
    collector = RunCollector({(0,): rate * batch.total_weight}, bag, rng)
    rows = PreparedRows(batch, likelihood.prepare, keep=True)
    collector._owners.append((0, np.zeros(len(resp), dtype=np.int32), []))
    collector._uids = owners
    collector.revisit(rows)
    collector.close("all", bag)
    return collector.samples()[0]


def test_runs_are_drawn_as_often_as_copies_would_be():
    """Each as often as its weight says if all are wanted; else so often on average."""
    rng = np.random.default_rng(5)
    rows, _ = h.toy(rng, lengths=LENGTHS)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"])
    likelihood, times = learner.model.likelihood, np.array([2, 1, 3, 1, 2, 1])
    sample = collected(weighted(batch, times), likelihood, [0], 1.0, np.random.RandomState(0))
    assert np.diff(sample.indptr).tolist() == np.repeat(LENGTHS, times).tolist()
    assert sample.total == weighted(batch, times).total_weight
    state, total, n_draws = np.random.RandomState(1), 0, 400
    weight = np.array([0.3, 1.4, 2.0, 0.8, 1.0, 5.0])
    for _ in range(n_draws):
        total += collected(weighted(batch, weight), likelihood, [0], 0.5, state).total
    # rows of a run that is kept by chance: its variance is a quarter of their square at the most
    spread = np.sqrt(n_draws * np.sum(np.square(LENGTHS)) / 4)
    assert abs(total - 0.5 * n_draws * (weight @ LENGTHS)) < 4 * spread


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
        s, counts = s + w * alone.s, counts + w * alone.docs.counts
        entropy += w * alone.docs.entropy
    assert_allclose(bag.s, s, rtol=1e-11, atol=1e-11)
    assert_allclose(bag.docs.counts, counts, rtol=1e-11, atol=1e-11)
    assert bag.docs.entropy == pytest.approx(entropy, rel=1e-10)
