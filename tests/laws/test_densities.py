"""Densities agree with scipy.stats, in the data's units, and integrate to one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import betaln, comb, gammaln, logsumexp

from sklearn_bnp import DPMixtureVB, GaussianObservation
from tests.reference.autoregressive import MatrixNormalWishart
from tests.reference.categories import DirichletCategories, SideBySide
from tests.reference.families import (
    BetaBernoulli,
    DirichletMultinomial,
    NormalGamma,
    NormalWishart,
)
from tests.reference.known_noise import GammaPoisson, KnownVariance
from tests.reference.missing import ByColumn, SharedPrecision
from tests.reference.overdispersed import BetaNegativeBinomial

from .families import FAMILIES
from .harness import given, one_hot, random_resp

BERNOULLI = [family for family in FAMILIES if family.rows.__name__ == "switches"]


def scipy_log_predictive(twin, q, z):
    """Predictive density of rows, by scipy.stats, for a posterior ``q``."""
    if isinstance(twin, BetaBernoulli):
        return sum(
            stats.betabinom(1, a, b).logpmf(column)
            for a, b, column in zip(q.a, q.b, z.T, strict=True)
        )
    if isinstance(twin, DirichletMultinomial):
        # one type after the other, of the tokens that are left; less the number of their orders
        left, others, out = z.sum(axis=1), q.sum(), 0.0
        for a, x in zip(q[:-1], z.T[:-1], strict=True):
            others = others - a
            out = out + stats.betabinom(left, a, others).logpmf(x) - np.log(comb(left, x))
            left = left - x
        return out
    if isinstance(twin, DirichletCategories):
        columns = zip(q, twin.columns(z), strict=True)
        return sum(np.log(x @ (lam / lam.sum())) for lam, x in columns)
    if isinstance(twin, SideBySide):
        parts = zip(twin.parts(z), q, strict=True)
        return sum(scipy_log_predictive(own, own_q, x) for (own, x), own_q in parts)
    if isinstance(twin, ByColumn):
        out = np.zeros(len(z))
        for (own, shown, x), own_q in zip(twin.seen(z), q, strict=True):
            out[shown] += scipy_log_predictive(own, own_q, x)
        return out
    if isinstance(twin, SharedPrecision):
        out = np.zeros(len(z))
        for i, row in enumerate(z):
            seen, dof, location, shape = twin.student(q, row)
            if seen.any():
                out[i] = _multivariate_t(dof, location, shape).logpdf(row[seen])
            out[i] += twin.log_volumes[seen].sum()
        return out
    if isinstance(twin, GammaPoisson):
        counts = stats.nbinom(q.a, q.b / (q.b + 1.0)).logpmf(z)
        return np.sum(counts + gammaln(z + 1.0), axis=1)
    if isinstance(twin, BetaNegativeBinomial):
        # the mean of the probability over p; a closed form of scipy.stats is for whole sizes only
        beta = betaln(q.a + z, q.b + twin.r) - betaln(q.a, q.b)
        return np.sum(beta + gammaln(twin.r + z) - gammaln(twin.r), axis=1)
    if isinstance(twin, KnownVariance):
        rows = stats.multivariate_normal(q.m, np.diag(twin.variance + q.spread))
        return np.atleast_1d(rows.logpdf(z)) + twin.log_volume
    if isinstance(twin, MatrixNormalWishart):
        rows = zip(*twin.split(z), strict=True)
        densities = (_multivariate_t(*twin.student(q, x)).logpdf(y) for x, y in rows)
        return np.fromiter(densities, float) + twin.log_volume
    dof, location, shape = twin.student(q)
    if isinstance(twin, NormalWishart):
        out = _multivariate_t(dof, location, shape).logpdf(z)
    elif twin.size == 1:
        out = stats.t(dof, location, np.sqrt(shape)).logpdf(z).sum(axis=1)
    else:
        out = _multivariate_t(dof, location, shape[0] * np.eye(twin.D)).logpdf(z)
    return np.atleast_1d(out) + twin.log_volume


def _multivariate_t(dof, location, shape):
    return stats.multivariate_t(location, shape, dof)


def ridge_cost(twin, q, z):
    """The most that the ridge, and the cells of rows z, can take from a row's predictive density.

    ``(nu + 1) / 2 [log |B + R + c v v'| - log |B + c v v'|] <= (nu + 1) / 2 tr(inv(B) R)``.
    """
    if isinstance(twin, (NormalWishart, MatrixNormalWishart, NormalGamma)):
        ridge = twin.ridge + (twin.blur(z).max(axis=0) if hasattr(twin, "blur") else 0.0)
    if isinstance(twin, (NormalWishart, MatrixNormalWishart)):
        return 0.5 * (q.nu + 1) * np.trace(np.linalg.solve(q.b, np.diag(ridge)))
    if isinstance(twin, NormalGamma):
        ridge = ridge.reshape(-1, twin.size).sum(axis=1)
        return np.sum((q.shape + 0.5 * twin.size) * 0.5 * ridge / q.rate)
    if isinstance(twin, (ByColumn, SideBySide)):
        parts = twin.parts(z) if isinstance(twin, SideBySide) else zip(twin.twins, z.T, strict=True)
        each = zip(parts, q, strict=True)
        return sum(ridge_cost(own, own_q, x.reshape(len(z), -1)) for (own, x), own_q in each)
    if isinstance(twin, SharedPrecision):
        return (q.shape + 0.5 * twin.D) * 0.5 * twin.ridge.sum() / q.rate
    if isinstance(twin, KnownVariance):
        return 0.5 * np.sum(twin.ridge / twin.variance)
    return 0.0


def test_posterior_predictive(family):
    """`log_predictive` of each component is scipy's, with no ridge on the new row."""
    rng = np.random.default_rng(1)
    X, _ = family.rows(rng, 40, spread=2.0)
    g = given(family, X, random_resp(rng, 40, 3))
    new, _ = family.rows(rng, 25, spread=3.0)
    z = g.model.likelihood.prepare(new)
    actual = g.model.likelihood.log_predictive(g.model.prior, g.s, z)
    for k, r in enumerate(g.resp.T):
        q = g.twin.posterior(g.z, r)
        expected = scipy_log_predictive(g.twin, q, z)
        assert_allclose(actual[:, k], expected, rtol=1e-9, atol=1e-9)
        assert_allclose(g.twin.log_predictive(q, z), expected, rtol=1e-9, atol=1e-9)


