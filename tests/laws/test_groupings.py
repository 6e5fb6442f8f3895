"""Groupings of components: gains of changes against objectives written out, and the best of all groupings."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp import DPMixtureVB
from sklearn_bnp.engine import grouping as grouping_module
from sklearn_bnp.engine.grouping import _LEAST_GAIN, Grouping, Parts, best_grouping
from sklearn_bnp.engine.samples import Sample
from sklearn_bnp.splits.restricted_mixture import RestrictedMixture
from tests.reference.partitions import partitions

from .harness import learner_for, random_resp
from .test_agglomeration import mixture_of


def parts_of(small, s, entropy, resp, near=None):
    """`Parts`, and a function that returns the objective of groups, written out."""
    union_entropy = small.union_entropy(resp)
    near = ~np.eye(len(s), dtype=bool) if near is None else near
    parts = Parts(s, entropy, union_entropy, small.evidence, small.allocation, near)

    def objective(groups):
        sums = np.array([s[list(group)].sum(axis=0) for group in groups])
        total = small.evidence(sums).sum() + union_entropy(groups).sum()
        return total + small.allocation(sums[:, -1])

    return parts, objective


def groups_of(owner):
    return [tuple(np.flatnonzero(owner == g).tolist()) for g in np.unique(owner)]


def all_changes(owner, near):
    """Every grouping that one change of a component's group leads to, with the component and the group."""
    empty = np.setdiff1d(np.arange(len(owner)), owner)
    for j in range(len(owner)):
        alone = np.sum(owner == owner[j]) == 1
        targets = set(owner[near[j]].tolist()) - {owner[j]}
        for g in sorted(targets) + ([] if alone else empty[:1].tolist()):
            changed = owner.copy()
            changed[j] = g
            yield changed, j, g


@pytest.fixture
def shared_out(family):
    """Seven components of each family: mixture, statistics, entropies and responsibilities of shared rows."""
    if family.lags:
        pytest.skip("of sequences alone")
    rng = np.random.default_rng(3)
    X, _ = family.rows(rng, 60, spread=1.5)
    weight = rng.choice([0.5, 1.0, 3.0], size=60)
    learner, source = learner_for(family, X, resp=random_resp(rng, 60, 7), weight=weight)
    learner.run_lap(source)
    sample = Sample(learner.model.likelihood.prepare(X), np.ones(60), weight)
    small = RestrictedMixture(learner.model, sample, learner.totals.s[:0], adapt=False)
    return small, *small.step(learner.totals.s)


@pytest.fixture
def some_near():
    near = np.random.default_rng(0).random((7, 7)) < 0.6
    near |= near.T
    np.fill_diagonal(near, False)
    return near


@pytest.mark.parametrize("owner", [[0, 0, 1, 1, 1, 5, 5], [2] * 7, list(range(7))])
def test_gains_of_changes_are_differences_of_objectives(shared_out, some_near, owner):
    parts, objective = parts_of(*shared_out, some_near)
    grouping, owner = Grouping(parts, owner), np.array(owner)
    now = objective(groups_of(owner))
    assert_allclose(grouping.objective, now, rtol=1e-12)
    for changed, j, g in all_changes(owner, some_near):
        gain = grouping._gains(np.array([j]), np.array([g]))
        assert_allclose(gain, objective(groups_of(changed)) - now, rtol=1e-6, atol=1e-9 * abs(now))


