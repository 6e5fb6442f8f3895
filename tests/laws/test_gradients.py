"""Gradients of the objective are expectations: what makes every step of the algorithm an ascent.

The law. With theta(phi) the vector for which ``log p(x | phi) = theta(phi) . s(x)`` - all of it: the log
normaliser and the base measure are the component for the last statistic, which is 1 - the evidence is

    evidence(s) = log integral p(phi) exp(theta(phi) . s) dphi.

It is therefore the log partition function of an exponential family in s, whose density is the posterior
q given s. So it is convex, its gradient is ``E_q[theta]``, which is `coefficients`, and its derivative
in direction s(x) is ``E_q[log p(x | phi)]``. A ridge R only adds ``-tr(Lambda R) / 2`` to the last
component of theta: the integral still exists, and the law holds. Off the diagonal, packed statistics
hold x_i x_j once, and theta holds ``-Lambda_ij``, twice the ``-Lambda_ij / 2`` of the diagonal.
Likewise for allocations, with counts n and ``theta = log pi``.
"""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from .families import FAMILIES, PROCESSES
from .harness import given, random_resp


def derivative(f, h):
    """f'(0) by central differences, extrapolated once: the error is of order h^4."""
    coarse, fine = ((f(t) - f(-t)) / (2 * t) for t in (h, 0.5 * h))
    return (4 * fine - coarse) / 3


@pytest.fixture(params=[1.0, 30.0], ids=["few-rows", "many-rows"])
def posterior(request, family):
    """A `Given` whose components hold about 10 rows each, or 300."""
    rng = np.random.default_rng(1)
    X, _ = family.rows(rng, 30, spread=2.0)
    return given(family, X, random_resp(rng, 30, 3), np.full(30, request.param))


def test_gradient_of_the_evidence(posterior):
    """In each coordinate; 1e-6 is what differences of sums of size 1e3 resolve."""
    g = posterior
    likelihood, prior = g.model.likelihood, g.model.prior
    s, coef = g.s, likelihood.coefficients(prior, g.s)
    # steps of a hundredth of a row of the size that rows have in this coordinate; of 1 if all are 0
    sizes = np.abs(g.features).mean(axis=0)
    steps = 1e-2 * np.where(sizes > 0, sizes, 1.0)
    for p in range(s.shape[1]):
        direction = np.zeros(s.shape[1])
        direction[p] = steps[p]
        slope = derivative(lambda t, d=direction: likelihood.evidence(prior, s + t * d), 1.0)
        assert_allclose(slope / steps[p], coef[:, p], rtol=1e-6, atol=1e-6 / steps[p])


def test_derivative_towards_a_row(posterior):
    """One more row x raises the evidence by ``E_q[log p(x | k)]`` to first order."""
    g = posterior
    likelihood, prior = g.model.likelihood, g.model.prior
    coef = likelihood.coefficients(prior, g.s)
    for k, r in enumerate(g.resp.T):
        q = g.twin.posterior(g.z, g.weight * r)
        expected = g.twin.expected_log_lik(q, g.z)
        assert_allclose(g.features @ coef[k], expected, rtol=1e-9, atol=1e-9)
        for row in range(0, len(g.z), 7):
            s_x = g.features[row]
            slope = derivative(
                lambda t, d=s_x, k=k: likelihood.evidence(prior, g.s[k] + t * d), 0.01
            )
            assert_allclose(slope, expected[row], rtol=1e-6, atol=1e-6)


def test_evidence_is_convex(posterior):
    """On the line between any two sets of statistics; rounding is 1e-12 of the values."""
    g = posterior
    likelihood, prior = g.model.likelihood, g.model.prior
    rng = np.random.default_rng(2)
    for _ in range(20):
        a, b = (rng.dirichlet(np.full(30, 0.2)) * 60.0 @ g.features for _ in range(2))
        t = rng.uniform()
        middle = likelihood.evidence(prior, t * a + (1 - t) * b)
        ends = t * likelihood.evidence(prior, a) + (1 - t) * likelihood.evidence(prior, b)
        assert middle <= ends + 1e-12 * abs(ends)


