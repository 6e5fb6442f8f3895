"""Laws of model building and of compression: the bound rises, and what is kept adds up and fits."""

import itertools

import numpy as np
import pytest
from scipy.special import digamma

from sklearn_bnp.memory_bounded.birth import rules_of_splits, split
from sklearn_bnp.memory_bounded.building import build
from sklearn_bnp.memory_bounded.compression import grouping, joined_groups
from sklearn_bnp.memory_bounded.epochs import BoundTooSmall, Limits, run_epoch
from sklearn_bnp.memory_bounded.items import memory_cost, nothing, rows_of_statistics
from sklearn_bnp.memory_bounded.local import converge, first_topics, update
from sklearn_bnp.memory_bounded.merge import unions
from sklearn_bnp.memory_bounded.model import objective
from sklearn_bnp.memory_bounded.predictor import retrieval_scores

from .clump_harness import epoch_items, settings
from .families import FAMILIES

# One of each layout of statistics: epochs take seconds, and what differs is tested in test_clumps.py.
NAMES = {"full", "full-zero-mean", "diag", "spherical", "bernoulli", "multinomial", "poisson"}
ROW_FAMILIES = [family for family in FAMILIES if family.name in NAMES]


@pytest.fixture(params=ROW_FAMILIES, ids=lambda family: family.name)
def family(request):
    return request.param


def limits(memory_bound, max_groups=None):
    return Limits(memory_bound, None, None, max_groups)


def of_documents(items):
    """Rows of a first epoch and where its documents begin."""
    return items.z, items.edges - items.edges[0]


# ---------------------------------------------------------------------- model building


def test_building_raises_the_bound(family):
    likelihood, items = epoch_items(family)
    own, trace = settings(likelihood), []
    built = build(own, first_topics(own, items), items, trace)
    assert built.n_splits > 0
    assert np.diff(trace).min() > -1e-9 * abs(trace[-1])
    assert trace[-1] == built.topics.bound


def test_gains_of_merges_are_exact(family):
    likelihood, items = epoch_items(family)
    own = settings(likelihood)
    rng = np.random.default_rng(0)
    topics = first_topics(own, items)
    resp = rng.dirichlet(np.ones(3), size=len(items.n))
    topics = topics._replace(
        s=resp.T @ rows_of_statistics(likelihood, items.z),
        counts=(items.shares.T @ resp).T, entropy=np.zeros(3), alpha=rng.uniform(0.3, 2.0, 3),
    )  # fmt: skip
    before, topics = topics, update(own, topics, items)
    now = objective(own, topics, items.lengths, items.sizes)
    for union in unions(own, before, topics, items, np.array([[0, 1], [0, 2], [1, 2]])):
        joined = union.apply(topics)
        joined.entropy[union.k] = _entropy_of_union(own, before, items, union)
        then = objective(own, joined, items.lengths, items.sizes)
        np.testing.assert_allclose(union.gain, then - now, rtol=1e-6, atol=1e-6)


def _entropy_of_union(own, before, items, union):
    total = []

    def observe(first, n, resp):
        w = resp[:, union.k].astype(float) + resp[:, union.l]
        total.append(-np.sum(w * np.log(np.where(w > 0, w, 1.0))))

    update(own, before, items, observe)
    return sum(total)


def test_an_estimated_split_raises_the_bound(family):
    likelihood, items = epoch_items(family)
    own = settings(likelihood)
    topics = converge(own, first_topics(own, items), items)
    rules = rules_of_splits(own, topics, items)
    found = split(own, topics, items, 0, np.arange(len(items.n)), rules)
    assert found.gain > 0
    assert converge(own, found.apply(topics), items).bound > topics.bound


def with_labels(topics, items, likelihood, labels):
    """Topics of rows with given labels."""
    resp = np.eye(labels.max() + 1)[labels]
    return topics._replace(
        s=resp.T @ rows_of_statistics(likelihood, items.z), counts=(items.shares.T @ resp).T,
        entropy=np.zeros(resp.shape[1]), alpha=np.ones(resp.shape[1]),
    )  # fmt: skip


