"""Laws of model building and of compression: the bound rises, and what is kept adds up and fits."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp, softmax

from sklearn_bnp.inputs.rows import equal_rows
from sklearn_bnp.memory_bounded import building, parts
from sklearn_bnp.memory_bounded.birth import rules_of_splits, split
from sklearn_bnp.memory_bounded.building import applied, build
from sklearn_bnp.memory_bounded.compression import grouping, joined_groups, kept_as_they_are
from sklearn_bnp.memory_bounded.epochs import BoundTooSmall, Limits, run_epoch
from sklearn_bnp.memory_bounded.halves import ItemSubset, Summary, Tie, summary_of
from sklearn_bnp.memory_bounded.items import (
    NewDocuments,
    memory_cost,
    nothing,
    rows_of_statistics,
    with_epoch,
)
from sklearn_bnp.memory_bounded.local import (
    converge,
    first_topics,
    log_weights,
    update,
    with_new_documents,
)
from sklearn_bnp.memory_bounded.merge import pairs_to_merge, unions
from sklearn_bnp.memory_bounded.model import objective

from .clump_harness import bounds_of_updates, epoch_items, settings
from .families import FAMILIES

# One of each layout of statistics: epochs take seconds, and what differs is tested in test_clumps.py.
NAMES = {
    "full",
    "full-zero-mean",
    "diag",
    "spherical",
    "bernoulli",
    "multinomial",
    "poisson",
    "negative-binomial",
}
ROW_FAMILIES = [family for family in FAMILIES if family.name in NAMES]


@pytest.fixture(params=ROW_FAMILIES, ids=lambda family: family.name)
def family(request):
    return request.param


def limits(memory_bound, max_groups=None):
    return Limits(memory_bound, None, None, max_groups)


def of_documents(items):
    """`NewDocuments` of a first epoch."""
    edges = items.edges - items.edges[0]
    return NewDocuments(items.z, edges, np.ones(len(edges) - 1))


# ---------------------------------------------------------------------- model building


def test_building_raises_the_bound(family, monkeypatch):
    likelihood, items = epoch_items(family)
    own, bounds = settings(likelihood), bounds_of_updates(monkeypatch)
    built = build(own, first_topics(own, items), items)
    assert built.n_splits > 0
    assert np.diff(bounds).min() > -1e-9 * abs(bounds[-1])
    assert bounds[-1] == built.topics.bound


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
        joined = applied([union], topics)
        joined.entropy[-1] = _entropy_of_union(own, before, items, union)
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
    found = split(topics, items, 0, np.arange(len(items.n)), rules, 8)
    assert found.gain > 0
    assert converge(own, applied([found], topics), items).bound > topics.bound


def with_labels(topics, items, likelihood, labels):
    """Topics of rows with given labels."""
    resp = np.eye(labels.max() + 1)[labels]
    return topics._replace(
        s=resp.T @ rows_of_statistics(likelihood, items.z), counts=(items.shares.T @ resp).T,
        entropy=np.zeros(resp.shape[1]), alpha=np.ones(resp.shape[1]),
    )  # fmt: skip


def test_gains_of_parts_are_exact(family):
    """They are what the bound changes by, here of three parts of one of two topics."""
    likelihood, items = epoch_items(family)
    own = settings(likelihood)
    labels = np.random.default_rng(0).integers(4, size=len(items.n))
    first = first_topics(own, items)
    before = with_labels(first, items, likelihood, np.minimum(labels, 1))
    after = with_labels(first, items, likelihood, labels)
    alpha = np.array([0.7, 0.3, 1.1, 0.4])
    before, after = before._replace(alpha=np.array([0.7, 1.5])), after._replace(alpha=alpha)
    part = ItemSubset(items, np.flatnonzero(labels), likelihood)
    rules = rules_of_splits(own, before, items).beside(before.alpha[0])

    def total(topics):
        values = rules.values(*(field[1:] for field in topics[:4]))
        return rules.total(Summary(*(field[1:] for field in topics[:2]), topics.alpha[1:], values))

    gain = objective(own, after, items.lengths, items.sizes)
    gain -= objective(own, before, items.lengths, items.sizes)
    np.testing.assert_allclose(total(after) - total(before), gain, rtol=1e-8, atol=1e-6)
    resp = np.eye(4)[1:, labels[labels > 0]]
    summed = summary_of(part, rules, part.n, resp, alpha[1:], n_iter=0)
    np.testing.assert_allclose(rules.total(summed), total(after), rtol=1e-8, atol=1e-6)


def test_parts_gain_what_they_promise(family, monkeypatch):
    """They are found on a sample of the items, too, and are no more than allowed."""
    likelihood, items = epoch_items(family, n=600)
    own = settings(likelihood)
    topics = converge(own, first_topics(own, items), items)
    rules = rules_of_splits(own, topics, items).beside(0.0)
    which = np.arange(len(items.n))
    part = ItemSubset(items, which, likelihood)
    one = rules.total(summary_of(part, rules, part.n, np.ones((1, len(which))), topics.alpha))
    for sampled in 10_000, 250:
        monkeypatch.setattr(parts, "_SAMPLED", sampled)
        asked = []

        def gain(found, asked=asked):
            asked.append(rules.total(found.summary) - one)
            return asked[-1]

        found, gained = parts.parts_that_gain(part, rules, topics.alpha[0], 8, gain)
        np.testing.assert_allclose(found.resp.sum(axis=0), 1.0, rtol=1e-6)
        np.testing.assert_allclose(found.summary.s.sum(axis=0), topics.s[0], rtol=1e-5, atol=1e-4)
        again = summary_of(part, rules, part.n, found.resp, found.summary.alpha, n_iter=0)
        np.testing.assert_allclose(again.value, found.summary.value, rtol=1e-6)
        assert gained == asked[-1] > 0
        assert 2 <= len(found.resp) <= 8
        assert parts.parts_that_gain(part, rules, topics.alpha[0], 1, gain) == (None, -np.inf)


def test_swaps_make_room(monkeypatch):
    # two of three topics for one cluster, and one for the two others: no split may help, nor any merge
    likelihood, items = epoch_items(ROW_FAMILIES[0], n=600)
    own = settings(likelihood, max_topics=3)
    good = build(own, first_topics(own, items), items)
    assert len(good.topics.s) == 3
    half = items.z[:, 0] > np.median(items.z[good.labels == 0, 0])
    labels = np.where(good.labels == 0, half, 2)
    start = with_labels(good.topics, items, likelihood, labels)
    stuck, bounds = converge(own, start, items), bounds_of_updates(monkeypatch)
    built = build(own, start, items)
    assert stuck.bound < good.topics.bound - 10.0
    assert np.diff(bounds).min() > -1e-9 * abs(bounds[-1])
    assert built.n_splits == built.n_merges > 0
    np.testing.assert_allclose(built.topics.bound, good.topics.bound, rtol=1e-4)


def test_unions_that_failed_are_not_tried_again_where_room_is_short():
    """They are looked at for swaps, and their failures stay in mind."""
    likelihood, items = epoch_items(ROW_FAMILIES[0], n=600)
    own = settings(likelihood, max_topics=3)
    before = build(own, first_topics(own, items), items).topics
    topics, memory = update(own, before, items), building._Memory(3)
    n = topics.s[:, -1]
    [first, *_] = building._unions(own, before, topics, items, memory)
    assert not memory.failed(n, first)
    memory.keep(n, first.members, building._FAILED)
    again = building._unions(own, before, topics, items, memory)
    assert first.members in [union.members for union in again]
    assert memory.failed(n, first)


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


def test_rows_of_new_documents_are_first_judged_one_by_one(family):
    """A document of one row has the exact posterior of its topic, however rare topics are."""
    likelihood, items = epoch_items(family, n_documents=120, n=120)
    alone = NewDocuments(items.z, np.arange(121), np.full(120, 2.0))
    items = with_epoch(nothing(likelihood, items.z.dtype), likelihood, alone)
    own = settings(likelihood)
    rng = np.random.default_rng(0)
    topics = with_labels(first_topics(own, items), items, likelihood, rng.integers(3, size=120))
    topics = topics._replace(alpha=np.array([1.0, 1e-3, 1e-9]), counts=np.empty((3, 0)))
    started = with_new_documents(own, topics, items)
    coef = likelihood.coefficients(topics.prior, topics.s)
    weights = rows_of_statistics(likelihood, items.z) @ coef.T
    resp = softmax(weights + np.log(topics.alpha / topics.alpha.sum()), axis=1)
    np.testing.assert_allclose(started.counts.T, 2.0 * resp, rtol=1e-4, atol=1e-6)
    assert np.array_equal(started.s, topics.s)


def test_topics_that_share_no_documents_are_merged():
    """Two topics for one cluster overlap in no row if each has other documents."""
    likelihood, items = epoch_items(ROW_FAMILIES[0], n=600, n_documents=30)
    own = settings(likelihood)
    good = build(own, first_topics(own, items), items)
    odd = items.shares.indices % 2
    start = with_labels(good.topics, items, likelihood, 2 * good.labels + odd)
    start = start._replace(alpha=np.full(6, 1e-4))
    topics = update(own, start, items)
    pairs = pairs_to_merge(own, start, topics, items, 10, lambda k, l: False)
    assert {(0, 1), (2, 3), (4, 5)} <= set(map(tuple, pairs.tolist()))
    assert topics.bound < good.topics.bound - 10.0
    np.testing.assert_allclose(build(own, start, items).topics.bound, good.topics.bound, rtol=1e-4)


def test_splits_are_due_where_new_rows_change_a_topic():
    """Not in each call: only topics that have grown by a part, or whose new rows are unlike the others."""
    likelihood, items = epoch_items(ROW_FAMILIES[0], n=900)
    own = settings(likelihood)
    built = build(own, first_topics(own, items), items)
    assert np.all(building._are_due(own, built.topics, items))  # all rows are new
    kept = kept_as_they_are(items, np.arange(6, dtype=np.int32))

    def due(z, max_topics=50, parts=False):
        new = NewDocuments(z, np.array([0, len(z)]), np.ones(1))
        later = with_epoch(kept, likelihood, new)
        rules = own._replace(max_topics=max_topics)
        topics = converge(rules, with_new_documents(rules, built.topics, later), later)
        return building._are_due(rules, topics, later)[int(parts)]

    z = items.z[built.labels == 0]
    center = z.mean(axis=0)
    assert not due(z[:1]).any()
    assert due(z[:1], max_topics=len(built.topics.s)).all()
    assert due(z[: len(z) // 10])[0]
    assert not due(z[: len(z) // 10], parts=True).any()
    assert due(np.tile(z, (3, 1)), parts=True)[0]
    assert due(center + 6.0 * (z[:6] - center)).any()


# ---------------------------------------------------------------------- compression


def life(family, memory_bound, max_groups=None, n_epochs=3):
    """Likelihood, all rows, and the `Epoch` after each of a few."""
    likelihood, _ = epoch_items(family)
    own, rows, epochs = settings(likelihood, tol=1e-4), [], []
    kept, topics = nothing(likelihood, np.float64), None
    for seed in range(n_epochs):
        _, items = epoch_items(family, n=120, seed=seed)
        epoch = run_epoch(own, limits(memory_bound, max_groups), kept, topics, of_documents(items))
        kept, topics = epoch.kept, epoch.topics
        rows.append(items.z)
        epochs.append(epoch)
    return likelihood, np.concatenate(rows), epochs


def bound_of(likelihood, n_groups, n_clumps=8):
    return memory_cost(n_clumps, 0, likelihood.n_statistics, n_groups)


@pytest.mark.quarter
@pytest.mark.parametrize("max_groups", [18, 5])
def test_what_is_kept_adds_up_and_fits(family, max_groups):
    likelihood, _ = epoch_items(family)
    memory_bound = bound_of(likelihood, max_groups)
    likelihood, rows, epochs = life(family, memory_bound, max_groups)
    kept = epochs[-1].kept
    whole = rows_of_statistics(likelihood, rows).sum(axis=0)
    mine = kept.s.sum(axis=0) + rows_of_statistics(likelihood, kept.z).sum(axis=0)
    np.testing.assert_allclose(mine, whole, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(kept.counts.sum(axis=1), kept.s[:, -1], rtol=1e-9)
    assert kept.s[:, -1].min(initial=2.0) > 1.5  # one row alone is no clump
    assert kept.sizes.sum() == 18
    assert len(kept.group_of_document) == 18
    assert kept.group_of_document.max() + 1 == len(kept.sizes) == max_groups
    for epoch in epochs:
        own = epoch.kept
        cost = memory_cost(len(own.s), own.z.size, likelihood.n_statistics, len(own.sizes))
        assert own.n_numbers == cost <= memory_bound


def test_a_tie_loses_what_the_bound_says(family):
    """The loss by which sets of items are ordered is that of the local bound, item by item."""
    likelihood, items = epoch_items(family)
    own = settings(likelihood)
    topics = build(own, first_topics(own, items), items).topics
    tie = Tie(*log_weights(own, topics, items.sizes))
    part = ItemSubset(items, np.arange(3, len(items.n), 4), likelihood)
    weights = rows_of_statistics(likelihood, part.z) @ tie.coef.T + tie.psi.T[part.owner]
    np.testing.assert_allclose(tie.values(part), logsumexp(weights, axis=1), rtol=1e-9, atol=1e-9)
    s, counts = part.sums(part.n[np.newaxis])
    q, value = tie.shared(s, counts)
    np.testing.assert_allclose(q[0], softmax(weights.mean(axis=0)), atol=1e-9)
    np.testing.assert_allclose(value[0], logsumexp(weights.mean(axis=0)), rtol=1e-9)
    # two halves lose less than one set, and each alone no less than 0
    side, sums = tie.cut(part, s[0], topics.prior)
    of_halves = tie.shared(*sums)[1]
    np.testing.assert_allclose(sums[0].sum(axis=0), s[0], rtol=1e-9, atol=1e-9)
    assert sums[0][:, -1] @ of_halves >= len(weights) * value[0] - 1e-9
    for j, own_side in enumerate((side, ~side)):
        assert sums[0][j, -1] == own_side.sum()
        assert logsumexp(weights[own_side], axis=1).mean() >= of_halves[j] - 1e-9


def test_memory_goes_to_large_clumps_and_not_to_strays():
    """One cluster, which no two topics describe better: its clumps are of about one size."""
    rng = np.random.default_rng(0)
    family = ROW_FAMILIES[0]
    likelihood, _ = epoch_items(family)
    z = likelihood.prepare(rng.normal(size=(3000, likelihood.n_features)))
    new = NewDocuments(z, np.array([0, 3000]), np.ones(1))
    cost = memory_cost(1, 0, likelihood.n_statistics, 1)
    epoch = run_epoch(
        settings(likelihood, max_topics=1),
        limits(20 * cost),
        nothing(likelihood, z.dtype),
        None,
        new,
    )
    assert len(epoch.kept.s) >= 15
    assert epoch.kept.s[:, -1].max() < 450


def copies(z):
    """How often each row of ``z`` (n, D) is among them, an array (n,)."""
    number = equal_rows(z)[1]
    return np.bincount(number)[number]


def test_copies_of_rows_are_counted():
    rng = np.random.default_rng(0)
    different = rng.normal(size=(40, 5))
    number = rng.integers(40, size=300)
    times = np.bincount(number, minlength=40)[number]
    np.testing.assert_array_equal(copies(different[number]), times)
    assert copies(different[:, :1]).tolist() == [1] * 40
    assert copies(different[:0]).tolist() == []


def test_copies_make_no_topics(family):
    """Rows that are given ten times have the topics that they have if given once; counts may have more."""
    likelihood, items = epoch_items(family, n=90)
    new = of_documents(items)
    once = np.repeat(np.arange(90), 10)
    many = NewDocuments(new.z[once], 10 * new.indptr, new.weight)
    own, none = settings(likelihood), nothing(likelihood, np.float64)
    topics = run_epoch(own, limits(None), none, None, new).topics
    of_copies = run_epoch(own, limits(None), none, None, many).topics
    if np.any(likelihood.standardised):
        assert len(of_copies.s) <= len(topics.s) + 1
    # none are lost: what is described ten times as well is told apart as well
    assert len(of_copies.s) >= min(len(topics.s), 2)


def test_distinct_rows_are_kept_in_mind(family):
    likelihood, items = epoch_items(family, n=120)
    own, kept = settings(likelihood, tol=1e-4), nothing(likelihood, np.float64)
    memory_bound = bound_of(likelihood, 6)
    epoch = run_epoch(own, limits(memory_bound, 6), kept, None, of_documents(items))
    left = copies(epoch.kept.z)
    here = copies(items.z)
    total = epoch.kept.distinct.sum() + (1.0 / left).sum()
    if np.all(here == 1):
        np.testing.assert_allclose(total, 120.0)
    assert np.all(epoch.kept.distinct <= epoch.kept.s[:, -1] + 1e-9)


@pytest.mark.parametrize("max_groups", [14, 5])
def test_distinct_documents_are_kept_in_mind(max_groups):
    """Equal rows in any order are the same document; a weight is so many documents."""
    likelihood, _ = epoch_items(ROW_FAMILIES[0])
    assert not likelihood.copies_tell
    own, kept = settings(likelihood), nothing(likelihood, np.float64)
    rng, D = np.random.default_rng(0), likelihood.n_features
    rows = rng.normal(size=(8, 12, D))
    shuffled = np.array([rng.permutation(document) for document in rows[:4]])
    z = np.concatenate([*rows, *shuffled, *rows[:2]])
    new = NewDocuments(z, np.arange(15) * 12, np.repeat([1.0, 3.0, 0.5], [8, 4, 2]))
    epoch = run_epoch(own, limits(bound_of(likelihood, 14), max_groups), kept, None, new)
    assert epoch.kept.sizes.sum() == 8 + 12 + 1
    each = [1 / 3, 1 / 3, 1 / 2, 1 / 2, 1, 1, 1, 1, 1 / 3, 1 / 3, 1 / 2, 1 / 2, 1 / 6, 1 / 6]
    S = len(epoch.kept.sizes)
    assert max_groups == S
    expected = np.bincount(epoch.kept.group_of_document, each, minlength=S)
    np.testing.assert_allclose(epoch.kept.distinct_sizes, expected)


def test_rows_of_clumps_are_gone(family):
    likelihood, _ = epoch_items(family)
    likelihood, rows, epochs = life(family, bound_of(likelihood, 18), 18)
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
    new = of_documents(items)
    own, kept = settings(likelihood, tol=1e-4), nothing(likelihood, np.float64)
    with pytest.raises(BoundTooSmall) as error:
        run_epoch(own, limits(1, 6), kept, None, new)
    epoch = run_epoch(own, limits(error.value.least, 6), kept, None, new)
    assert epoch.kept.n_numbers <= error.value.least
    assert epoch.is_full
    with pytest.raises(BoundTooSmall):
        run_epoch(own, limits(error.value.least - 1, 6), kept, None, new)
    # with as many groups as is the default, there is room wherever there is for the statistics
    assert run_epoch(own, limits(likelihood.n_statistics), kept, None, new).room == 1


# ---------------------------------------------------------------------- groups of documents


def allocation(counts, sizes, alpha):
    """Terms of the bound that depend on the counts (K, S), one gamma function at a time."""
    total = 0.0
    for n, size in zip(counts.T, sizes, strict=True):
        total += size * (gammaln(alpha + n / size).sum() - gammaln(alpha).sum())
        total += size * (gammaln(alpha.sum()) - gammaln(alpha.sum() + n.sum() / size))
    return total


def joins_by_hand(counts, sizes, alpha, n_groups):
    """The join that lowers the bound least, of all pairs, again and again."""
    parts = [[d] for d in range(len(sizes))]

    def bound(parts):
        columns = np.array([counts[:, part].sum(axis=1) for part in parts]).T
        return allocation(columns, [sizes[part].sum() for part in parts], alpha)

    while len(parts) > n_groups:
        choices = [
            [part for part in parts if part not in (a, b)] + [sorted(a + b)]
            for a, b in itertools.combinations(parts, 2)
        ]
        assert max(map(bound, choices)) < bound(parts) + 1e-9
        parts = max(choices, key=bound)
    return sorted(parts)


@pytest.mark.parametrize("seed", range(3))
def test_joins_lose_least(seed):
    rng = np.random.default_rng(seed)
    S, K = 16, 4
    counts, sizes = rng.gamma(0.3, 5.0, size=(K, S)), rng.choice([0.5, 1.0, 3.0], size=S)
    topics = blank_topics(counts, rng.uniform(0.1, 1.0, size=K))
    group = grouping(topics, sizes, 5)
    found = sorted(np.flatnonzero(group == g).tolist() for g in range(5))
    assert found == joins_by_hand(counts, sizes, topics.alpha, 5)


def blank_topics(counts, alpha):
    likelihood, items = epoch_items(ROW_FAMILIES[0])
    return first_topics(settings(likelihood), items)._replace(counts=counts, alpha=alpha)


def test_joins_of_many_documents_are_nearly_the_best():
    """Only joins with near documents are looked at; three kinds of documents are never mixed."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=400)
    counts = rng.poisson(np.array([[30, 1, 5], [1, 30, 5], [4, 4, 40]])[kind]).T.astype(float)
    group = grouping(blank_topics(counts, np.full(3, 0.3)), np.ones(400), 3)
    assert len(set(zip(kind.tolist(), group.tolist(), strict=True))) == 3


def test_joined_groups_leave_the_sums(family):
    likelihood, items = epoch_items(family)
    own = settings(likelihood)
    topics = converge(own, first_topics(own, items), items)
    group = np.array([0, 1, 0, 2, 1, 1])
    joined, fewer = joined_groups(topics, items, group)
    np.testing.assert_allclose(fewer.lengths, np.bincount(group, items.lengths))
    np.testing.assert_allclose(joined.counts.sum(axis=1), topics.counts.sum(axis=1))
    assert fewer.sizes.tolist() == [2, 3, 1]
    # tied q(pi) can only be worse; rows of joined documents are items of the table
    n = np.array([len(items.z)])
    table = fewer._replace(means=rows_of_statistics(likelihood, items.z), edges=n)
    assert converge(own, joined, table).bound < topics.bound + 1e-6
