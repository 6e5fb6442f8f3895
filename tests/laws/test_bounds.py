"""The objective is what it says, a lower bound of the exact log marginal likelihood."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from sklearn_bnp import DPMixtureVB, GaussianObservation
from sklearn_bnp.engine.edits import union_row
from sklearn_bnp.engine.statistics import StatBag
from tests.reference import mixtures, partitions
from tests.reference.families import NormalWishart

from .families import ALLOCATIONS, FAMILIES, FINITE
from .harness import estimator, features_of, given, one_hot, quiet_fit, random_resp, totals_of


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_objective_summed_by_hand(family, allocation, weighted):
    """From totals, and row by row with every variational factor explicit: the same three terms."""
    rng = np.random.default_rng(1)
    X, _ = family.rows(rng, 40, spread=2.0)
    resp = random_resp(rng, 40, 4)
    weight = rng.gamma(1.0, size=40) if weighted else None
    g = given(family, X, resp, weight, allocation)
    expected = mixtures.elbo_terms(g.twin, allocation.twin(4), g.z, resp[:, g.order], weight)
    assert sorted(g.estimator.elbo_terms_) == sorted(expected)
    for name, value in expected.items():
        assert_allclose(g.estimator.elbo_terms_[name], value, rtol=1e-10, atol=1e-10)
        assert_allclose(g.model.elbo_terms(g.totals)[name], value, rtol=1e-10, atol=1e-10)
    assert_allclose(g.estimator.lower_bound_, sum(expected.values()), rtol=1e-10)


@pytest.mark.parametrize("n_nonzero", [1, 2, None])
def test_objective_of_a_local_step(family, n_nonzero):
    """Totals that a local step leaves, sparse or not, have the objective of its responsibilities."""
    rng = np.random.default_rng(2)
    X, _ = family.rows(rng, 40, spread=2.0)
    g = given(family, X, random_resp(rng, 40, 4))
    s, entropy = np.empty_like(g.s), np.empty(4)
    resp = g.model.likelihood.local_step(
        g.model.coefficients(g.totals), g.z, None, None, s, entropy, n_nonzero=n_nonzero
    )
    bag = StatBag(np.arange(4), s, entropy)
    resp = resp[:, np.argsort(-bag.n, kind="stable")]
    expected = mixtures.elbo(g.twin, ALLOCATIONS[0].twin(4), g.z, resp)
    assert_allclose(g.model.elbo(bag), expected, rtol=1e-10)


# ---------------------------------------------------------------------- exact log p(x)

N = 6  # rows; they have Bell(6) = 203 partitions
# Rounding of values of size 100.
SLACK = 1e-9


def exact(g, allocation, n_components, *, ridge):
    """``log p(x)`` under the model of a `Given`, with the ridge in each row or with none."""
    twin = g.twin
    if not ridge and hasattr(twin, "ridge"):
        twin.ridge = 0.0 * twin.ridge
    prior = allocation.twin(n_components).at(g.s[g.order, -1])
    return partitions.log_marginal(twin, prior, g.z)


@pytest.mark.quarter
@pytest.mark.parametrize("kind", ["soft", "hard", "fitted"])
def test_below_the_exact_marginal_likelihood(family, allocation, kind):
    """``ELBO <= log p(x with ridge) <= log p(x)``, under the prior that empirical Bayes ended with."""
    rng = np.random.default_rng(3)
    X, labels = family.rows(rng, N)
    resp = {"soft": random_resp(rng, N, 3), "hard": one_hot(labels)}.get(kind)
    if kind == "fitted":
        start = estimator(family, allocation, init_params=one_hot(labels), proposals=None)
        resp = quiet_fit(start.set_params(max_iter=20), X).predict_proba(X)
    g = given(family, X, resp, None, allocation)
    with_ridge = exact(g, allocation, 3, ridge=True)
    assert g.estimator.lower_bound_ <= with_ridge + SLACK
    assert with_ridge <= exact(g, allocation, 3, ridge=False) + SLACK


def test_below_it_after_proposals(leading_family, allocation):
    """The same for whatever the search ends with."""
    family = leading_family
    rng = np.random.default_rng(4)
    X, _ = family.rows(rng, 7)
    fitted = quiet_fit(estimator(family, allocation, random_state=0, max_iter=30), X)
    totals, model = totals_of(fitted)
    z, twin = model.likelihood.prepare(X), family.twin(model.likelihood, model.prior)
    prior = allocation.twin(len(totals.uids)).at(-np.sort(-totals.n))
    assert fitted.lower_bound_ <= partitions.log_marginal(twin, prior, z) + SLACK


@pytest.mark.parametrize("allocation", FINITE, ids=lambda allocation: allocation.name)
def test_hard_assignments_add_up_to_the_marginal_likelihood(family, allocation):
    """For hard responsibilities the posteriors are exact, and the bound is ``log p(x, z)``.

    So summed over all labellings of six rows by three labels it is not a bound but equal to p(x).
    """
    rng = np.random.default_rng(5)
    X, labels = family.rows(rng, 6)
    g = given(family, X, one_hot(labels, 3), None, allocation)
    every = np.array(list(itertools.product(range(3), repeat=6)))
    shares = np.eye(3)[every]  # labelling, row, component
    s = np.einsum("lnk,np->lkp", shares, g.features)
    evidence = g.model.likelihood.evidence(g.model.prior, s.reshape(-1, s.shape[2]))
    log_joint = evidence.reshape(-1, 3).sum(axis=1) + g.model.allocation.elbo(s[:, :, -1])
    assert_allclose(logsumexp(log_joint), exact(g, allocation, 3, ridge=True), rtol=1e-10)


@pytest.mark.parametrize("allocation", ALLOCATIONS, ids=lambda allocation: allocation.name)
def test_partitions_are_more_probable_than_one_labelling_of_them(allocation):
    """The allocation term at hard counts is the log probability of one labelling of the blocks."""
    rng = np.random.default_rng(6)
    X, _ = FAMILIES[0].rows(rng, 10)
    model = given(FAMILIES[0], X, np.ones((10, 1)), None, allocation).model.allocation
    for sizes in ([8], [4, 3, 1], [2, 2, 2], [1] * 8, [50, 3]):
        n = np.array(sizes, dtype=float)
        prior = allocation.twin(len(n)).at(n)
        assert model.elbo(n) <= prior.log_prior_partition(sizes) + 1e-12


@pytest.mark.parametrize("n", range(1, 9))
def test_prior_of_partitions_sums_to_one(allocation, n):
    """Of the twin: what the exact marginal likelihood rests on."""
    blocks = [[len(block) for block in p] for p in partitions.partitions(n)]
    assert len(blocks) == (1, 2, 5, 15, 52, 203, 877, 4140)[n - 1]
    prior = allocation.twin(3).at(np.array([4.0, 1.0, 1.0]))
    log_p = [prior.log_prior_partition(sizes) for sizes in blocks]
    assert_allclose(logsumexp(log_p), 0.0, atol=1e-11)


@pytest.mark.parametrize("zero_mean", [False, True], ids=["", "zero-mean"])
def test_directions_left_out_of_the_model_count(zero_mean):
    """Nearly dependent columns: the direction left out has a density, and rows are not quite in it.

    Its fixed normal density belongs to ``log p(x)``, hence to the bound of it as well as to
    `score_samples`; without its exponent the "bound" could lie above the exact value.
    """
    rng = np.random.default_rng(9)
    reg, a, b = 1e-2, *rng.standard_normal((2, 60))
    X = np.column_stack([a, a + 0.1 * b]) + 3.0
    fitted = DPMixtureVB(
        observation=GaussianObservation(zero_mean=zero_mean, reg_covar=reg), proposals=None,
        init_params=np.ones((60, 1)), max_iter=0,
    ).fit(X)  # fmt: skip
    model = totals_of(fitted)[1]
    assert model.likelihood.n_features == 1
    centred = X if zero_mean else X - X.mean(axis=0)
    scale = np.sqrt(np.mean(centred**2, axis=0) * (1.0 + reg))
    standard = centred / scale
    values, vectors = np.linalg.eigh(standard.T @ standard / 60)
    assert values[0] < reg
    out, kept = standard @ vectors[:, 0], standard @ vectors[:, 1:]
    log_out = -0.5 * np.log(2 * np.pi * reg) - 0.5 * out**2 / reg
    prior = model.prior
    twin = NormalWishart(
        prior.m, prior.kappa, prior.nu, prior.b, reg / (1 + reg), -np.log(scale).sum()
    )
    q = twin.posterior(kept, np.ones(60))
    expected = twin.log_predictive(q, kept) + log_out
    assert_allclose(fitted.score_samples(X), expected, rtol=1e-8)
    assert_allclose(
        fitted.elbo_terms_["data"], twin.evidence(kept, np.ones(60)) + log_out.sum(), rtol=1e-8
    )


# ---------------------------------------------------------------------- unions


def test_entropy_of_a_union_unseen_is_a_lower_bound():
    """``H_union >= max(0, sum H_k - N log M)``, so the objective of a stream stays a bound."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        K, n = rng.integers(2, 6), rng.integers(1, 30)
        resp = rng.dirichlet(np.full(K + 1, rng.choice([0.05, 0.5, 5.0])), size=n)
        weight = rng.gamma(0.5, size=n)
        s = (weight[:, np.newaxis] * resp).sum(axis=0)[:, np.newaxis]
        bag = StatBag(np.arange(K + 1), s, mixtures.entropies(resp, weight))
        removed = tuple(range(K))
        (true,) = mixtures.union_entropies(resp, weight, [removed])
        row = union_row(bag, removed, (99,))
        assert 0.0 <= row.entropy[0] <= true + 1e-12
        assert_allclose(row.s, s[:K].sum(axis=0, keepdims=True), rtol=1e-14)
        assert row.uids.tolist() == [99]
        assert union_row(bag, removed, (99,), true).entropy[0] == true


def test_merge_changes_the_objective_by_what_the_formulas_say(family, allocation):
    """``L(merged) - L`` from totals is that of responsibilities merged by hand (4.1)-(4.9)."""
    rng = np.random.default_rng(8)
    X, _ = family.rows(rng, 60, spread=2.0)
    resp = random_resp(rng, 60, 4)
    g = given(family, X, resp, None, allocation)
    (entropy,) = mixtures.union_entropies(resp, None, [(1, 3)])
    merged = g.totals.replaced((1, 3), union_row(g.totals, (1, 3), (9,), entropy))
    by_hand = np.column_stack([resp[:, 0], resp[:, 2], resp[:, 1] + resp[:, 3]])
    by_hand = by_hand[:, np.argsort(-by_hand.sum(axis=0))]
    expected = mixtures.elbo(g.twin, allocation.twin(3), g.z, by_hand)
    assert_allclose(g.model.elbo(merged), expected, rtol=1e-10)
    features = features_of(g.model.likelihood, g.z)
    assert_allclose(merged.s.sum(axis=0), features.sum(axis=0), rtol=1e-9, atol=1e-9)
