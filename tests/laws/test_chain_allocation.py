"""Laws of the priors of transitions: sticky HDP and symmetric Dirichlet."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.optimize import approx_fprime
from scipy.special import digamma, gammaln
from scipy.stats import beta

from sklearn_bnp.hdp.sticks import Sticks, logit
from sklearn_bnp.hmm.weights import DirichletChains, HDPChains
from tests.reference.hdp_chain import HDPChainRows

from . import chain_harness as h

STICKINESS = (0.0, 1e-6, 0.3, 1.0, 50.0)
CASES = list(itertools.product((0.5, 5.0), (0.3, 4.0), STICKINESS))  # gamma, alpha, kappa


def chains(gamma, alpha, kappa):
    return HDPChains(gamma, alpha, 2.0 * alpha, kappa)


def random_counts(rng, n_states):
    """Soft counts, a fifth of them zero, states by decreasing mass."""
    counts = rng.gamma(0.4, 6.0, (n_states + 1, n_states))
    counts *= rng.random(counts.shape) < 0.8
    order = np.argsort(-counts.sum(axis=0))
    return np.vstack([counts[:1, order], counts[1:][np.ix_(order, order)]])


def exact(allocation, sticks, counts):
    """E_q[log p(z, pi, u) - log q(pi, u)] at the best q(pi), by quadrature over one or two sticks."""
    n_states = len(sticks.rho)
    nodes, weights = leggauss(200)
    u = 0.5 * (1.0 + np.sin(0.5 * np.pi * nodes))  # crowds nodes near 0 and 1
    jacobian = 0.25 * np.pi * np.cos(0.5 * np.pi * nodes) * weights
    grids = np.meshgrid(*[u] * n_states, indexing="ij")
    q = np.ones_like(grids[0])
    log_ratio = np.zeros_like(q)
    pi, left = [], np.ones_like(q)
    for k, grid in enumerate(grids):
        a, b = sticks.rho[k] * sticks.omega[k], (1 - sticks.rho[k]) * sticks.omega[k]
        shape = [1] * n_states
        shape[k] = -1
        q = q * (beta.pdf(grid, a, b) * jacobian.reshape(shape))
        log_ratio += beta.logpdf(grid, 1, allocation.gamma) - beta.logpdf(grid, a, b)
        pi.append(left * grid)
        left = left * (1 - grid)
    pi = np.array([*pi, left])
    assert q.sum() == pytest.approx(1.0, abs=1e-5)
    value = np.sum(q * log_ratio)
    mean, rest = allocation.prior(sticks)
    for j in range(n_states + 1):
        alpha = allocation.start_concentration if j == 0 else allocation.concentration
        a = alpha * pi
        if j:
            a = a.copy()
            a[j - 1] += allocation.stickiness
        normaliser = gammaln(a.sum(axis=0)) - gammaln(np.maximum(a, 1e-300)).sum(axis=0)
        theta = np.append(counts[j] + mean[j], rest[j])
        value += np.sum(q * normaliser) + gammaln(theta).sum() - gammaln(theta.sum())
    return value


def twin_of(allocation):
    a = allocation
    return HDPChainRows(a.gamma, a.concentration, a.start_concentration, a.stickiness)


@pytest.mark.parametrize(("gamma", "alpha", "kappa"), CASES)
@pytest.mark.parametrize("n_states", [1, 2, 6])
def test_objective_is_the_definition(gamma, alpha, kappa, n_states):
    rng = np.random.default_rng(n_states)
    counts = random_counts(rng, n_states)
    sticks = Sticks(rng.uniform(0.05, 0.95, n_states), 1.0 + rng.gamma(2.0, 10.0, n_states))
    allocation = chains(gamma, alpha, kappa)
    expected = twin_of(allocation).objective(counts, *sticks)
    found = allocation.objective(sticks, counts)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize(("gamma", "alpha", "kappa"), CASES)
@pytest.mark.parametrize("n_states", [1, 3, 12])
def test_objective_is_above_that_of_the_thesis(gamma, alpha, kappa, n_states):
    """At the best sticks."""
    counts = random_counts(np.random.default_rng(8), n_states)
    allocation = chains(gamma, alpha, kappa)
    sticks, value = allocation.optimise(counts)
    assert value >= twin_of(allocation).loose_objective(counts, *sticks)


@pytest.mark.quarter
@pytest.mark.parametrize(("gamma", "alpha", "kappa"), CASES)
@pytest.mark.parametrize("n_states", [1, 2])
def test_objective_is_below_the_exact_bound(gamma, alpha, kappa, n_states):
    rng = np.random.default_rng(n_states)
    allocation = chains(gamma, alpha, kappa)
    for _ in range(5):
        counts = random_counts(rng, n_states)
        sticks = Sticks(rng.uniform(0.1, 0.9, n_states), 4.0 + rng.gamma(2.0, 10.0, n_states))
        # quadrature is good to about 1e-5 of the terms, which are some hundreds
        assert allocation.objective(sticks, counts) <= exact(allocation, sticks, counts) + 1e-2


@pytest.mark.parametrize("kappa", [0.0, 5.0, 50.0])
def test_objective_is_tight(kappa):
    """Where counts are many the gap is a fraction of a nat, and that of the thesis is not."""
    counts = np.array([[3.0, 2.0], [900.0, 40.0], [40.0, 300.0]])
    allocation = HDPChains(1.0, 5.0, 1.0, kappa)
    sticks, value = allocation.optimise(counts)
    best = exact(allocation, sticks, counts)
    assert value > best - 0.4
    assert twin_of(allocation).loose_objective(counts, *sticks) < best - 2.0


@pytest.mark.parametrize(("gamma", "alpha", "kappa"), CASES)
def test_slopes_are_those_of_the_objective(gamma, alpha, kappa):
    rng = np.random.default_rng(0)
    allocation = chains(gamma, alpha, kappa)
    for n_states in (1, 4):
        problem = allocation._problem(random_counts(rng, n_states))
        at = np.concatenate([rng.normal(size=n_states), 2.0 + rng.normal(size=n_states)])
        terms = problem(at[:n_states], at[n_states:])
        slopes = approx_fprime(at, lambda x, p=problem, k=n_states: p(x[:k], x[k:]).value, 1e-6)
        found = np.concatenate([terms.logit_rho, terms.log_omega])
        np.testing.assert_allclose(found, slopes, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("gamma", "alpha", "kappa"), CASES)
@pytest.mark.parametrize("n_states", [1, 4])
def test_slopes_in_concentrations(gamma, alpha, kappa, n_states):
    rng = np.random.default_rng(9)
    counts, allocation = random_counts(rng, n_states), chains(gamma, alpha, kappa)
    sticks = Sticks(rng.uniform(0.1, 0.9, n_states), 4.0 + rng.gamma(2.0, 10.0, n_states))
    slopes = allocation._problem(counts)(logit(sticks.rho), np.log(sticks.omega)).log_concentrations
    assert slopes.keys() == {"concentration", "start_concentration", "stickiness"}
    for name, slope in slopes.items():
        value = getattr(allocation, name)
        lower, upper = (
            replace(allocation, **{name: value * factor}).objective(sticks, counts)
            for factor in (np.exp(-1e-4), np.exp(1e-4))
        )
        assert slope == pytest.approx((upper - lower) / 2e-4, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(("gamma", "alpha", "kappa"), CASES)
def test_search_never_ends_below_its_start(gamma, alpha, kappa):
    rng = np.random.default_rng(1)
    allocation = chains(gamma, alpha, kappa)
    for n_states in (1, 3, 12):
        counts = random_counts(rng, n_states)
        start = Sticks(rng.uniform(0.05, 0.95, n_states), 1.0 + rng.gamma(2.0, 10.0, n_states))
        sticks, value = allocation.optimise(counts, start)
        assert value >= allocation.objective(start, counts)
        assert value == pytest.approx(allocation.objective(sticks, counts), rel=1e-12)


def test_start_bears_masses_that_rounding_left_below_zero():
    sticks = HDPChains(1.0, 1.0, 1.0, 50.0).start(np.array([7.0, -5e-15, 0.0, 2.0]))
    assert np.all((sticks.rho > 0) & (sticks.rho < 1))
    assert np.all(np.isfinite(sticks.omega))


def test_objective_is_continuous_where_stickiness_vanishes():
    counts = random_counts(np.random.default_rng(2), 4)
    without, hardly = (HDPChains(1.0, 1.0, 1.0, kappa) for kappa in (0.0, 1e-9))
    assert hardly.optimise(counts)[1] == pytest.approx(without.optimise(counts)[1], abs=1e-4)


@pytest.mark.parametrize("kappa", [0.0, 50.0])
def test_a_state_that_is_never_visited_costs(kappa):
    counts = random_counts(np.random.default_rng(3), 4)
    wider = np.zeros((6, 5))
    wider[:5, :4] = counts
    allocation = HDPChains(1.0, 1.0, 1.0, kappa)
    assert allocation.optimise(wider)[1] < allocation.optimise(counts)[1]


@pytest.mark.parametrize(
    "allocation", [HDPChains(1.0, 2.0, 3.0, 5.0), DirichletChains(2.0, 3.0, 5.0)]
)
def test_rows_are_the_best_given_the_counts(allocation):
    """E[log pi] and the means are those of Dir(M + prior)."""
    counts = random_counts(np.random.default_rng(4), 3)
    sticks, _ = allocation.optimise(counts)
    a, rest = allocation.prior(sticks)
    theta = np.column_stack([counts + a, rest])
    expected = digamma(theta) - digamma(theta.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(allocation.expected_log_rows(sticks, counts), expected[:, :3])
    np.testing.assert_allclose(allocation.mean_rows(sticks, counts).sum(axis=1), 1.0)
    assert allocation.weights(sticks).sum() + allocation.rest(sticks) == pytest.approx(1.0)


def test_finite_prior_is_a_ratio_of_gamma_functions():
    counts = random_counts(np.random.default_rng(5), 3)
    allocation = DirichletChains(2.0, 3.0, 5.0)
    value = 0.0
    for j, n in enumerate(counts):
        a = np.full(3, (3.0 if j == 0 else 2.0) / 3)
        if j:
            a[j - 1] += 5.0
        value += gammaln(a.sum()) - gammaln((a + n).sum()) + np.sum(gammaln(a + n) - gammaln(a))
    assert allocation.optimise(counts)[1] == pytest.approx(value)


@pytest.mark.parametrize("kappa", [0.0, 50.0])
def test_row_gains_are_changes_of_the_rows_terms(kappa):
    """With weights that add up, of Dir(alpha pi + kappa) with its exact normaliser."""
    rng = np.random.default_rng(6)
    counts, allocation = random_counts(rng, 4), HDPChains(1.0, 2.0, 3.0, kappa)
    sticks, _ = allocation.optimise(counts)
    weights, pairs = allocation.weights(sticks), np.array([[0, 1], [2, 3], [3, 0]])

    def rows(weights, counts):
        n_states, value = len(weights), 0.0
        for j in range(n_states + 1):
            a = (3.0 if j == 0 else 2.0) * np.append(weights, 1.0 - weights.sum())
            if j:
                a[j - 1] += kappa
            theta = a + np.append(counts[j], 0.0)
            value += gammaln(a.sum()) - gammaln(a).sum() + gammaln(theta).sum()
            value -= gammaln(theta.sum())
        return value

    expected = []
    for i, j in pairs:
        there, names = joined(counts, i, j)
        expected.append(rows(weights @ names, there) - rows(weights, counts))
    np.testing.assert_allclose(allocation.row_gains(sticks, counts, pairs), expected)


@pytest.mark.parametrize("n_states", [2, 5, 12])
@pytest.mark.parametrize("name", h.ALLOCATIONS)
def test_union_gains_are_near_the_exact_ones(name, n_states):
    """Exact for the first pair; for the others a few nats from what the best sticks would say."""
    rng, allocation = np.random.default_rng(7), h.ALLOCATIONS[name]
    counts = random_counts(rng, n_states)
    sticks, value = allocation.optimise(counts)
    pairs = rng.permutation(np.column_stack(np.triu_indices(n_states, 1)))[:8]
    exact = []
    for i, j in pairs:
        there, names = joined(counts, i, j)
        order = np.argsort(-(allocation.weights(sticks) @ names), kind="stable")
        there = there[np.concatenate([[0], order + 1])][:, order]
        start = allocation.of_weights((allocation.weights(sticks) @ names)[order])
        exact.append(allocation.optimise(there, start)[1] - value)
    found = allocation.union_gains(sticks, counts, pairs)
    assert found[0] == pytest.approx(exact[0], abs=1e-2)
    assert np.abs(found - exact).max() < 4.0
    assert len(allocation.union_gains(sticks, counts, pairs[:0])) == 0


def joined(counts, i, j):
    """Counts with states i and j as one, and which state became which."""
    names = np.eye(counts.shape[1])
    names[j] = names[i]
    names = names[:, np.arange(len(names)) != j]
    return np.vstack([counts[:1] @ names, names.T @ counts[1:] @ names]), names
