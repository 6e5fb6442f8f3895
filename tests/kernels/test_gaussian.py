"""Kernels for many small matrices against LAPACK, one matrix at a time."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg
from scipy.special import multigammaln

from sklearn_bnp._kernels._gaussian import (
    quadratic_coefficients,
    rough_scales,
    scale_matrices,
    spd_inverse,
    spd_logdet,
    wishart_log_norms,
)
from tests.reference import mixtures
from tests.reference.families import NormalWishart


def conditioned(rng, D, condition):
    """A random symmetric positive definite matrix with eigenvalues from 1 down to 1 / condition."""
    q, _ = np.linalg.qr(rng.standard_normal((D, D)))
    matrix = (q * np.geomspace(1.0, 1.0 / condition, D)) @ q.T
    return 0.5 * (matrix + matrix.T)


def upper(matrices):
    """The matrices with nan below the diagonal: nobody may read there."""
    out = np.array(matrices)
    i, j = np.tril_indices(out.shape[-1], -1)
    out[:, i, j] = np.nan
    return out


@pytest.mark.parametrize("D", [1, 2, 5, 16])
@pytest.mark.parametrize("M", [0, 1, 7])
def test_log_norms(M, D):
    rng = np.random.default_rng(M + D)
    nu, log_det = D - 1 + 10.0 ** rng.uniform(-3.0, 6.0, M), 30.0 * rng.normal(size=M)
    out = np.full(M, np.nan)
    wishart_log_norms(nu, log_det, D, out)
    constant = 0.25 * D * (D - 1) * np.log(np.pi)
    log_gamma = np.array([multigammaln(0.5 * x, D) for x in nu])
    expected = log_gamma - constant + 0.5 * nu * (D * np.log(2.0) - log_det)
    assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("D", [1, 2, 5, 16])
@pytest.mark.parametrize("M", [0, 1, 7])
@pytest.mark.parametrize("condition", [1.0, 1e6])
def test_logdet(M, D, condition):
    rng = np.random.default_rng(M + D)
    matrices = np.array([conditioned(rng, D, condition) for _ in range(M)]).reshape(M, D, D)
    out = np.full(M, np.nan)
    assert spd_logdet(upper(matrices), out) == 0
    roots = [np.diagonal(linalg.cholesky(a, lower=True)) for a in matrices]
    # Cholesky is backward stable: its error is D eps times the condition, in each of D pivots
    atol = D**2 * condition * np.finfo(float).eps
    assert_allclose(out, [2 * np.log(root).sum() for root in roots], rtol=1e-9, atol=atol)


@pytest.mark.parametrize("D", [1, 2, 5, 16])
@pytest.mark.parametrize("M", [0, 1, 7])
@pytest.mark.parametrize("condition", [1.0, 1e6])
def test_inverse(M, D, condition):
    rng = np.random.default_rng(M + D)
    matrices = np.array([conditioned(rng, D, condition) for _ in range(M)]).reshape(M, D, D)
    out, log_det = upper(matrices), np.full(M, np.nan)
    assert spd_inverse(out, log_det) == 0
    atol = D**2 * condition * np.finfo(float).eps
    assert_allclose(log_det, np.linalg.slogdet(matrices)[1], rtol=1e-9, atol=atol)
    for a, inverse in zip(matrices, out, strict=True):
        expected = linalg.cho_solve(linalg.cho_factor(a, lower=True), np.eye(D))
        assert_allclose(inverse, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
        assert_array_equal(inverse, inverse.T)


@pytest.mark.parametrize("kernel", [spd_logdet, spd_inverse])
def test_matrices_that_are_not_positive_definite(kernel):
    """They are counted and get nan; the others are not disturbed."""
    rng = np.random.default_rng(1)
    good = conditioned(rng, 3, 10.0)
    out = np.zeros(4)
    n_bad = kernel(np.array([good, -good, good, np.zeros((3, 3))]), out)
    assert n_bad == 2
    assert_array_equal(np.isnan(out), [False, True, False, True])
    assert_allclose(out[[0, 2]], np.linalg.slogdet(good)[1], rtol=1e-12)


def normal_wishart(rng, D, linear, condition=1.0):
    """A twin with a prior of its own; the ridge differs from column to column."""
    m = rng.standard_normal(D) if linear else None
    b = conditioned(rng, D, condition)
    return NormalWishart(m, 0.7, D + 1.5, b, rng.uniform(0.0, 0.1, D))


def run_scale_matrices(twin, s):
    M, D = len(s), twin.D
    m = twin.prior.m
    out, mean = np.full((M, D, D), np.nan), None if m is None else np.full((M, D), np.nan)
    kappa = 0.0 if m is None else twin.prior.kappa
    b, ridge = twin.prior.b.copy(), np.array(twin.ridge)
    for array in (s, b, ridge) if m is None else (s, b, ridge, m):
        array.setflags(write=False)
    scale_matrices(s, b, ridge, m, kappa, out, mean)
    return out, mean


@pytest.mark.parametrize("linear", [True, False], ids=["", "zero-mean"])
@pytest.mark.parametrize("D", [1, 2, 5])
@pytest.mark.parametrize("M", [0, 1, 4])
def test_scale_matrices(M, D, linear):
    """From statistics, what the twin finds from the rows; of empty components, the prior."""
    rng = np.random.default_rng(D + M)
    twin = normal_wishart(rng, D, linear)
    z, shares = rng.standard_normal((30, D)), rng.uniform(size=(30, M))
    shares[:, M // 2 :] *= M > 1  # the last component is empty
    s = shares.T @ mixtures.statistics(z, "FULL", linear)
    out, mean = run_scale_matrices(twin, s)
    for k in range(M):
        q = twin.posterior(z, shares[:, k])
        i, j = np.triu_indices(D)
        assert_allclose(out[k][i, j], q.b[i, j], rtol=1e-12, atol=1e-12)
        if linear:
            assert_allclose(mean[k], q.m, rtol=1e-13)
    i, j = np.tril_indices(D, -1)
    assert np.isnan(out[:, i, j]).all()  # the lower triangle is not touched


@pytest.mark.parametrize("linear", [True, False], ids=["", "zero-mean"])
@pytest.mark.parametrize("D", [0, 1, 2, 5])
def test_rough_scales(D, linear):
    """Components are marked whose sums of squares are too large for the least diagonal entry."""
    rng = np.random.default_rng(D)
    prior, ridge = np.diag(rng.uniform(1.0, 2.0, D)), rng.uniform(0.1, 0.2, D)
    s = mixtures.statistics(rng.standard_normal((6, D)), "FULL", linear)
    i, j = np.triu_indices(D)
    s[:, : len(i)] *= 10.0 ** np.arange(6)[:, np.newaxis]
    squares = s[:, : len(i)][:, i == j]
    expected = [
        D > 0 and min(np.diag(prior) + s[k, -1] * ridge) < 1e-3 * max(squares[k]) for k in range(6)
    ]
    assert D == 0 or 0 < sum(expected) < 6
    found = np.full(6, 7, dtype=np.uint8)
    assert rough_scales(np.ascontiguousarray(s), prior, ridge, 1e-3, found) == sum(expected)
    assert_array_equal(found, expected)


@pytest.mark.parametrize("linear", [True, False], ids=["", "zero-mean"])
@pytest.mark.parametrize("D", [1, 2, 5])
@pytest.mark.parametrize("M", [0, 1, 4])
def test_quadratic_coefficients(M, D, linear):
    """``c . s(x)`` is the quadratic form, and the last column is added to."""
    rng = np.random.default_rng(D + M)
    precision = np.array([conditioned(rng, D, 3.0) for _ in range(M)]).reshape(M, D, D)
    mean = rng.standard_normal((M, D)) if linear else None
    ridge = rng.uniform(size=D)
    z = rng.standard_normal((20, D))
    out = np.full((M, mixtures.n_statistics(D, "FULL", linear)), np.nan)
    out[:, -1] = 3.0
    for array in (precision, ridge):
        array.setflags(write=False)
    quadratic_coefficients(precision, mean, ridge, out)
    values = mixtures.statistics(z, "FULL", linear) @ out.T
    for k in range(M):
        y = z if mean is None else z - mean[k]
        form = np.einsum("ni,ij,nj->n", y, precision[k], y)
        expected = 3.0 - 0.5 * form - 0.5 * np.trace(precision[k] * np.diag(ridge))
        assert_allclose(values[:, k], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("offset", [None, 0.0, 0.5], ids=["zero-mean", "centred", "offset"])
@pytest.mark.parametrize("D", [2, 8, 25])
def test_precision_at_condition_1e6(D, offset):
    """Statistics -> scale matrix -> inverse -> coefficients -> log weights of the rows.

    Against the twin, which centres the rows and solves triangular systems: errors at most 1e-9 of
    the largest value, with covariances of condition 1e6, rows in standard units as `prepare` makes
    them, and means as far from the origin as a component lies that has most of the variance itself.
    """
    rng = np.random.default_rng(D)
    linear = offset is not None
    m = (offset or 0.0) * rng.standard_normal(D)
    b = 1e-6 * np.eye(D)
    twin = NormalWishart(m if linear else None, 0.01, D + 2.0, b, np.zeros(D))
    root = linalg.cholesky(conditioned(rng, D, 1e6), lower=True)
    z = rng.standard_normal((50 * D, D)) @ root.T + m
    features = mixtures.statistics(z, "FULL", linear)
    out, mean = run_scale_matrices(twin, features.sum(axis=0)[np.newaxis])
    log_det = np.empty(1)
    assert spd_inverse(out, log_det) == 0
    q = twin.posterior(z, np.ones(len(z)))
    assert np.linalg.cond(q.b) > 1e5
    assert_allclose(log_det[0], np.linalg.slogdet(q.b)[1], rtol=1e-9)
    coef = np.zeros((1, features.shape[1]))
    quadratic_coefficients(q.nu * out, mean, np.zeros(D), coef)
    coef[0, -1] += 0.5 * (twin.expected_log_det(q) - D * np.log(2 * np.pi))
    if linear:
        coef[0, -1] -= 0.5 * D / q.kappa
    expected = twin.expected_log_lik(q, z)
    assert np.abs(features @ coef[0] - expected).max() <= 1e-9 * np.abs(expected).max()
