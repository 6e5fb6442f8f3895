"""Weights of rows: samples are counted in rows, and searches find what the objective supports."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score, homogeneity_score

from sklearn_bnp import Birth, DPMixtureVB, GaussianObservation, Merge
from sklearn_bnp.engine import random_keys
from sklearn_bnp.engine.proposal import Context
from sklearn_bnp.engine.samples import Sample, UniformSample
from sklearn_bnp.engine.statistics import StatBag, UidCounter
from sklearn_bnp.likelihood.seeding import seeding_mass
from sklearn_bnp.mixture.delete import _Absorption
from sklearn_bnp.mixture.local import RowBlock
from sklearn_bnp.mixture.sampling import RowSampling

from .families import FAMILIES
from .harness import estimator, finding_of, given, one_hot, quiet_fit, random_resp

SOME = ["full", "bernoulli", "multinomial", "poisson", "categorical", "columns"]
FEW = [pytest.param(f, id=f.name) for f in FAMILIES if f.name in SOME]
BUDGET = 100


# ---------------------------------------------------------------------- samples


def collected(weight, seed=0, n_batches=10, mean_weight=None):
    """Samples of two components with half of the rows each, and the uniform one; rows are their numbers."""
    n = len(weight)
    resp = np.tile([[0.9, 0.1], [0.0, 1.0]], (n // 2, 1))
    totals = StatBag(np.arange(2), np.column_stack([weight @ resp]), np.zeros(2))
    mean = np.mean(weight) if mean_weight is None else mean_weight
    sampling = RowSampling({0: BUDGET, 1: BUDGET}, totals, mean)
    for i, rows in enumerate(np.array_split(np.arange(n), n_batches)):
        z = rows[:, np.newaxis].astype(float)
        block = RowBlock(z, weight[rows], resp[rows], totals.uids)
        sampling.take(i, finding_of(sampling.probe, [block], totals.uids, seed=(seed, i)))
    return sampling.samples(), sampling.uniform()


def weights_of(kind, n=6000):
    rng = np.random.default_rng(1)
    if kind == "equal":
        return np.full(n, 1e4)
    if kind == "mixed":
        return np.where(rng.random(n) < 0.5, 1.0, 1e5)
    if kind == "few heavy":
        return np.where(rng.random(n) < 0.005, 1e5, 1.0)
    return np.exp(2.0 * rng.normal(size=n))


KINDS = ["equal", "mixed", "few heavy", "log-normal"]


@pytest.mark.parametrize("kind", KINDS)
def test_samples_keep_their_budgets(kind):
    """As many rows as there is room for: not fewer, and not many more."""
    samples, uniform = collected(weights_of(kind))
    sizes = [len(samples[uid].mass) for uid in (0, 1)]
    assert min(sizes) >= 0.95 * BUDGET and max(sizes) <= 2 * BUDGET
    assert 1900 <= len(uniform.resp) <= 4000
    few, everything = collected(weights_of(kind, 100))
    assert [len(few[uid].mass) for uid in (0, 1)] == [50, 50]
    assert_allclose(everything.weight, weights_of(kind, 100))


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20])
@pytest.mark.parametrize("kind", KINDS)
def test_scale_of_weights_changes_no_sample(kind, scale):
    weight = weights_of(kind)
    one, other = collected(weight), collected(scale * weight)
    for a, b in zip([*one[0].values(), one[1]], [*other[0].values(), other[1]], strict=True):
        assert_array_equal(a.z, b.z)
        assert_array_equal(scale * a.weight, b.weight)


@pytest.mark.parametrize("kind", KINDS)
def test_weighted_means_of_samples_are_right(kind):
    """The share of heavy rows, over many draws: bias would show in their mean, in every batch alike."""
    weight = weights_of(kind, 3000)
    mine, times = np.arange(3000) % 2 == 1, np.linspace(0.0, 2.0, 3000)  # later rows have more
    expected = np.average(times[mine], weights=weight[mine])
    found = []
    for seed in range(60):
        sample = collected(weight, seed)[0][1]
        found.append(np.average(times[sample.z[:, 0].astype(int)], weights=sample.weight))
    assert abs(np.mean(found) - expected) < 4 * np.std(found) / np.sqrt(60) + 0.01


def test_few_heavy_rows_and_many_light_ones_are_both_there():
    weight = weights_of("few heavy")
    rows = collected(weight)[0][1].z[:, 0].astype(int)
    heavy = weight > 1
    mine = np.arange(len(weight)) % 2 == 1
    assert heavy[rows].sum() >= min(0.3 * BUDGET, 0.9 * (heavy & mine).sum())
    assert (~heavy[rows]).sum() >= 0.3 * BUDGET


def test_rows_of_weight_zero_take_no_room():
    weight = np.zeros(6000)
    weight[::50] = 1.0
    weight[1::50] = 2.0
    samples, uniform = collected(weight)
    assert uniform.total == pytest.approx(weight.sum())
    assert {len(sample.mass) for sample in samples.values()} == {120}


@pytest.mark.quarter
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
@pytest.mark.parametrize("fill", [1e9, 9.97e36])
@pytest.mark.parametrize("missing", [False, True])
def test_rows_of_weight_zero_may_hold_any_numbers(covariance_type, fill, missing):
    """Such as fill values, in whole batches before all others."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(100, 2)) + c for c in (-4, 4)])
    if missing:
        rows[::9, 1] = np.nan
    X = np.concatenate([np.full((60, 2), fill), rows])
    observation = GaussianObservation(covariance_type)
    model = DPMixtureVB(observation=observation, n_batches=8, random_state=0)
    model.fit(X, sample_weight=np.repeat([0.0, 1.0], [60, 200]))
    alone = DPMixtureVB(observation=observation, random_state=0).fit(rows)
    assert model.n_components_ == alone.n_components_ == 2
    assert_allclose(model.lower_bound_, alone.lower_bound_, rtol=1e-6)


