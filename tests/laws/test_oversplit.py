"""Splits of many components at once: each delete against the slow way, limits, and what they are for."""

from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_bnp import DPMixtureVB, Oversplit
from sklearn_bnp.engine import last_resort
from sklearn_bnp.engine.affinity import neighbourhoods
from sklearn_bnp.engine.samples import Sample
from sklearn_bnp.inputs.rows import equal_rows
from sklearn_bnp.mixture import oversplit, sampling, searches
from sklearn_bnp.mixture.comparison import Comparison, affordable_rows
from sklearn_bnp.mixture.pooled_rows import Pool
from sklearn_bnp.splits.restricted_mixture import RestrictedMixture
from tests.benchmarks.one_start_mixtures import gaussian

from .harness import learner_for, quiet_fit, random_resp

N_ROWS = 120


@pytest.fixture
def whole(leading_family):
    """All components of a family, on a sample of all rows, and their statistics."""
    if leading_family.lags:
        pytest.skip("of sequences alone")
    rng = np.random.default_rng(0)
    X, _ = leading_family.rows(rng, N_ROWS, spread=1.5)
    weight = rng.choice([0.5, 1.0, 3.0], size=N_ROWS)
    resp = random_resp(rng, N_ROWS, 4)
    learner, source = learner_for(leading_family, X, resp=resp, weight=weight)
    learner.run_lap(source)
    likelihood = learner.model.likelihood
    sample = Sample(likelihood.prepare(X), np.ones(N_ROWS), weight)
    return RestrictedMixture(
        learner.model, sample, learner.totals.s[:0], adapt=False
    ), learner.totals.s


def test_a_delete_is_a_local_step_of_the_others(whole, monkeypatch):
    monkeypatch.setattr(searches, "_LEAST_RESP", 0.0)
    small, s = whole
    deletes = searches._Deletes(small, s)
    now, z, mass, weight = deletes.state, *small.sample
    for j in range(len(s)):
        after, entropy = np.empty_like(s[1:]), np.empty(len(s) - 1)
        rest = np.delete(now.coef, j, axis=0)
        small.model.likelihood.local_step(rest, z, mass, weight, after, entropy)
        found, gain = deletes.without(j)
        np.testing.assert_allclose(found, after, rtol=1e-8, atol=1e-7)
        slow = small.objective(after, entropy) - now.objective
        assert gain == pytest.approx(slow, abs=1e-7 * abs(now.objective))


def test_deletes_raise_the_objective_or_keep_the_limit(whole):
    small, s = whole
    begin = searches._Deletes(small, s).state.objective
    free = searches._Deletes(small, s).made(10)
    assert searches._Deletes(small, free).state.objective >= begin - 1e-9 * abs(begin)
    assert len(searches._Deletes(small, s).made(2)) == min(2, len(free))


@pytest.mark.parametrize("seed", range(3))
def test_deletes_that_lose_lead_to_others_that_gain(seed):
    """Three overlapping clusters in nine parts: no single delete of the last ones pays at once."""
    rng = np.random.default_rng(seed)
    label = rng.integers(3, size=3000)
    X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[label] + rng.standard_normal((3000, 2))
    truth = DPMixtureVB(init_params=np.eye(3)[label], proposals=(), max_iter=1)
    learner = quiet_fit(truth, X)._learner_
    likelihood, s = learner.model.likelihood, learner.totals.s
    sample = Sample(likelihood.prepare(X), np.ones(3000), None)
    small = RestrictedMixture(learner.model, sample, s[:0], adapt=False)

    def value(s):
        return small.objective(*small.step(s)[:2])

    s = small.iterate(s, 20, 0.0)[0]
    parts = searches._split(small, sample, s.sum(axis=0), 9, np.random.RandomState(seed))
    parts = small.iterate(parts, 6, 0.0)[0]
    assert value(parts) < value(s) - 100.0
    # deletes of which each has to gain end 18 to 58 below
    assert value(searches._Deletes(small, parts).made(50)) > value(s) - 5.0


