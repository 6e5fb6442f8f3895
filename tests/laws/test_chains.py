"""Laws of models of sequences: the bound, its rise, what batches leave behind, and proposals."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from sklearn_bnp.engine.task import LocalTask, run
from sklearn_bnp.hmm import local
from sklearn_bnp.hmm.batch import parts
from sklearn_bnp.hmm.delete import StateDeleteTrial
from sklearn_bnp.hmm.local import emission_table
from sklearn_bnp.hmm.merge import CoarseningTrial
from sklearn_bnp.hmm.model import chain_counts
from sklearn_bnp.hmm.sampling import RunSampling
from sklearn_bnp.hmm.weights import DirichletChains
from sklearn_bnp.likelihood import (
    BernoulliObservation,
    CorrelatedGaussianObservation,
    GaussianObservation,
)
from sklearn_bnp.likelihood.autoregressive import AutoregressiveObservation

from . import chain_harness as h

OBSERVATIONS = {
    "full": GaussianObservation(),
    "diag": GaussianObservation("diag"),
    "autoregressive": AutoregressiveObservation(),
    "correlated": CorrelatedGaussianObservation(),
}


def log_evidence(likelihood, prior, allocation, s, indptr, n_states):
    """log p(x) under a finite prior, by a sum over all paths."""
    n, terms = len(s), []
    for path in itertools.product(range(n_states), repeat=n):
        z = np.array(path)
        counts = np.zeros((n_states + 1, n_states))
        for a, b in itertools.pairwise(indptr):
            counts[0, z[a]] += 1
            np.add.at(counts, (z[a : b - 1] + 1, z[a + 1 : b]), 1)
        value = likelihood.evidence(prior, np.eye(n_states)[z].T @ s).sum()
        for j, row in enumerate(counts):
            alpha = allocation.start_concentration if j == 0 else allocation.concentration
            a = np.full(n_states, alpha / n_states)
            if j:
                a[j - 1] += allocation.stickiness
            value += gammaln(a.sum()) - gammaln(a).sum()
            value += gammaln(a + row).sum() - gammaln((a + row).sum())
        terms.append(value)
    return logsumexp(terms)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("stickiness", [0.0, 3.0])
def test_bound_is_below_the_evidence_summed_over_all_paths(seed, stickiness):
    rows, _ = h.toy(np.random.default_rng(seed), n_states=2, lengths=(4, 1, 3), n_features=1)
    allocation = DirichletChains(1.5, 0.7, stickiness)
    observation = GaussianObservation(covariance_prior=[[1.0]])
    learner, batch = h.learner_of(rows, allocation, observation=observation)
    h.start(learner, batch, 2, seed)
    learner.fit(h.source(batch, 1), 30, 0.0)
    likelihood = learner.model.likelihood
    exact = log_evidence(
        likelihood, learner.model.prior, allocation, h.features(likelihood, batch), batch.indptr, 2
    )
    assert learner.lower_bound <= exact + 1e-9
    assert learner.lower_bound > exact - 12.0  # and not vacuous


@pytest.mark.parametrize("name", h.ALLOCATIONS)
@pytest.mark.parametrize("family", OBSERVATIONS)
def test_bound_never_falls(name, family):
    """After the first lap, at each visit of each of several batches."""
    lengths = (40, 25, 2, 60)
    rows, _ = h.toy(np.random.default_rng(1), lengths=lengths)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS[name], observation=OBSERVATIONS[family])
    h.start(learner, batch, 4)
    source = h.source(batch, 3)
    learner.run_lap(source)
    last = learner.lower_bound
    for _ in range(6):
        learner.begin_lap()
        for part in source.batches():
            learner.visit(part)
            assert learner.lower_bound >= last - 1e-8 * abs(last)
            last = learner.lower_bound
        learner.end_lap()
        assert learner.lower_bound >= last - 1e-8 * abs(last)
        last = learner.lower_bound


@pytest.mark.parametrize("name", h.ALLOCATIONS)
def test_objective_is_that_of_the_responsibilities_summed_by_hand(name):
    """Entropy and counts from pair marginals, which brute force finds from all messages."""
    rows, _ = h.toy(np.random.default_rng(2))
    learner, batch = h.learner_of(rows, h.ALLOCATIONS[name])
    h.start(learner, batch, 3)
    learner.run_lap(h.source(batch, 1))
    params, uids = learner.coef, learner.totals.uids
    learner.run_lap(h.source(batch, 1))
    likelihood = learner.model.likelihood
    z, indptr = batch.prepared(likelihood.prepare)
    table = emission_table(likelihood, params.coef, z)
    rows_a = np.exp(params.log_rows)
    counts, entropy = np.zeros((4, 3)), 0.0
    for a, b in itertools.pairwise(indptr):
        forward, backward = [rows_a[0] * table[a]], [np.ones(3)]
        for t in range(a + 1, b):
            forward.append((forward[-1] @ rows_a[1:]) * table[t])
        for t in range(b - 1, a, -1):
            backward.append(rows_a[1:] @ (table[t] * backward[-1]))
        backward.reverse()
        total = forward[-1].sum()
        first = forward[0] * backward[0] / total
        counts[0] += first
        entropy -= np.sum(first * np.log(first))
        for t in range(b - a - 1):
            pair = forward[t][:, None] * rows_a[1:] * (table[a + t + 1] * backward[t + 1]) / total
            counts[1:] += pair
            entropy -= np.sum(pair * np.log(pair / pair.sum(axis=1, keepdims=True)))
    np.testing.assert_allclose(learner.totals.extra.listed(uids.tolist()), counts, atol=1e-8)
    assert learner.model.elbo_terms(learner.totals)["entropy"] == pytest.approx(entropy)


def test_batches_leave_what_all_data_leave():
    """Memoized over four batches and in one, from the same parameters."""
    rows, _ = h.toy(np.random.default_rng(3))
    made = []
    for n_batches in (1, 4):
        learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"])
        h.start(learner, batch, 3)
        learner.run_lap(h.source(batch, n_batches))
        made.append(learner)
    one, four = made
    np.testing.assert_allclose(four.totals.s, one.totals.s, atol=1e-8)
    np.testing.assert_allclose(chain_counts(four.totals), chain_counts(one.totals), atol=1e-8)
    assert four.lower_bound == pytest.approx(one.lower_bound)


@pytest.mark.quarter
@pytest.mark.parametrize("n_batches", [1, 3])
@pytest.mark.parametrize("n_start", [1, 9])
@pytest.mark.parametrize("weight", [(1.0, 1.0, 1.0, 1.0), (0.6, 1.7, 4.0, 1.2)])
def test_memory_is_that_of_a_pass_after_all_proposals(n_batches, n_start, weight):
    """Accepted births, merges and deletes replayed on each bag add up to the totals; the bound rises."""
    rng, lengths = np.random.default_rng(4), (150, 90, 3, 200)
    rows, states = h.toy(rng, n_states=4, lengths=lengths, stay=0.95, spread=8.0)
    learner, batch = h.learner_of(
        rows, h.ALLOCATIONS["sticky"], proposals=("birth", "merge", "delete")
    )
    batch = batch._replace(weight=np.array(weight))
    mass = batch.weight @ lengths
    h.start(learner, batch, n_start)
    bounds, accepted = [], set()

    def on_lap(lap):
        bounds.append(lap.lower_bound)
        accepted.update(lap.accepted)
        summed = learner.memo.total(learner.totals.uids, learner.totals.s.shape[1])
        np.testing.assert_allclose(summed.s, learner.totals.s, rtol=1e-7, atol=1e-6)
        np.testing.assert_allclose(
            chain_counts(summed), chain_counts(learner.totals), rtol=1e-7, atol=1e-6
        )
        assert learner.totals.n.sum() == pytest.approx(mass)
        assert chain_counts(learner.totals).sum() == pytest.approx(mass)
        assert learner.model.elbo(summed) == pytest.approx(learner.lower_bound)

    learner.fit(h.source(batch, n_batches), 40, 1e-6, on_lap)
    assert np.all(np.diff(bounds) >= -1e-8 * np.abs(bounds[-1]))
    assert len(learner.totals.uids) == len(np.unique(np.concatenate(states)))
    assert accepted & ({"birth"} if n_start == 1 else {"merge", "delete"})


def test_entropy_of_an_accepted_merge_is_that_of_the_relabelled_chain():
    """The bound after a merge, and the bound of the same posterior with states renamed, are one."""
    rng = np.random.default_rng(5)
    rows, _ = h.toy(rng, n_states=2, lengths=(120, 80), spread=6.0)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"], proposals=("merge",))
    h.start(learner, batch, 4)
    source = h.source(batch, 2)
    while "merge" not in (learner.history[-1].accepted if learner.history else {}):
        before = None
        learner.begin_lap(source.total_weight if not learner.history else None)
        for part in source.batches():
            learner.visit(part)
        before = learner.totals
        learner.end_lap()
        assert learner.n_laps < 30
    after = learner.totals
    gone = np.setdiff1d(before.uids, after.uids)
    [created] = np.setdiff1d(after.uids, before.uids)
    members = before.positions(gone)
    np.testing.assert_allclose(
        after.s[after.positions([created])[0]], before.s[members].sum(axis=0)
    )
    counts = before.extra.listed(gone.tolist())[1:].sum()
    assert after.extra.listed([created])[1, 0] == pytest.approx(counts)
    change = after.extra.entropy - before.extra.entropy
    most = before.n[members].sum() * np.log(len(gone))
    assert 0.1 < abs(change) < most
    assert not after.entropy.any()  # it has no share for each state


def test_states_may_come_in_any_order():
    """The finite prior knows no order: neither do bound and parameters."""
    rows, _ = h.toy(np.random.default_rng(6))
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["finite"])
    h.start(learner, batch, 3)
    learner.run_lap(h.source(batch, 1))
    totals, model, order = learner.totals, learner.model, np.array([2, 0, 1])
    assert model.elbo(totals.take(order)) == pytest.approx(model.elbo(totals))
    here, there = model.coefficients(totals), model.coefficients(totals.take(order))
    np.testing.assert_allclose(there.coef, here.coef[order])
    np.testing.assert_allclose(there.log_rows[1:], here.log_rows[1:][np.ix_(order, order)])


def test_sequences_in_another_order_change_nothing():
    rows, _ = h.toy(np.random.default_rng(7))
    bounds = []
    for sequences in (rows, rows[::-1]):
        learner, batch = h.learner_of(sequences, h.ALLOCATIONS["sticky"])
        s = h.features(learner.model.likelihood, batch)
        heads = s[np.argsort(batch.prepared(learner.model.likelihood.prepare)[0][:, 0])]
        learner.start(np.stack([heads[:30].sum(axis=0), heads[-30:].sum(axis=0)]))
        learner.fit(h.source(batch, 1), 10, 0.0)
        bounds.append(learner.lower_bound)
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-9)


def test_floors_keep_the_bound_true():
    """Rows so far apart that likelihoods are floored: the entropy is still that of the posterior."""
    rng = np.random.default_rng(8)
    rows, _ = h.toy(rng, spread=1e4, lengths=(50, 30))
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"])
    h.start(learner, batch, 3)
    learner.fit(h.source(batch, 1), 20, 0.0)
    terms = learner.model.elbo_terms(learner.totals)
    assert 0.0 <= terms["entropy"] < len(batch.x) * np.log(3)
    assert np.isfinite(learner.lower_bound)
    laps = [lap.lower_bound for lap in learner.history]
    assert np.all(np.diff(laps) >= -1e-8 * np.abs(laps[-1]))


def test_bernoulli_states():
    rng = np.random.default_rng(9)
    probabilities = np.array([[0.05, 0.9, 0.1, 0.9], [0.9, 0.1, 0.8, 0.05]])
    states = [np.repeat(rng.integers(2, size=12), 10) for _ in range(6)]
    rows = [(rng.random((len(z), 4)) < probabilities[z]).astype(float) for z in states]
    learner, batch = h.learner_of(
        rows, h.ALLOCATIONS["sticky"], observation=BernoulliObservation(),
        proposals=("birth", "merge", "delete"),
    )  # fmt: skip
    h.start(learner, batch, 1)
    learner.fit(h.source(batch, 2), 40, 1e-6)
    assert len(learner.totals.uids) == 2


def watched(learner, batch, *, low_memory):
    """What a pass leaves behind, and what all that may watch it find."""
    params, uids, totals = learner.coef, learner.totals.uids, learner.totals
    model = learner.model._replace(low_memory=low_memory)
    merges = [CoarseningTrial([(pair, 99)]) for pair in itertools.combinations(uids.tolist(), 2)]
    delete = StateDeleteTrial(int(uids[0]), model.without(totals, int(uids[0])))
    wanted = {(int(uids[0]),): 0.6 * totals.n[0], (int(uids[1]),): 1e9}  # some of its runs, and all
    wanted[int(uids[1]), int(uids[2])] = 1e9
    sampling = RunSampling(wanted, totals)
    probes = (*(trial.probe for trial in merges), delete.probe, sampling.probe)
    bag, (*changes, without, drawn) = run(LocalTask(model, params, uids, batch, probes))
    sampling.take(0, drawn)
    return bag, changes, without, sampling.samples()


@pytest.mark.parametrize("low_memory", [False, True])
@pytest.mark.parametrize("lags", [0, 2])
@pytest.mark.parametrize("weight", [None, np.array([0.5, 2.0, 1.0, 0.7, 3.0])], ids=["1", "w"])
def test_sequences_in_parts_are_whole_sequences(low_memory, lags, weight, monkeypatch):
    """Statistics, counts, entropies of merges, deletes and runs, with parts of a few rows."""
    rows, _ = h.toy(np.random.default_rng(10), lengths=(40, 3, 4, 90, 33), spread=1.5)
    observation = AutoregressiveObservation(lags) if lags else GaussianObservation()
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"], observation=observation)
    batch = batch._replace(weight=weight)
    h.start(learner, batch, 4)
    learner.run_lap(h.source(batch, 1))
    bag, merges, delete, samples = watched(learner, batch, low_memory=False)
    assert bag.extra.entropy > 1.0  # states overlap, so that there is something to get wrong
    assert max(merges) < -0.1
    monkeypatch.setattr(local, "PART_ROWS", 11)
    monkeypatch.setattr(local, "LOW_MEMORY_ROWS", 7)
    got, got_merges, got_delete, got_samples = watched(learner, batch, low_memory=low_memory)
    # sums of some 160 rows in another order
    np.testing.assert_allclose(got.s, bag.s, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(got.extra.counts, bag.extra.counts, rtol=1e-11, atol=1e-13)
    assert got.extra.entropy == pytest.approx(bag.extra.entropy, rel=1e-11)
    np.testing.assert_allclose(got_merges, merges, rtol=1e-9)
    np.testing.assert_allclose(got_delete.s, delete.s, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(got_delete.extra.counts, delete.extra.counts, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(got_delete.entropy, delete.entropy, atol=1e-10)
    assert got_samples.keys() == samples.keys()
    for uid, sample in samples.items():
        np.testing.assert_array_equal(got_samples[uid].indptr, sample.indptr)
        np.testing.assert_allclose(got_samples[uid].z, sample.z, rtol=1e-13)


def test_parts_cover_all_rows_in_turn():
    lengths = np.array([3, 1, 50, 2, 2, 30, 31, 7, 200])
    edges = np.concatenate([[0], np.cumsum(lengths)])
    cuts = list(parts(edges, 10))
    flat = [part for some in cuts for part in some]
    assert [part.begin for part in flat] == [0] + [part.end for part in flat[:-1]]
    assert flat[-1].end == edges[-1]
    for some in cuts:
        assert len({(part.first, part.last) for part in some}) == 1
        assert [part.goes_on for part in some] == [True] * (len(some) - 1) + [False]
        assert all(part.offset == part.begin - edges[part.first] for part in some)
        assert all(part.end - part.begin <= 10 for part in some) or len(some) == 1
    assert max(part.end - part.begin for part in flat) < 20  # bundles, but no long sequence
    assert len(next(parts(edges, 1000))) == 1  # all together