@pytest.mark.extended
def test_rows_of_weight_zero_do_not_make_a_first_batch_large():
    """A column that is constant in few rows may vary later; rows that do not count do not make them more."""
    rng = np.random.default_rng(0)
    first = np.column_stack([rng.normal(size=12), np.full(12, 3.0)])
    then, nothing = rng.normal([0.0, 3.0], size=(200, 2)), rng.normal(size=(50, 2))
    alone = DPMixtureVB(random_state=0).partial_fit(first).partial_fit(then)
    model = DPMixtureVB(random_state=0)
    model.partial_fit(
        np.concatenate([first, nothing]), sample_weight=np.repeat([1.0, 0.0], [12, 50])
    )
    assert_allclose(model.partial_fit(then).score(then), alone.score(then), rtol=1e-9)


def test_samples_do_not_shrink_when_their_batch_comes_again():
    """Rows that a batch had earlier in the lap are about to go: they take no room from the new ones."""
    n, resp = 6000, np.ones((6000, 1))
    totals = StatBag(np.arange(1), np.full((1, 1), float(n)), np.zeros(1))
    for seed in range(5):
        sampling = RowSampling({0: 2000}, totals)
        block = RowBlock(np.arange(n)[:, np.newaxis].astype(float), None, resp, totals.uids)
        for i in range(4):
            sampling.take(0, finding_of(sampling.probe, [block], totals.uids, seed=(seed, i)))
        assert len(sampling.samples()[0].mass) > 1700
        assert len(sampling.uniform().resp) > 1700


def test_batches_seen_again_replace_their_rows():
    weight = weights_of("mixed", 300)
    sampling = RowSampling({}, StatBag.zeros([0], 2), 1.0)
    for start in (0, 100, 0, 200, 100):
        rows = np.arange(start, start + 100)
        block = RowBlock(rows[:, np.newaxis].astype(float), weight[rows], np.ones((100, 1)), [0])
        sampling.take(start, finding_of(sampling.probe, [block], [0], seed=(start,)))
    assert sorted(sampling.uniform().z[:, 0].tolist()) == list(range(300))


def test_thresholds_leave_what_there_is_room_for():
    key, size = np.array([0.3, 0.1, 0.9, 0.5]), np.array([4, 3, 2, 5])
    assert random_keys.lowered(np.inf, key, size, 7) == 0.5
    assert random_keys.lowered(np.inf, key, size, 1) == 0.3  # one at the least
    assert random_keys.lowered(0.95, key, size, 99) == 0.95


def test_small_weights_of_samples_are_raised():
    """A tenth of many rows of small weights counts as its rows, but not for more than all of them."""
    sample = Sample(np.zeros((50, 1)), np.ones(50), np.full(50, 0.01))
    assert sample.standing_for(5.0).total == pytest.approx(5.0)
    assert sample.standing_for(5000.0).total == pytest.approx(50.0)
    heavy = sample._replace(weight=np.full(50, 7.0))
    assert heavy.standing_for(5000.0) is heavy
    assert sample._replace(weight=None).standing_for(5000.0).total == 50.0