def test_a_search_keeps_all_rows(whole):
    small, s = whole
    chosen = np.ones(len(s), dtype=bool)
    found = searches.oversplit(small, s, chosen, 3, 10, np.random.RandomState(0))
    if found is None:  # a single component is left, and has to be better than those that were there
        one = s.sum(axis=0, keepdims=True)
        assert small.objective(one, np.zeros(1)) > small.objective(*small.step(s)[:2])
    else:
        assert found[:, -1].sum() == pytest.approx(s[:, -1].sum())
    for split, narrow in ((chosen, False), (chosen, True), (None, False)):
        parts = searches._parts(small, s, split, 3, np.random.RandomState(0), narrow)
        assert 2 <= len(parts) <= 3 * len(s)
        assert parts[:, -1].sum() == pytest.approx(s[:, -1].sum())


def test_components_that_are_not_chosen_stay(whole):
    small, s = whole
    chosen = np.arange(len(s)) == s[:, -1].argmax()
    parts = searches._parts(small, s, chosen, 3, np.random.RandomState(0))
    np.testing.assert_array_equal(parts[: len(s) - 1], s[~chosen])
    assert len(s) + 1 <= len(parts) <= len(s) + 2
    for K in (1, 2, 9):
        halves = [searches._half(K, np.random.RandomState(i)) for i in range(20)]
        assert all(len(half) == K and half.any() for half in halves)
        assert K == 1 or not all(half.all() for half in halves)


def test_collapsed_steps_begin_with_the_statistics_of_their_responsibilities(whole, monkeypatch):
    """They take each row out of the component that holds it: it has to hold what they take."""
    small, s = whole
    collapse, seen = RestrictedMixture.collapse, []

    def checked(self, s, resp, n_steps, **how):
        z, mass, weight = self.sample
        if not self.model.likelihood.imputes:  # which completes rows under other coefficients
            found, own = np.empty_like(s), mass if weight is None else mass * weight
            self.model.likelihood.summarise(z, resp * own[:, np.newaxis], found)
            np.testing.assert_allclose(found, s, rtol=1e-7, atol=1e-6)
        seen.append(len(s))
        return collapse(self, s, resp, n_steps, **how)

    monkeypatch.setattr(RestrictedMixture, "collapse", checked)
    chosen = np.ones(len(s), dtype=bool)
    searches.oversplit(small, s, chosen, 3, 10, np.random.RandomState(0))
    assert seen or not small.model.likelihood.leaves_out


@pytest.mark.parametrize(("most_numbers", "n_seeds"), [(0, None), (2, 2), (10**9, 3)])
def test_its_cost_is_bounded(most_numbers, n_seeds, monkeypatch):
    """Parts are fewer where statistics are many, and nothing is tried with less than two."""
    seen, search = [], searches.oversplit

    def counted(small, s, chosen, n_seeds, *rest):
        seen.append(n_seeds)
        return search(small, s, chosen, n_seeds, *rest)

    data = gaussian(226)
    resp = np.eye(data.y.max() + 1)[data.y]
    # of a step of all components: two columns have six statistics
    numbers = resp.size * (6 + oversplit._NUMBERS_BESIDE_P)
    monkeypatch.setattr(oversplit, "_MOST_NUMBERS", most_numbers * numbers)
    monkeypatch.setattr(searches, "oversplit", counted)
    model = DPMixtureVB(init_params=resp, proposals=(Oversplit(patience=2),), random_state=0)
    quiet_fit(model, data.X)
    assert set(seen) == ({n_seeds} if n_seeds else set())