def test_prior_predictive(family):
    """Without any data the predictive density is the prior's, and evidence of one row is it."""
    rng = np.random.default_rng(2)
    X, _ = family.rows(rng, 30)
    g = given(family, X, np.ones((30, 1)))
    likelihood, prior = g.model.likelihood, g.model.prior
    nothing = np.zeros((1, likelihood.n_statistics))
    assert_allclose(likelihood.evidence(prior, nothing), 0.0, atol=1e-12)
    expected = scipy_log_predictive(g.twin, g.twin.prior, g.z)
    actual = likelihood.log_predictive(prior, nothing, g.z)[:, 0]
    assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)
    shortfall = expected - likelihood.evidence(prior, g.features)
    assert np.all(shortfall >= -1e-9)
    assert np.all(shortfall <= ridge_cost(g.twin, g.twin.prior, g.z) + 1e-9)


def test_chain_rule(family):
    """Evidence of all rows is the product of predictive densities, less what the ridge takes."""
    rng = np.random.default_rng(3)
    X, _ = family.rows(rng, 30)
    g = given(family, X, np.ones((30, 1)))
    likelihood, prior = g.model.likelihood, g.model.prior
    running = np.cumsum(g.features, axis=0)
    gains = np.diff(likelihood.evidence(prior, running))
    for i, gain in enumerate(gains):
        q = g.twin.posterior(g.z[: i + 1], np.ones(i + 1))
        shortfall = scipy_log_predictive(g.twin, q, g.z[i + 1 : i + 2])[0] - gain
        assert -1e-9 <= shortfall <= ridge_cost(g.twin, q, g.z[i + 1 : i + 2]) + 1e-9