def test_estimates_are_those_of_a_new_grouping_after_changes(shared_out, some_near):
    parts, objective = parts_of(*shared_out, some_near)
    grouping, rng = Grouping(parts, [0, 0, 1, 1, 1, 5, 5]), np.random.default_rng(0)
    for _ in range(6):
        changes = list(all_changes(grouping.owner, some_near))
        _, j, g = changes[rng.integers(len(changes))]
        grouping._move(j, g)
        anew = Grouping(parts, grouping.owner)
        touched = anew._touches > 0
        assert_allclose(grouping.objective, objective(groups_of(grouping.owner)), rtol=1e-12)
        assert np.array_equal(grouping._touches, anew._touches)
        for name in ("_shared", "_leaving"):
            assert_allclose(getattr(grouping, name), getattr(anew, name), rtol=1e-7, atol=1e-7)
        assert_allclose(grouping._entering[touched], anew._entering[touched], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("owner", [[0, 0, 1, 1, 1, 5, 5], [3, 0, 1, 0, 1, 5, 5], list(range(7))])
def test_a_grouping_changed_is_as_a_new_one(shared_out, some_near, owner):
    parts, _ = parts_of(*shared_out, some_near)
    first, owner = Grouping(parts, [0, 0, 1, 1, 1, 5, 5]), np.array(owner)
    before, objective = first.estimates(), first.objective
    changed, anew = first.changed_to(owner), Grouping(parts, owner)
    assert np.array_equal(changed.owner, owner) and changed.groups == anew.groups
    assert_allclose(changed.objective, anew.objective, rtol=1e-12)
    assert_allclose(changed.estimates(), anew.estimates(), rtol=1e-7, atol=1e-7)
    changed.ascend()
    assert first.objective == objective and np.array_equal(first.estimates(), before)


def test_an_ascent_leaves_a_held_component_where_it_is(shared_out, some_near):
    parts, _ = parts_of(*shared_out, some_near)
    for held in range(7):
        owner = Grouping(parts, [0, 0, 1, 1, 1, 5, 5]).ascend(held).owner
        assert owner[held] == [0, 0, 1, 1, 1, 5, 5][held]


def test_an_ascent_ends_where_no_change_gains(shared_out, some_near, monkeypatch):
    monkeypatch.setattr(grouping_module, "_CANDIDATES", 49)
    parts, objective = parts_of(*shared_out, some_near)
    grouping = Grouping(parts, [0, 0, 1, 1, 1, 5, 5])
    begin, end = grouping.objective, grouping.ascend().objective
    assert end >= begin
    around = [objective(groups_of(owner)) for owner, _, _ in all_changes(grouping.owner, some_near)]
    assert max(around) <= end + _LEAST_GAIN + 1e-9 * abs(end)


def test_single_components_share_what_is_estimated(shared_out):
    """The estimate of a change between groups of one component each is exact but for the allocation."""
    small, s, entropy, resp = shared_out
    parts, _ = parts_of(*shared_out)
    grouping = Grouping(parts, np.arange(7))
    pairs = small.union_entropy(resp)([(0, 1)])[0]
    gain = small.evidence(s[:1] + s[1:2]) + pairs - small.evidence(s[:2]).sum() - entropy[:2].sum()
    estimate = grouping._entering[0, 1] + grouping._leaving[0] - grouping._shared[0, 1]
    assert_allclose(estimate, gain, rtol=1e-7, atol=1e-7)


def clusters_in_parts(sizes, owner):
    """A mixture, statistics, entropies and responsibilities of parts of clusters that are far apart."""
    rng = np.random.default_rng(0)
    part = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.standard_normal((len(part), 2)) + 9.0 * np.array(owner)[part][:, np.newaxis]
    model = DPMixtureVB(proposals=None).fit(X)._learner_.model
    z, resp = model.likelihood.prepare(X), np.eye(len(sizes))[part]
    s = np.empty((len(sizes), model.likelihood.n_statistics))
    model.likelihood.summarise(z, resp, s)
    small = RestrictedMixture(model, Sample(z, np.ones(len(X)), None), s[:0], adapt=False)
    return small, s, np.zeros(len(sizes)), resp


@pytest.mark.parametrize(
    "start", [[tuple(range(7))], [(k,) for k in range(7)], [(0, 2, 4, 6), (1, 3, 5)]]
)
def test_the_best_of_all_groupings_is_found(start):
    """Of the 877 groupings of seven parts of three clusters."""
    parts, objective = parts_of(*clusters_in_parts([40] * 7, [0, 0, 1, 1, 1, 2, 2]))
    best = max(objective(groups) for groups in partitions(7))
    groups = best_grouping(parts, start, 20, np.random.RandomState(0))
    assert sorted(k for group in groups for k in group) == list(range(7))
    assert objective(groups) >= best - _LEAST_GAIN


def test_a_part_in_the_wrong_group_goes_where_it_belongs():
    """It is enough that one part changes its group, where both joins and splits of groups lose."""
    parts, objective = parts_of(*clusters_in_parts([90, 60, 30], [0, 1, 1]))
    wrong, right = [(0, 2), (1,)], [(0,), (1, 2)]
    assert max(objective([(0, 1, 2)]), objective(wrong)) < objective(right)
    assert Grouping(parts, [0, 1, 0]).ascend().groups == right


def test_components_without_neighbours_stay():
    small, s, entropy, resp = mixture_of(3, 6)
    parts, _ = parts_of(small, s, entropy, resp, np.zeros((6, 6), dtype=bool))
    groups = best_grouping(parts, [(k,) for k in range(6)], 3, np.random.RandomState(0))
    assert groups == [(k,) for k in range(6)]