def test_swaps_make_room():
    # two of three topics for one cluster, and one for the two others: no split may help, nor any merge
    likelihood, items = epoch_items(ROW_FAMILIES[0], n=600)
    own = settings(likelihood, max_topics=3)
    good = build(own, first_topics(own, items), items)
    assert len(good.topics.s) == 3
    half = items.z[:, 0] > np.median(items.z[good.labels == 0, 0])
    labels = np.where(good.labels == 0, half, 2)
    start = with_labels(good.topics, items, likelihood, labels)
    trace = []
    stuck = converge(own, start, items)
    built = build(own, start, items, trace)
    assert stuck.bound < good.topics.bound - 10.0
    assert np.diff(trace).min() > -1e-9 * abs(trace[-1])
    assert built.n_splits == built.n_merges > 0
    np.testing.assert_allclose(built.topics.bound, good.topics.bound, rtol=1e-4)


def test_too_many_topics_are_joined(family):
    likelihood, items = epoch_items(family)
    own = settings(likelihood)
    topics = build(own, first_topics(own, items), items).topics
    assert len(topics.s) > 2
    fewer = build(own._replace(max_topics=2), topics, items).topics
    assert len(fewer.s) == 2
    np.testing.assert_allclose(fewer.s.sum(axis=0), topics.s.sum(axis=0), rtol=1e-6, atol=1e-6)
    one = build(own._replace(max_topics=1), topics, items).topics
    np.testing.assert_allclose(one.bound, first_topics(own, items).bound, rtol=1e-2)


# ---------------------------------------------------------------------- compression


def life(family, memory_bound, max_groups=None, n_epochs=3):
    """Likelihood, all rows, and the `Epoch` after each of a few."""
    likelihood, _ = epoch_items(family)
    own, rows, epochs = settings(likelihood, tol=1e-4), [], []
    kept, topics = nothing(likelihood, np.float64), None
    for seed in range(n_epochs):
        _, items = epoch_items(family, n=120, seed=seed)
        z, indptr = of_documents(items)
        epoch = run_epoch(own, limits(memory_bound, max_groups), kept, topics, z, indptr)
        kept, topics = epoch.kept, epoch.topics
        rows.append(z)
        epochs.append(epoch)
    return likelihood, np.concatenate(rows), epochs


def bound_of(likelihood, n_groups, n_clumps=8):
    return memory_cost(n_clumps, 0, likelihood.n_statistics, n_groups)


