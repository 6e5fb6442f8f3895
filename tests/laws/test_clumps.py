"""Laws of the updates over clumps: the objective is the one written down term by term, and it rises."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import digamma

from sklearn_bnp.memory_bounded.halves import (
    ItemSubset,
    Others,
    Rules,
    halve,
    refine,
    summary_of,
    whole,
)
from sklearn_bnp.memory_bounded.local import converge, first_topics, update
from sklearn_bnp.memory_bounded.model import (
    Scale,
    Topics,
    alpha_cost,
    log_rising_factorials,
    objective,
    raised_alpha,
    update_alpha,
)
from tests.reference import clumps as reference

from .clump_harness import RATE, SHAPE, bounds_of_updates, epoch_items, problem, settings
from .families import FAMILIES

# Sums of some hundred terms, in doubles, of rows in units of 1.
ROUNDING = 1e-9
ROW_FAMILIES = [family for family in FAMILIES if not family.lags]


@pytest.fixture(params=ROW_FAMILIES, ids=lambda family: family.name)
def family(request):
    return request.param


def given(case, resp, alpha):
    """`Topics` of clumps with responsibilities (C, K)."""
    rows, S = case.spread(resp), case.group.max() + 1
    counts = np.array(
        [[rows[case.group[case.owner] == s, k].sum() for s in range(S)] for k in range(len(alpha))]
    )
    entropy = -np.sum(rows * np.log(rows), axis=0)
    return Topics(rows.T @ case.features, counts, entropy, alpha, case.likelihood.prior, 0.0)


def random_resp(case, K=3, seed=1):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(K), size=case.clump.max() + 1), rng.uniform(0.2, 2.0, size=K)


# ---------------------------------------------------------------------- the objective


def test_objective_is_the_bound_term_by_term(family):
    case = problem(family)
    resp, alpha = random_resp(case)
    items, topics = case.items(), given(case, resp, alpha)
    twin = family.twin(case.likelihood, case.likelihood.prior)
    expected = reference.bound(
        twin, case.z, case.spread(resp), case.owner, case.group, alpha, SHAPE, RATE
    )
    actual = objective(settings(case.likelihood), topics, items.lengths, items.sizes)
    np.testing.assert_allclose(actual, expected, rtol=ROUNDING, atol=1e-8)


def test_q_of_pi_is_at_its_optimum(family):
    # (20), with the mean over the documents of a group: any other zeta is worse
    case = problem(family)
    resp, alpha = random_resp(case)
    twin, rows = family.twin(case.likelihood, case.likelihood.prior), case.spread(resp)
    zeta = reference.zeta_of_groups(rows, case.owner, case.group, alpha)
    rng = np.random.default_rng(2)

    def bound(zeta):
        return reference.bound(
            twin, case.z, rows, case.owner, case.group, alpha, SHAPE, RATE, zeta=zeta
        )

    best = bound(zeta)
    assert all(bound(zeta * rng.uniform(0.8, 1.25, zeta.shape)) < best for _ in range(20))


def test_update_is_that_of_the_reference(family):
    case = problem(family)
    resp, alpha = random_resp(case)
    items, found = case.items(), []
    twin = family.twin(case.likelihood, case.likelihood.prior)
    expected = reference.updated_resp(
        twin, case.z, case.clump, case.spread(resp), case.owner, case.group, alpha
    )
    update(
        settings(case.likelihood), given(case, resp, alpha), items,
        lambda first, n, resp: found.append(resp),
    )  # fmt: skip
    np.testing.assert_allclose(case.spread(np.concatenate(found)), expected, atol=1e-8)


@pytest.mark.parametrize("name", ["multinomial", "bernoulli", "full"])
def test_bound_is_below_the_evidence(name):
    # every assignment of five rows, so that log p(x | alpha) is exact
    family = next(f for f in ROW_FAMILIES if f.name == name)
    case = problem(family, n=6, n_documents=3, n_clumps=4, n_groups=2)
    likelihood, features = case.likelihood, case.features
    resp, alpha = random_resp(case, K=2)
    topics = converge(
        settings(likelihood)._replace(tol=1e-9), given(case, resp, alpha), case.items()
    )

    def evidence(labels):
        s = np.array([features[labels == k].sum(axis=0) for k in range(2)])
        return likelihood.evidence(topics.prior, s).sum()

    exact = reference.log_evidence(evidence, case.owner, topics.alpha)
    exact += reference.alpha_bound(topics.alpha, SHAPE, RATE)
    assert topics.bound < exact + 1e-9


def test_clumps_of_one_row_are_the_rows(family):
    # the same rows once as an epoch's, through the kernels, and once as a table of clumps
    likelihood, items = epoch_items(family)
    n = len(items.n)
    table = problem(family)._replace(
        likelihood=likelihood, z=items.z, owner=items.shares.indices, clump=np.arange(n),
        group=np.arange(len(items.sizes)),
    )  # fmt: skip
    own = settings(likelihood)
    rows, clumps = first_topics(own, items), first_topics(own, table.items())
    np.testing.assert_allclose(clumps.bound, rows.bound, rtol=ROUNDING)
    start = np.random.default_rng(0).dirichlet(np.ones(3), size=n)
    rows = clumps = given(table, start, np.ones(3))
    for _ in range(5):
        rows, clumps = update(own, rows, items), update(own, clumps, table.items())
        np.testing.assert_allclose(clumps.bound, rows.bound, rtol=1e-7)
    np.testing.assert_allclose(clumps.s, rows.s, rtol=1e-5, atol=1e-5)


def test_statistics_add_up(family):
    case = problem(family)
    resp, alpha = random_resp(case)
    topics = update(settings(case.likelihood), given(case, resp, alpha), case.items())
    np.testing.assert_allclose(topics.s.sum(axis=0), case.features.sum(axis=0), atol=1e-8)
    lengths = np.bincount(case.group[case.owner])
    np.testing.assert_allclose(topics.counts.sum(axis=0), lengths, rtol=ROUNDING)
    np.testing.assert_allclose(topics.counts.sum(axis=1), topics.s[:, -1], rtol=ROUNDING)


# ---------------------------------------------------------------------- rising


def test_updates_raise_the_bound(family, monkeypatch):
    case = problem(family, n=60, n_clumps=25)
    start, bounds = given(case, *random_resp(case)), bounds_of_updates(monkeypatch)
    converge(settings(case.likelihood)._replace(tol=1e-12), start, case.items())
    assert len(bounds) > 3
    assert np.diff(bounds).min() > -1e-9 * abs(bounds[-1])


def test_restricted_updates_raise_the_value(family, monkeypatch):
    likelihood, items = epoch_items(family)
    rules = Rules(likelihood, likelihood.prior, items.sizes, SHAPE, 3.0, Scale(5.0, 2.0))
    part = ItemSubset(items, np.arange(0, len(items.n), 2), likelihood)
    start = np.random.default_rng(0).random(len(part.n))
    beside = rules._replace(scale=Scale(), others=Others(items.lengths, 0.5))
    for own in rules, beside:
        values = []
        for n_updates in range(20):  # the value is that of the halves after so many
            monkeypatch.setattr("sklearn_bnp.memory_bounded.halves._MAX_ITER", n_updates)
            first, alpha = refine(part, own, start, np.array([0.5, 0.5]))
            both = np.array([first, 1.0 - first])
            values.append(own.total(summary_of(part, own, part.n, both, alpha)))
        assert len(set(values)) > 2
        assert np.diff(values).min() > -1e-9 * abs(values[-1])


def test_halves_are_judged_by_what_they_sum(family):
    likelihood, items = epoch_items(family)
    cost = alpha_cost(items.lengths, items.sizes, 2.0, RATE)
    rules = Rules(likelihood, likelihood.prior, items.sizes, SHAPE, cost)
    part = ItemSubset(items, np.arange(len(items.n)), likelihood)
    one = whole(part, rules, 1.0)
    halves = halve(part, rules, one, hard=True)
    assert set(halves.first) == {0.0, 1.0}
    np.testing.assert_allclose(halves.summary.s.sum(axis=0), one.s[0], atol=1e-7)
    np.testing.assert_allclose(halves.summary.counts.sum(axis=0), items.lengths, rtol=ROUNDING)
    assert halves.summary.value.sum() > one.value[0]  # three clusters are no single one


# ---------------------------------------------------------------------- alpha


def counts_of(rng, K, S, largest):
    return rng.gamma(0.3, size=(K, S)) * largest


@pytest.mark.parametrize("shape", [1.0, 2.5])
@pytest.mark.parametrize("largest", [0.05, 1.0, 100.0])
def test_steps_of_alpha_raise_the_bound_and_reach_its_top(shape, largest):
    rng = np.random.default_rng(3)
    counts, sizes = counts_of(rng, 4, 6, largest), rng.integers(1, 5, size=6).astype(float)
    cost = 2.0

    def value(k, alpha):
        rise = log_rising_factorials(counts[k : k + 1], np.array([alpha]), sizes)[0]
        return rise + (shape - 1.0) * np.log(alpha) - cost * alpha

    alpha = np.full(4, 3.0)
    for _ in range(300):
        raised = raised_alpha(counts, alpha, sizes, shape, cost)
        for k in range(4):
            assert value(k, raised[k]) >= value(k, alpha[k]) - 1e-12 * abs(value(k, alpha[k]))
        alpha = raised
    for k in range(4):
        top = minimize_scalar(lambda a, k=k: -value(k, a), bounds=(1e-9, 50.0), method="bounded")
        assert value(k, alpha[k]) >= -top.fun - 1e-6


def test_updates_of_alpha_raise_the_objective():
    case = problem(ROW_FAMILIES[0])
    resp, alpha = random_resp(case)
    items, own, topics = case.items(), settings(case.likelihood), given(case, resp, 20.0 * alpha)
    bounds = []
    for _ in range(20):
        bounds.append(objective(own, topics, items.lengths, items.sizes))
        topics = update_alpha(own, topics, items.lengths, items.sizes, 1)
    assert np.diff(bounds).min() > -1e-10
    assert bounds[-1] > bounds[0] + 1.0


@pytest.mark.parametrize("cost", [1.0, 10.0])
def test_alpha_of_fractions_of_rows_is_found_quickly(cost):
    # Minka's bound needs counts of 1 or more: with less his step passes the top, to and fro
    counts, sizes = np.full((1, 8), 0.002), np.ones(8)

    def slope(alpha):
        return (digamma(alpha + counts) - digamma(alpha)) @ sizes - cost

    alpha = plain = np.array([1e-3])
    for _ in range(12):
        alpha = raised_alpha(counts, alpha, sizes, 1.0, cost)
        plain = plain * (slope(plain) + cost) / cost
    top = brentq(lambda a: slope(a)[0], 1e-8, 10.0)
    np.testing.assert_allclose(alpha[0], top, rtol=1e-3)
    assert abs(np.log(plain[0] / top)) > 0.01