@pytest.mark.parametrize("family", BERNOULLI, ids=lambda family: family.name)
def test_evidence_of_binary_columns(family):
    """Of each column, that of a beta-binomial variable, but for the order of the ones."""
    rng = np.random.default_rng(4)
    X, _ = family.rows(rng, 35)
    g = given(family, X, np.ones((35, 1)))
    n_ones = X.sum(axis=0)
    columns = zip(n_ones, g.twin.prior.a, g.twin.prior.b, strict=True)
    expected = sum(
        stats.betabinom(35, a, b).logpmf(ones) - np.log(comb(35, ones)) for ones, a, b in columns
    )
    assert_allclose(g.model.likelihood.evidence(g.model.prior, g.s)[0], expected, rtol=1e-10)


# ---------------------------------------------------------------------- priors set by the user

D = 3
USER_PRIORS = {
    "full": np.diag([2.0, 300.0, 0.01]) + 0.05,
    "diag": np.array([2.0, 300.0, 0.01]),
    "spherical": 2.5,
}


def user_twin(X, covariance_type, zero_mean):
    """Estimator's prior and its twin, both in the data's own units.

    The ridge is reg_covar times the variance of each column (about the origin for zero means), and for
    spherical covariances times the geometric mean of these.
    """
    mean, reg = np.array([6.0, -250.0, 0.0]), 1e-3
    variance = np.mean((X if zero_mean else X - X.mean(axis=0)) ** 2, axis=0)
    if covariance_type == "spherical":
        variance = np.full(D, np.exp(np.mean(np.log(variance))))
    b, m = USER_PRIORS[covariance_type], None if zero_mean else mean
    observation = GaussianObservation(
        covariance_type, zero_mean=zero_mean, mean_prior=mean, mean_precision_prior=0.3,
        degrees_of_freedom_prior=5.5, covariance_prior=b, reg_covar=reg,
    )  # fmt: skip
    if covariance_type == "full":
        return observation, NormalWishart(m, 0.3, 5.5, b, reg * variance)
    size = 1 if covariance_type == "diag" else D
    return observation, NormalGamma(m, 0.3, 5.5, b, reg * variance, D, size)


@pytest.fixture(params=[False, True], ids=["", "zero-mean"])
def zero_mean(request):
    return request.param


@pytest.mark.parametrize("covariance_type", sorted(USER_PRIORS))
def test_units_of_the_data(covariance_type, zero_mean):
    """Evidence, density and attributes, for priors and rows that nobody has standardised."""
    rng = np.random.default_rng(5)
    X, _ = FAMILIES[0].rows(rng, 60)
    resp = random_resp(rng, 60, 2)
    resp = resp[:, np.argsort(-resp.sum(axis=0))]
    observation, twin = user_twin(X, covariance_type, zero_mean)
    model = DPMixtureVB(observation=observation, init_params=resp, max_iter=0, proposals=None).fit(
        X
    )
    posteriors = [twin.posterior(X, r) for r in resp.T]
    evidence = sum(twin.evidence(X, r) for r in resp.T)
    assert_allclose(model.elbo_terms_["data"], evidence, rtol=1e-10)
    new = X[rng.permutation(60)[:20]] + rng.standard_normal((20, D)) * X.std(axis=0)
    each = np.column_stack([scipy_log_predictive(twin, q, new) for q in posteriors])
    expected = logsumexp(each + np.log(model.weights_), axis=1)
    assert_allclose(model.score_samples(new), expected, rtol=1e-8, atol=1e-8)
    for k, q in enumerate(posteriors):
        if covariance_type == "full":
            precision = twin.expected_precision(q)
        else:
            precision = q.shape / q.rate if covariance_type == "diag" else q.shape / q.rate[0]
        assert_allclose(model.precisions_[k], precision, rtol=1e-8)
        assert_allclose(model.means_[k], 0.0 if zero_mean else q.m, rtol=1e-10, atol=1e-12)