def test_seeds_are_drawn_half_by_number():
    weight = np.r_[np.full(90, 1.0), np.full(10, 1e6), np.zeros(7)]
    mass = seeding_mass(np.ones(107), weight)
    assert mass[:90].sum() == pytest.approx(0.45 * mass.sum(), rel=1e-3)
    assert np.all(mass[100:] == 0)
    assert_allclose(seeding_mass(np.ones(4), np.full(4, 1e-5)), 1.0)


# ---------------------------------------------------------------------- proposals


def contexts(family, scale):
    """What proposals see of rows drawn from all: of weighted rows, and of as many copies."""
    rng = np.random.default_rng(0)
    X, _ = family.rows(rng, 200)
    times, resp = rng.integers(1, 5, size=200), random_resp(rng, 200, 5, concentration=2.0)
    here = given(family, X, resp, times.astype(float))
    made = []
    for weight, copies in ((scale * times, 1), (None, times)):
        z, r = (np.repeat(a, copies, axis=0) for a in (here.z, here.resp))
        r = np.ascontiguousarray(r, dtype=z.dtype)
        uniform = UniformSample(np.ascontiguousarray(z), r, weight)
        sample = Sample(uniform.z, r[:, 2].astype(float), weight)
        made.append(
            Context(here.model, here.totals, {2: sample}, uniform, None, UidCounter(), np.inf)
        )
    return made


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e5])
def test_rows_drawn_from_all_count_as_often_as_they_weigh(family, scale):
    """Merges of several and deletes judge by weighted rows as by copies, whatever part of all they are."""
    one, other = contexts(family, scale)
    assert list(Merge()._several(one, None)) == list(Merge()._several(other, None))
    steps = []
    for context in (one, other):
        moved = _Absorption(
            context.model, context.totals, 2, [0, 1, 3, 4], context.samples[2], context.uniform
        )
        steps.append(moved.step(moved.start))
    for a, b in zip(*steps, strict=True):
        assert_allclose(a, b, rtol=1e-5, atol=1e-6 * np.abs(b).max())


# ---------------------------------------------------------------------- searches


# Two of the clusters are one. That these are other ones than from the truth costs .017 nats in all.
NOT_WORTH_A_LAP = pytest.mark.xfail(reason="searches leave gains of less than .05 nats alone")


def searched(family, X, labels, weight, **parameters):
    """Fits from one component and from the truth."""
    settings = {"random_state": 0, **parameters}
    found = quiet_fit(estimator(family, **settings), X, sample_weight=weight)
    proposals = ("merge", "delete")
    settings |= {"n_components": labels.max() + 1, "init_params": one_hot(labels)}
    known = estimator(family, **{**settings, "proposals": proposals})
    return found, quiet_fit(known, X, sample_weight=weight)


