"""Laws of pairs of states made anew: what is collected, what adoptions leave, and what is found."""

from itertools import product

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, StateBirth, StateDelete, StateMerge
from sklearn_bnp.engine.probe import Each
from sklearn_bnp.engine.statistics import StatBag
from sklearn_bnp.engine.streaming import stream_batch
from sklearn_bnp.engine.task import LocalTask
from sklearn_bnp.engine.trials import AdoptTrial
from sklearn_bnp.hmm.model import chain_counts
from sklearn_bnp.hmm.pair_births import likely_pairs
from sklearn_bnp.hmm.sampling import RunProbe, RunSampling
from sklearn_bnp.hmm.transitions import Transitions
from sklearn_bnp.likelihood import GaussianObservation
from tests.variants import variants

from . import chain_harness as h
from .harness import fresh_learner


def trap(seed=3, n_short=3):
    """Sequences A B A and C B C, the visits to B short; true states, and a trap: B of the latter in C."""
    rng = np.random.default_rng(seed)
    means = np.zeros((3, 8))
    means[0, 0], means[1, 1], means[2, 0] = 4.0, 4.0, -4.0
    rows, true, wrong = [], [], []
    for i in range(6):
        long = 2 if i % 2 else 0
        z = np.repeat([long, 1, long], [30, n_short, 30])
        rows.append(means[z] + rng.normal(size=(len(z), 8)))
        true.append(z)
        wrong.append(np.full(len(z), 2) if i % 2 else z)
    return rows, np.concatenate(true), np.concatenate(wrong)


def started(rows, labels, pairs_per_state, seed):
    """A learner that starts from labels, and its batch."""
    observation = GaussianObservation(covariance_prior="data")
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"], observation=observation)
    birth = StateBirth(pairs_per_state=pairs_per_state)
    learner = fresh_learner(learner.model, [birth, StateMerge(), StateDelete()], seed)
    resp = np.eye(labels.max() + 1)[labels]
    learner.start(resp.T @ h.features(learner.model.likelihood, batch))
    return learner, batch._replace(resp=resp)


def fitted(rows, labels, pairs_per_state, n_batches=1, seed=0):
    learner, batch = started(rows, labels, pairs_per_state, seed)
    learner.fit(h.source(batch, n_batches), 60, 1e-6)
    return learner


# ---------------------------------------------------------------------- what is found


@pytest.mark.extended
@pytest.mark.parametrize(
    ("n_batches", "seed"), variants(product([1, 3], range(3)), quick=((1, 0), (3, 1), (3, 2)))
)
def test_a_pair_leaves_the_trap(n_batches, seed):
    """Single births, merges and deletes stay in it; pairs reach what a fit from the truth reaches."""
    rows, true, wrong = trap(seed=5, n_short=2)
    trapped, free, truth = (
        fitted(rows, labels, pairs, n_batches, seed)
        for labels, pairs in [(wrong, 0), (wrong, 1), (true, 0)]
    )
    assert len(free.totals.uids) == len(truth.totals.uids) == 3
    # 6 rows of 372 are not with their like, some 2.5 nats each; the others end alike but for tol.
    assert trapped.lower_bound < truth.lower_bound - 10.0
    assert free.lower_bound > truth.lower_bound - 1.0
    bounds = [lap.lower_bound for lap in free.history]
    assert np.diff(bounds).min() >= -1e-8 * abs(bounds[-1])


def test_estimate_is_what_a_refit_gains():
    """The gain that planned the adoption, and that of a fit from the labels it leads to."""
    rows, _, wrong = trap()
    learner, batch = started(rows, wrong, 1, 0)
    birth, source = learner.scheduler.proposals[0], h.source(batch, 2)
    while not any(len(uids) > 1 for uids in birth._gains):
        learner.run_lap(source)
        source = source.without_responsibilities()
        assert learner.n_laps < 20
    [(pair, gain)] = birth._gains.items()
    assert sorted(learner.totals.n[learner.totals.positions(pair)].round()) == [9, 189]
    labels = wrong.copy()
    for i in (1, 3, 5):
        labels[63 * i + 30 : 63 * i + 33] = 1
    refit, before = fitted(rows, labels, 0), learner.lower_bound
    # The estimate knows the transitions to and from the third state, at the weights that it had before.
    assert refit.lower_bound - before == pytest.approx(gain, abs=3.0)
    lap = learner.run_lap(source)
    assert lap.accepted == {"birth": 1}
    learner.fit(source, 20, 1e-6)
    assert learner.lower_bound == pytest.approx(refit.lower_bound, abs=1e-2)


def test_pairs_that_are_well_are_left_alone():
    """At the truth there is one round, of two laps, and nothing comes of it."""
    rows, true, _ = trap(n_short=20)
    alone, paired = (fitted(rows, true, pairs) for pairs in (0, 1))
    assert paired.lower_bound == pytest.approx(alone.lower_bound, abs=1e-2)
    assert not any(lap.accepted for lap in paired.history)
    assert len(paired.history) <= len(alone.history) + 2


@pytest.mark.quarter
@pytest.mark.parametrize("seed", range(3))
def test_no_room_for_more_states(seed):
    """With K at its most, two states may still give way to two, and reach what a fit from the truth does."""
    rows, true, wrong = trap(n_short=5)
    trapped, free, truth = [
        HDPHMMVB(
            n_components=3, max_components=3, init_params=np.eye(3)[labels], n_batches=1,
            stickiness=20.0, random_state=seed,
            proposals=(StateBirth(pairs_per_state=pairs), "merge", "delete"),
        ).fit(rows)
        for labels, pairs in [(wrong, 0), (wrong, 1), (true, 0)]
    ]  # fmt: skip
    assert trapped.n_components_ == free.n_components_ == 3
    assert trapped.lower_bound_ < truth.lower_bound_ - 15.0
    assert free.lower_bound_ > truth.lower_bound_ - 1.0