def test_score_samples_is_a_mixture_of_predictive_densities(family, allocation):
    rng = np.random.default_rng(6)
    X, _ = family.rows(rng, 50, spread=2.0)
    g = given(family, X, random_resp(rng, 50, 3), None, allocation)
    each = np.column_stack(
        [scipy_log_predictive(g.twin, g.twin.posterior(g.z, r), g.z) for r in g.resp.T]
    )
    weights = np.empty(3)
    weights[g.order] = allocation.twin(3).weights(np.sort(g.resp.sum(axis=0))[::-1])
    assert_allclose(g.estimator.weights_, weights, rtol=1e-10)
    expected = logsumexp(each + np.log(weights), axis=1) + g.model.likelihood.log_base(X)
    assert_allclose(g.estimator.score_samples(X), expected, rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------------- total mass


@pytest.mark.parametrize("covariance_type", sorted(USER_PRIORS))
def test_density_of_one_column_integrates_to_one(covariance_type, zero_mean):
    """Trapezoids over 100 deviations either way: Student tails of 30 degrees beyond are nothing."""
    rng = np.random.default_rng(7)
    X = np.concatenate([rng.normal(-4, 1, 40), rng.normal(3, 2, 60)])[:, np.newaxis] * 1e-3
    observation = GaussianObservation(covariance_type, zero_mean=zero_mean)
    resp = one_hot((X[:, 0] > 0).astype(int))
    model = DPMixtureVB(observation=observation, init_params=resp, max_iter=0, proposals=None)
    x = np.linspace(-100, 100, 40_001) * X.std()
    density = np.exp(model.fit(X).score_samples(x[:, np.newaxis]))
    assert_allclose(density.sum() * (x[1] - x[0]), 1.0, rtol=1e-6)


@pytest.mark.parametrize("covariance_type", sorted(USER_PRIORS))
@pytest.mark.parametrize("second", ["copy", "constant", "other"])
def test_density_of_two_columns_integrates_to_one(covariance_type, second):
    """Also if a column is constant or a multiple of another: the model then has fewer directions.

    Trapezoids of a tenth of a deviation, 12 deviations either way, along the component's axes.
    """
    rng = np.random.default_rng(8)
    a, b = rng.normal(0, 1, (2, 400))
    X = np.column_stack(
        [a, {"copy": 5.0 * a, "constant": np.full(400, 3.0), "other": 0.7 * a + b}[second]]
    )
    observation = GaussianObservation(covariance_type, reg_covar=1e-4)
    model = DPMixtureVB(
        observation=observation, proposals=None, init_params=np.ones((400, 1)), max_iter=0
    ).fit(X)
    covariance = model.covariances_[0]
    values, vectors = np.linalg.eigh(
        covariance if covariance_type == "full" else covariance * np.eye(2)
    )
    axis = np.linspace(-12, 12, 241)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2) * np.sqrt(values)
    density = np.exp(model.score_samples(model.means_[0] + grid @ vectors.T))
    cell = (axis[1] - axis[0]) ** 2 * np.sqrt(values.prod())
    assert_allclose(density.sum() * cell, 1.0, rtol=1e-6)


@pytest.mark.parametrize("family", BERNOULLI, ids=lambda family: family.name)
def test_masses_of_all_binary_rows_sum_to_one(family):
    rng = np.random.default_rng(9)
    X, labels = family.rows(rng, 40)
    model = given(family, X, one_hot(labels)).estimator
    every = (np.arange(2**12)[:, np.newaxis] >> np.arange(12)) & 1
    assert_allclose(np.exp(model.score_samples(every.astype(float))).sum(), 1.0, rtol=1e-10)