@pytest.mark.quarter
@pytest.mark.parametrize(
    ("family", "scale"),
    [
        pytest.param(
            f, scale, id=f"{f.name}-{scale:g}",
            marks=[pytest.mark.slow] * slow + [NOT_WORTH_A_LAP] * (scale == 1e-2 and f.name == "bernoulli"),
        )
        for f in FAMILIES
        if f.name in SOME
        for scale, slow in (
            (1e-4, False), (1e-2, True), (1.0, False), (1e2, True), (1e4, True),
            (1e6, f.name != "bernoulli"),
        )
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:sample_weight sums to")
def test_scale_of_weights(family, scale):
    """No worse than from the truth, whatever the prior lets of it.

    With the mass of three rows most priors leave one component, but not if a row is a bag of words. Rows
    of great weights are evidence for more.
    """
    X, labels = family.rows(np.random.default_rng(0), 300, spread=0.6)
    weight = np.full(300, scale)
    found, known = searched(family, X, labels, weight, max_components=6)
    assert found.lower_bound_ >= known.lower_bound_ - 1e-3 * weight.sum()
    if scale >= 1:
        assert homogeneity_score(labels, found.predict(X)) > 0.95


@pytest.mark.parametrize(
    "family",
    [FEW[0], *(pytest.param(*p.values, marks=pytest.mark.slow, id=p.id) for p in FEW[1:2])],
)
@pytest.mark.parametrize(
    "heavy",
    [
        pytest.param("rows", marks=pytest.mark.slow),
        "largest cluster",
        pytest.param("other clusters", marks=pytest.mark.slow),
    ],
)
def test_weights_of_one_and_of_a_hundred_thousand(family, heavy):
    """Heavy rows do not hide light ones, nor light ones heavy ones."""
    X, labels = family.rows(np.random.default_rng(0), 300, spread=0.6)
    is_heavy = {
        "rows": np.arange(300) % 2 == 0, "largest cluster": labels == 0, "other clusters": labels > 0,
    }[heavy]  # fmt: skip
    weight = np.where(is_heavy, 1e5, 1.0)
    found, known = searched(family, X, labels, weight)
    assert found.lower_bound_ >= known.lower_bound_ - 1e-3 * weight.sum()
    assert homogeneity_score(labels, found.predict(X)) > 0.95


@pytest.mark.parametrize("weight", [1e2, 1e5, "mixed"])
@pytest.mark.parametrize("proposals", [("merge",), ("delete",), ("merge", "delete")])
def test_components_that_are_not_needed_go(weight, proposals):
    """Of rows that are equal within a cluster, which no weight can tell apart any further."""
    rng, patterns = np.random.default_rng(0), np.kron(np.eye(3), np.ones(4)).astype(int)
    X, labels = np.repeat(patterns, 40, axis=0), np.repeat(np.arange(3), 40)
    resp = one_hot(labels) @ np.kron(np.eye(3), np.ones((1, 3))) * rng.dirichlet(np.ones(9), 120)
    model = DPMixtureVB(
        9, observation="bernoulli", init_params=resp / resp.sum(axis=1, keepdims=True),
        proposals=proposals, random_state=0,
    )  # fmt: skip
    weight = np.where(np.arange(120) % 2, 1.0, 1e5) if weight == "mixed" else np.full(120, weight)
    model.fit(X, sample_weight=weight)
    assert model.n_components_ == 3
    assert adjusted_rand_score(labels, model.predict(X)) == 1.0


@pytest.mark.extended
@pytest.mark.parametrize(
    "family",
    [pytest.param(*FEW[0].values, id=FEW[0].id, marks=pytest.mark.slow), FEW[1]],
)
def test_rows_ten_times_are_weights_of_ten(family):
    """But discrete rows that are there ten times are frequencies, which weights of ten need not be."""
    X, labels = family.rows(np.random.default_rng(0), 150, spread=0.6)
    one = quiet_fit(estimator(family, random_state=0), X, sample_weight=np.full(150, 10.0))
    other = quiet_fit(estimator(family, random_state=0), np.repeat(X, 10, axis=0))
    assert homogeneity_score(labels, one.predict(X)) > 0.95
    if one._learner_.model.likelihood.copies_tell:
        assert one.n_components_ <= other.n_components_
        assert one.lower_bound_ < other.lower_bound_ + 0.05 * 1500
        return
    # decisions may differ where chance has a say, by what the last steps of a fit gain
    assert one.lower_bound_ == pytest.approx(other.lower_bound_, abs=0.05 * 1500)


@pytest.mark.quarter
@pytest.mark.parametrize("weighted", [None, 1e-1, 1e4, "mixed"])
@pytest.mark.parametrize("how", ["batches", "stream", "adopt"])
def test_ways_to_learn(how, weighted):
    family = next(f for f in FAMILIES if f.name == "full")
    X, labels = family.rows(np.random.default_rng(0), 600, spread=0.5)
    mixed = np.where(np.arange(600) % 3, 1.0, 1e4)
    weight = mixed if weighted == "mixed" else None if weighted is None else np.full(600, weighted)
    birth = Birth("adopt") if how == "adopt" else "birth"
    model = DPMixtureVB(
        n_batches=None if how == "stream" else 4, proposals=(birth, "merge", "delete"),
        max_components=8, random_state=0,
    )  # fmt: skip
    if how == "stream":
        for _ in range(3):
            for i, rows in enumerate(np.array_split(np.arange(600), 4)):
                some = None if weight is None else weight[rows]
                model.partial_fit(X[rows], sample_weight=some, batch_id=i)
    else:
        quiet_fit(model, X, sample_weight=weight)
    assert homogeneity_score(labels, model.predict(X)) > 0.95


@pytest.mark.slow
def test_many_rows_of_small_weights():
    """A sample holds a fraction of them, and of their mass; the component has the rest."""
    rng = np.random.default_rng(0)
    centres = 5.0 * rng.normal(size=(4, 12))
    labels = rng.integers(4, size=100_000)
    X = centres[labels] + rng.normal(size=(100_000, 12))
    model = DPMixtureVB(random_state=0).fit(X, sample_weight=np.full(100_000, 0.005))
    assert model.n_components_ == 4
    assert adjusted_rand_score(labels, model.predict(X)) > 0.99