def test_streams_leave_the_trap():
    """Laps over batches in memory, by partial_fit: the bound of the whole rises with every lap."""
    rows, _, wrong = trap()
    bounds = []
    for pairs in (0, 1):
        learner, batch = started(rows, wrong, pairs, 0)
        source = h.source(batch, 3)
        learner.run_lap(source)
        laps = [learner.lower_bound]
        for _ in range(20):
            for part in source.without_responsibilities().batches():
                stream_batch(learner, part)
            laps.append(learner.lower_bound)
        assert np.diff(laps).min() >= -1e-8 * abs(laps[-1])
        bounds.append(laps[-1])
    assert bounds[1] > bounds[0] + 15.0


# ---------------------------------------------------------------------- parts


def test_neighbours_come_first():
    """A and B, and B and C follow each other; A and C never do, and would be the cheapest union."""
    rows, true, _ = trap(n_short=20)
    learner = fitted(rows, true, 0)
    learner.totals.s[...] = learner.totals.s.mean(axis=0)  # any two may be one
    pairs = likely_pairs(learner.model, learner.totals)
    assert len(pairs) == 3
    assert {frozenset(learner.totals.uids[list(p)].tolist()) for p in pairs[:2]} == {
        frozenset({0, 1}),
        frozenset({1, 2}),
    }


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_runs_of_unions_are_those_of_renamed_states(rate):
    """An observer that looks at states 0 and 1 as one, and one that is told of their sum."""
    rows, _ = h.toy(np.random.default_rng(1), lengths=(40, 3) * 10, spread=1.0)
    learner, batch = h.learner_of(rows, h.ALLOCATIONS["sticky"])
    h.start(learner, batch, 3)
    learner.run_lap(h.source(batch, 1))
    params, totals = learner.coef, learner.totals
    a, b, c = totals.uids.tolist()
    wanted = {(a, b): rate * totals.n[:2].sum()}
    sampling = RunSampling(wanted, totals)

    class Renaming(Each):
        def observe(self, block):
            resp = np.column_stack([block.resp[:, :2].sum(axis=1), block.resp[:, 2]])
            super().observe(block._replace(resp=resp, uids=np.array([a, c])))

        def finish(self, statistics):
            return self._observers[0].finish(statistics)

    joined = StatBag.zeros([a, c], totals.s.shape[1])
    joined.s[0, -1] = totals.n[:2].sum()
    renamed = RunSampling({(a,): wanted[a, b]}, joined)
    task = LocalTask(learner.model, params, totals.uids, batch)
    observer = RunProbe.observer([sampling.probe], task)
    renaming = Renaming([RunProbe.observer([renamed.probe], task)])
    bag = learner.model.local_pass(batch, params, totals.uids, [observer, renaming])
    sampling.take(0, observer.finish(bag)[0])
    renamed.take(0, renaming.finish(bag)[0])
    got, expected = sampling.samples()[a, b], renamed.samples()[a]
    np.testing.assert_array_equal(got.indptr, expected.indptr)
    np.testing.assert_array_equal(got.z, expected.z)
    assert 0 < got.total < len(batch.x)


def test_heirs_of_two_states_have_their_links():
    """Links of states that left together go to the heirs, but for those between the two."""
    rows, true, _ = trap()
    learner = fitted(rows, true, 0)
    totals, model = learner.totals, learner.model
    heirs = learner.new_uids(2)
    order = totals.positions([0, 1, 2])
    a, b, c = order + 1
    seeds = totals.s[order[:2]]
    links = Transitions(heirs, np.array([[0.0, 0.0], [50.0, 1.0], [2.0, 30.0]]))
    trial = AdoptTrial("birth", 0, heirs, seeds, retires=True, extra=links, others=(1,))
    both = totals.concatenated(trial.initial)
    adopting = model.adopting(both, dict.fromkeys(trial.targets, heirs))
    seen = []
    adopting = adopting._replace(allocation=_Spy(adopting.allocation, seen))
    params = adopting.coefficients(both)
    assert both.uids[params.states].tolist() == [2, *heirs]
    old, new = chain_counts(totals), seen[0]
    i, j = both.positions(heirs) + 1
    gone = both.positions([0, 1]) + 1
    [stays] = both.positions([2]) + 1
    np.testing.assert_allclose(new[[i, j]][:, [i - 1, j - 1]], links.counts[1:])
    into = old[c][[a - 1, b - 1]].sum()
    np.testing.assert_allclose(new[stays][[i - 1, j - 1]].sum(), into)
    np.testing.assert_allclose(new[[i, j], stays - 1].sum(), old[[a, b], c - 1].sum())
    np.testing.assert_allclose(new[0].sum(), old[0].sum())
    np.testing.assert_array_equal(new[gone], 0.0)
    np.testing.assert_array_equal(new[:, gone - 1], 0.0)


class _Spy:
    """An allocation that notes the counts it is asked about."""

    def __init__(self, allocation, seen):
        self._allocation, self._seen = allocation, seen

    def expected_log_rows(self, sticks, counts):
        self._seen.append(counts)
        return self._allocation.expected_log_rows(sticks, counts)

    def __getattr__(self, name):
        return getattr(self._allocation, name)