@pytest.mark.parametrize(
    ("gains", "n_searches"),
    [
        ([0.0] * 9, 4),  # all come back
        ([-9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 6),  # one did not: five have to
        ([-9.0] * 9, 7),  # none does, and patience ends
        ([-9.0, 5.0, 5.0, 5.0, 5.0, 5.0, 9.0], 6),  # a gain begins anew
    ],
)
def test_a_round_ends_when_searches_come_back(gains, n_searches, monkeypatch):
    left = list(gains)

    class Found:
        small, s = SimpleNamespace(sample=SimpleNamespace(total=9.0)), np.ones((2, 3))

        def restricted(self, adapt, limited):
            return self.small

        def settled(self, s):
            return s, s, left.pop(0)

    monkeypatch.setattr(searches, "oversplit", lambda small, s, *rest: s)
    monkeypatch.setattr(searches, "exchanged", lambda *args: None)
    proposal = Oversplit(patience=7)
    proposal.reset()
    proposal._best(Found(), 3, 9, oversplit._FREE_NUMBERS, np.random.RandomState(0))
    assert len(gains) - len(left) == n_searches


def test_the_prior_adapts_in_every_second_turn(whole, monkeypatch):
    """From that of the model each time, which stays as it is, as does that of other searches."""
    small, s = whole
    model, seen = small.model, []

    def in_vain(small, s, chosen, *rest):
        seen.append((small.adapts, small.prior is model.prior))
        small.adapt(s, 3)

    monkeypatch.setattr(searches, "oversplit", in_vain)
    compared = Comparison(model, small.sample, s, s[:0], adapt=True)
    search = searches.Search(compared, 3, 9, np.random.RandomState(0))
    for _ in range(9):
        search.go_on()
    adapts = model.likelihood.adapts_prior
    assert seen == [(False, True)] * 3 + [(adapts, True)] * 3 + [(False, True)] * 3
    assert compared.small.prior is model.prior


def test_costly_searches_are_few_and_cheap_ones_do_not_end_early(monkeypatch):
    seen = []

    class Found:
        small, s = SimpleNamespace(sample=SimpleNamespace(total=9.0)), np.ones((2, 3))

        def restricted(self, adapt, limited):
            return self.small

        def settled(self, s):
            seen.append(1)
            return s, s, 0.0

    monkeypatch.setattr(searches, "oversplit", lambda small, s, *rest: s)
    proposal = Oversplit()
    proposal.reset()
    for numbers, n_searches in (
        (1, 32),
        (Oversplit._numbers_of_fit, 3),
        (Oversplit._numbers_of_fit, 3),
    ):
        seen.clear()
        proposal._best(Found(), 3, 9, numbers, np.random.RandomState(0))
        assert len(seen) == n_searches


def test_searches_of_later_batches_take_less():
    """A fit has all numbers again, and what a stream's first searches have left is not lost."""
    proposal = Oversplit()
    proposal.reset()
    proposal.new_data()
    assert proposal._numbers_left == Oversplit._numbers_of_fit
    proposal._numbers_left = Oversplit._numbers_of_fit // 3
    proposal.new_data()
    assert proposal._numbers_left == Oversplit._numbers_of_fit // 3
    proposal._numbers_left = 0
    for _ in range(2):
        proposal.new_data()
        assert proposal._numbers_left == Oversplit._numbers_of_fit // last_resort._LATER_BATCHES
    proposal.reset()
    assert proposal._numbers_left == Oversplit._numbers_of_fit


@pytest.mark.parametrize(("K", "P"), [(1000, 6), (50, 1325), (20, 135), (2, 10**6), (70, 135)])
def test_components_on_all_rows_that_are_affordable_can_be_split(K, P):
    totals = SimpleNamespace(s=np.empty((K, P)))
    rows = affordable_rows(totals, Oversplit().max_rows)
    assert oversplit._MOST_NUMBERS // (rows * K * (P + oversplit._NUMBERS_BESIDE_P)) >= 2


@pytest.mark.parametrize(
    ("K", "n_rows", "n_seeds"),
    [(1, 200, []), (2, 200, [8]), (4, 200, [6]), (7, 210, [4]), (8, 200, [3]), (4, 6000, [4])],
)
def test_few_components_of_few_rows_are_split_into_more_parts(K, n_rows, n_seeds, monkeypatch):
    seen = []

    def in_vain(small, s, chosen, n_seeds, *rest):
        seen.append(n_seeds)

    monkeypatch.setattr(searches, "oversplit", in_vain)
    label = np.arange(n_rows) % K
    X = np.random.default_rng(0).standard_normal((n_rows, 2)) + 9.0 * label[:, np.newaxis]
    resp = np.eye(K)[label]
    quiet_fit(DPMixtureVB(init_params=resp, proposals=(Oversplit(),), max_iter=9), X)
    assert list(set(seen)) == n_seeds


@pytest.mark.quarter
@pytest.mark.parametrize("n_most", [8, 12])
def test_there_are_no_more_components_than_allowed(n_most):
    data = gaussian(244)
    model = DPMixtureVB(max_components=n_most, random_state=0)
    quiet_fit(model, data.X)
    assert max(lap.n_components for lap in model.history_) <= n_most


@pytest.mark.extended
def test_clusters_that_are_spread_over_several_components_are_found():
    """27 clusters of 44 rows each in 8 columns, of which births and other last resorts leave some apart."""
    data = gaussian(249)
    first = ("birth", "merge", "delete", "regroup", "relocate")
    truth = DPMixtureVB(init_params=np.eye(27)[data.y], proposals=first, random_state=0)
    best = quiet_fit(truth, data.X).lower_bound_
    proposals = (*first, Oversplit(patience=6))
    model = quiet_fit(DPMixtureVB(proposals=proposals, random_state=2), data.X)
    assert model.lower_bound_ > best - 20.0  # some 30 below without
    for trial in (trial for lap in model.history_ for trial in lap.trials):
        if trial.kind == "oversplit":  # it was searched for in all rows, and nearly to its end
            assert trial.verdict == "accepted" and trial.gain > 0.5 * trial.estimate
            assert len(trial.components) > 20  # all of them are split


# ---------------------------------------------------------------------- pools of neighbours


@pytest.fixture
def pools_alone(monkeypatch):
    """Never enough rows of all components for a search of all."""
    monkeypatch.setattr(oversplit, "shows_everything", lambda *_: False)


@pytest.mark.parametrize("K", [1, 2, 6, 7, 20])
def test_neighbourhoods_hold_each_component_once(K):
    rng = np.random.RandomState(K)
    where = rng.standard_normal((K, 2))
    loss = ((where[:, np.newaxis] - where) ** 2).sum(axis=2)
    found = neighbourhoods(loss, 6, rng)
    assert sorted(k for pool in found for k in pool) == list(range(K))
    assert [len(pool) for pool in found] == [6] * (K // 6) + [K % 6] * (K % 6 > 0)
    # around one of the first pool, no other component is nearer than those that are in it
    near = [set(np.argsort(loss[k])[: len(found[0])].tolist()) for k in found[0]]
    assert set(found[0]) in near


def test_rows_of_a_pool_count_as_what_its_components_have_of_them(leading_family):
    """Of the second component every other row is there, each of which stands for more.

    Rows of continuous columns count once at the most, before the components' masses are shared out.
    """
    if leading_family.lags:
        pytest.skip("of sequences alone")
    rng = np.random.default_rng(0)
    X, _ = leading_family.rows(rng, N_ROWS, spread=1.5)
    weight, resp = rng.choice([0.5, 1.0, 3.0], size=N_ROWS), random_resp(rng, N_ROWS, 4)
    learner, source = learner_for(leading_family, X, resp=resp, weight=weight)
    # greater weights count as far as they can be frequencies
    if learner.model.likelihood.copies_tell:
        weight = np.minimum(weight, 1.0)
        learner, source = learner_for(leading_family, X, resp=resp, weight=weight)
    learner.run_lap(source)
    model, totals = learner.model, learner.totals
    z, order = model.likelihood.prepare(X), totals.uids.tolist()
    coef = model.coefficients(totals)
    shares = model.likelihood.local_step(coef, z, None, None, None, None)
    n = weight @ shares  # as a lap would leave it that ends with these shares
    copies_tell = model.likelihood.copies_tell
    different = np.arange(N_ROWS) if copies_tell else np.sort(equal_rows(z)[0])
    held = [different[shares[different, k] > 0] for k in range(4)]
    held[2] = held[2][::2]
    samples = {
        uid: Sample(z[held[k]], shares[held[k], k], weight[held[k]]) for k, uid in enumerate(order)
    }
    totals = totals._replace(s=np.column_stack([totals.s[:, :-1], n]))
    frozen = SimpleNamespace(
        likelihood=model.likelihood, prior=model.prior, coefficients=lambda totals: coef
    )
    pool = Pool.of(SimpleNamespace(totals=totals, model=frozen, samples=samples), [0, 2])
    assert pool.sample.total * pool.scale == pytest.approx(n[[0, 2]].sum())
    mass, rows = np.zeros(N_ROWS), np.concatenate([held[0], held[2]])
    np.add.at(mass, rows, pool.sample.mass * pool.sample.weight * pool.scale)
    counted = weight if copies_tell else np.minimum(weight, 1.0)
    expected = np.zeros(N_ROWS)
    for k in (0, 2):
        own = shares[held[k], k] * counted[held[k]]
        expected[held[k]] += own * n[k] / own.sum()
    np.testing.assert_allclose(mass, expected, rtol=1e-5, atol=1e-12)
    np.testing.assert_array_equal(pool.own, totals.s[[0, 2]])
    np.testing.assert_array_equal(pool.others, totals.s[[1, 3]])


def test_pools_never_lower_the_bound(leading_family, pools_alone):
    if leading_family.lags:
        pytest.skip("of sequences alone")
    rng = np.random.default_rng(0)
    X, _ = leading_family.rows(rng, N_ROWS, spread=1.5)
    weight = rng.choice([0.1, 1.0, 7.0], size=N_ROWS)
    learner, source = learner_for(
        leading_family, X, resp=random_resp(rng, N_ROWS, 8), weight=weight, n_batches=3,
        proposals=(Oversplit(),),
    )  # fmt: skip
    bounds = []
    for _ in range(4):
        learner.scheduler.last_resort()
        learner.run_lap(source)
        bounds.append(learner.lower_bound)
    assert np.diff(bounds[1:]).min() >= -1e-9 * np.abs(bounds).max()


def test_pools_lead_out_of_wrong_starts(pools_alone):
    """Three groups of four clusters, each group divided the wrong way; pools hold one and a half of them."""
    rng, labels = np.random.default_rng(0), np.arange(1800) % 12
    X = rng.standard_normal((1800, 2)) * [3.0, 0.2]
    X += np.stack([labels // 2 * 30, labels % 2], axis=1)
    wrong = labels // 2 * 2 + (X[:, 0] > labels // 2 * 30)
    truth, stuck = (
        quiet_fit(DPMixtureVB(proposals=None, init_params=np.eye(12)[start]), X)
        for start in (labels, wrong)
    )
    model = DPMixtureVB(proposals=(Oversplit(),), init_params=np.eye(12)[wrong], random_state=0)
    quiet_fit(model, X)
    assert stuck.lower_bound_ < truth.lower_bound_ - 100.0
    assert model.lower_bound_ == pytest.approx(truth.lower_bound_, abs=1.0)
    trials = [t for lap in model.history_ for t in lap.trials if t.kind == "oversplit"]
    assert trials and all(t.verdict == "accepted" for t in trials)
    assert all(t.gain == pytest.approx(t.estimate, rel=0.1, abs=1.0) for t in trials)


@pytest.mark.parametrize("n_most", [8, 12])
def test_pools_have_no_more_components_than_allowed(n_most, pools_alone):
    model = DPMixtureVB(max_components=n_most, random_state=0)
    quiet_fit(model, gaussian(244).X)
    assert max(lap.n_components for lap in model.history_) <= n_most


def test_work_on_pools_is_bounded(pools_alone, monkeypatch):
    """A pool is given up after two searches in vain, and all of them if a fit has had its share."""
    tried = []

    def in_vain(small, s, chosen, n_seeds, *rest):
        tried.append(len(s))

    monkeypatch.setattr(searches, "oversplit", in_vain)
    data = gaussian(249)
    params = {"init_params": np.eye(27)[data.y], "proposals": (Oversplit(),), "random_state": 0}
    quiet_fit(DPMixtureVB(**params), data.X)
    assert sorted(tried) == [3] * 2 + [6] * 8
    tried.clear()
    monkeypatch.setattr(Oversplit, "_numbers_of_fit", 0)
    quiet_fit(DPMixtureVB(**params), data.X)
    assert tried == []


@pytest.mark.parametrize(("part", "n_searched"), [(0.45, {3, 6}), (0.55, {27}), (1.0, {27})])
def test_pools_are_searched_unless_a_sample_shows_half_of_the_rows(part, n_searched, monkeypatch):
    """Components from fewer rows fit the sample so closely that the whole data refuse them."""
    tried = set()

    def in_vain(small, s, chosen, n_seeds, *rest):
        tried.add(len(s))

    monkeypatch.setattr(searches, "oversplit", in_vain)
    monkeypatch.setattr(sampling, "_UNIFORM_ROWS", 1)  # else there are as many for merges
    data = gaussian(249)
    proposal = Oversplit(patience=2, max_rows=int(part * len(data.X)))
    model = DPMixtureVB(init_params=np.eye(27)[data.y], proposals=(proposal,), random_state=0)
    quiet_fit(model, data.X)
    assert tried == n_searched