def test_local_step_is_the_best_for_each_row(posterior):
    """So no sharing of a row beats the softmax of the coefficients, in the linearised objective."""
    g = posterior
    coef = g.model.coefficients(g.totals)
    w = g.features @ coef.T
    resp = g.model.likelihood.local_step(coef, g.z, None, None, None, None)
    rng = np.random.default_rng(3)

    def objective(r):
        return np.sum(r * (w - np.log(np.where(r > 0, r, 1.0))), axis=1)

    best = objective(resp)
    assert_allclose(best, np.logaddexp.reduce(w, axis=1), rtol=1e-9, atol=1e-9)
    for _ in range(20):
        other = 0.9 * resp + 0.1 * rng.dirichlet(np.ones(3), size=len(resp))
        assert np.all(objective(other) <= best + 1e-9 * np.abs(best))


COUNTS = [
    np.array([7.0]),
    np.array([12.5, 3.0, 0.25]),
    np.array([0.5, 40.0, 1e-3, 6.0]),
    np.array([1000.0, 3.0, 900.0, 20.0, 4.0]),
]


def allocation_model(allocation):
    """The package's allocation model, from a fit of anything."""
    X, _ = FAMILIES[-1].rows(np.random.default_rng(0), 10)
    return given(FAMILIES[-1], X, np.ones((10, 1)), None, allocation).model.allocation


@pytest.mark.parametrize("n", COUNTS, ids=len)
def test_gradient_of_the_allocation_term(allocation, n):
    """``d elbo / d n_k = E_q[log pi_k]``; counts in order of size are left in it by the steps."""
    model = allocation_model(allocation)
    expected = model.expected_log_weights(n)
    for k in range(len(n)):
        direction = np.eye(len(n))[k] * 0.01 * n[k]
        slope = derivative(lambda t, d=direction: model.elbo(n + t * d), 1.0)
        assert_allclose(slope / (0.01 * n[k]), expected[k], rtol=1e-5, atol=1e-7 / n[k])


@pytest.mark.parametrize("n", COUNTS, ids=len)
def test_allocation_against_explicit_posteriors(allocation, n):
    """Objective, expectations and weights, from Beta or Dirichlet posteriors written out."""
    model, twin = allocation_model(allocation), allocation.twin(len(n))
    order = np.argsort(-n)
    assert_allclose(model.elbo(n), twin.elbo(n[order]), rtol=1e-11)
    assert_allclose(
        model.expected_log_weights(n)[order], twin.expected_log_weights(n[order]), rtol=1e-12
    )
    assert_allclose(model.weights(n)[order], twin.weights(n[order]), rtol=1e-12)


@pytest.mark.parametrize("n", COUNTS, ids=len)
def test_order_of_components_is_the_best(allocation, n):
    """No other order of the sticks has a higher objective, and the order given does not matter."""
    model, twin = allocation_model(allocation), allocation.twin(len(n))
    values = [twin.elbo(n[list(p)]) for p in itertools.permutations(range(len(n)))]
    best = max(values)
    for p in itertools.permutations(range(len(n))):
        assert_allclose(model.elbo(n[list(p)]), best, rtol=1e-11)


def test_absent_components(allocation):
    """nan stands for no component: comparing in one call is comparing one by one."""
    model = allocation_model(allocation)
    rows = np.full((len(COUNTS), 6), np.nan)
    for row, n in zip(rows, COUNTS, strict=True):
        row[6 - len(n) :] = n
    assert_allclose(model.elbo(rows), [model.elbo(n) for n in COUNTS], rtol=1e-13)


def test_empty_component_adds_nothing_to_a_process():
    """Nested truncation (3.4.3): not so for a finite Dirichlet prior, which pays for each label."""
    for allocation in PROCESSES:
        model = allocation_model(allocation)
        for n in COUNTS:
            assert_allclose(model.elbo(np.append(n, 0.0)), model.elbo(n), rtol=1e-14)