@pytest.mark.parametrize("max_groups", [None, 5])
def test_what_is_kept_adds_up_and_fits(family, max_groups):
    likelihood, _ = epoch_items(family)
    memory_bound = bound_of(likelihood, max_groups or 18)
    likelihood, rows, epochs = life(family, memory_bound, max_groups)
    kept = epochs[-1].kept
    whole = rows_of_statistics(likelihood, rows).sum(axis=0)
    mine = kept.s.sum(axis=0) + rows_of_statistics(likelihood, kept.z).sum(axis=0)
    np.testing.assert_allclose(mine, whole, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(kept.counts.sum(axis=1), kept.s[:, -1], rtol=1e-9)
    assert kept.s[:, -1].min(initial=2.0) > 1.5  # one row alone is no clump
    assert kept.sizes.sum() == 18
    assert len(kept.group_of_document) == 18
    assert kept.group_of_document.max() + 1 == len(kept.sizes) == (max_groups or 18)
    for epoch in epochs:
        own = epoch.kept
        cost = memory_cost(len(own.s), own.z.size, likelihood.n_statistics, len(own.sizes))
        assert own.n_numbers == cost <= memory_bound


def test_rows_of_clumps_are_gone(family):
    likelihood, _ = epoch_items(family)
    likelihood, rows, epochs = life(family, bound_of(likelihood, 18))
    kept = epochs[-1].kept
    assert len(kept.s) > 0
    assert len(kept.z) < len(rows)
    assert kept.z.base is None  # no view that would hold the rows of the epoch
    known = {row.tobytes() for row in rows}
    assert all(row.tobytes() in known for row in kept.z)


def test_without_a_bound_nothing_is_lost(family):
    _, rows, epochs = life(family, None)
    assert len(epochs[-1].kept.s) == 0
    assert len(epochs[-1].kept.z) == len(rows)
    np.testing.assert_allclose(epochs[-1].kept_bound, epochs[-1].topics.bound, rtol=1e-3)


def test_a_bound_too_small_says_the_least(family):
    likelihood, items = epoch_items(family, n=120)
    z, indptr = of_documents(items)
    own, kept = settings(likelihood, tol=1e-4), nothing(likelihood, np.float64)
    with pytest.raises(BoundTooSmall) as error:
        run_epoch(own, limits(3), kept, None, z, indptr)
    epoch = run_epoch(own, limits(error.value.least), kept, None, z, indptr)
    assert epoch.kept.n_numbers <= error.value.least
    with pytest.raises(BoundTooSmall):
        run_epoch(own, limits(error.value.least - 1), kept, None, z, indptr)


# ---------------------------------------------------------------------- groups of documents


def test_groups_that_are_most_alike_are_joined():
    likelihood, items = epoch_items(ROW_FAMILIES[0])
    own = settings(likelihood)
    topics = build(own, first_topics(own, items), items).topics
    counts = np.zeros((len(topics.s), 6))
    counts[0, :3] = [10.0, 11.0, 2.0]
    counts[1, 2:] = [9.0, 10.0, 12.0, 1.0]
    counts[-1, 5] = 20.0
    topics = topics._replace(counts=counts, alpha=np.full(len(topics.s), 0.01))
    group = grouping(topics, np.ones(6), 3)
    assert group.tolist() == [0, 0, 1, 1, 1, 2]


def test_joins_are_those_of_a_table_of_all_pairs():
    """The two most alike of all, again and again, as one would do it by hand."""
    likelihood, items = epoch_items(ROW_FAMILIES[0])
    own = settings(likelihood)
    topics = first_topics(own, items)
    rng = np.random.default_rng(0)
    S, K = 40, 5
    counts, sizes = rng.gamma(0.3, 5.0, size=(K, S)), rng.integers(1, 4, size=S).astype(float)
    topics = topics._replace(counts=counts, alpha=np.full(K, 0.1))
    parts = [[d] for d in range(S)]

    def unit(part):
        zeta = counts[:, part].sum(axis=1) / sizes[part].sum() + topics.alpha
        return zeta / np.linalg.norm(zeta)

    while len(parts) > 7:
        pairs = [(unit(a) @ unit(b), a, b) for a, b in itertools.combinations(parts, 2)]
        _, a, b = max(pairs, key=lambda pair: pair[0])
        parts = [part for part in parts if part not in (a, b)] + [sorted(a + b)]
    group = grouping(topics, sizes, 7)
    assert sorted(np.flatnonzero(group == g).tolist() for g in range(7)) == sorted(parts)


def test_joined_groups_leave_the_sums(family):
    likelihood, items = epoch_items(family)
    own = settings(likelihood)
    topics = converge(own, first_topics(own, items), items)
    group = np.array([0, 1, 0, 2, 1, 1])
    joined, fewer = joined_groups(topics, items, group)
    np.testing.assert_allclose(fewer.lengths, np.bincount(group, items.lengths))
    np.testing.assert_allclose(joined.counts.sum(axis=1), topics.counts.sum(axis=1))
    assert fewer.sizes.tolist() == [2, 3, 1]
    # tied q(pi) can only be worse
    assert converge(own, joined, fewer).bound < topics.bound + 1e-6


# ---------------------------------------------------------------------- retrieval


def test_retrieval_scores_are_28(family):
    likelihood, items = epoch_items(family)
    own = settings(likelihood)
    topics = build(own, first_topics(own, items), items).topics
    zeta = topics.counts / items.sizes + topics.alpha[:, np.newaxis]
    coef = likelihood.coefficients(topics.prior, topics.s)
    z = items.z[5:15]
    log_lik = rows_of_statistics(likelihood, z) @ coef.T
    expected = np.zeros(6)
    for j in range(6):
        for row in log_lik:
            weights = digamma(zeta[:, j]) - digamma(zeta[:, j].sum())
            expected[j] += max(row + weights)
    np.testing.assert_allclose(retrieval_scores(likelihood, coef, zeta, z), expected, rtol=1e-9)
