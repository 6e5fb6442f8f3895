"""Student densities of rows that are left out, against scipy.stats and posteriors without the row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from sklearn_bnp._kernels._student import student_columns_without, student_without

LEAST = 0.01


def problem(seed, n, K, D):
    """Rows (n, D), shares (n, K), and scales (K, D, D) and means (K, D) of the components they make."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, D)) * np.linspace(0.5, 3.0, D)
    shares = np.ascontiguousarray(rng.dirichlet(np.full(K, 0.3), size=n))
    shares[shares < LEAST] = 0.0
    return z, shares


def posterior(z, weight, kappa0, b0, linear):
    """Count, mean and scale (D, D) of a component of weighted rows, whose prior mean is 0."""
    n = weight.sum()
    scatter = b0 + (weight[:, None] * z).T @ z
    if not linear:
        return n, np.zeros(z.shape[1]), scatter
    mean = weight @ z / (kappa0 + n)
    return n, mean, scatter - (kappa0 + n) * np.outer(mean, mean)


def student(x, n, mean, b, dof, kappa0, linear):
    factor = (kappa0 + n + 1.0) / (kappa0 + n) if linear else 1.0
    return stats.multivariate_t(mean, b * factor / dof, dof).logpdf(x)


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize(("n", "K", "D"), [(1, 1, 1), (30, 3, 2), (70, 9, 5)])
def test_one_scale_matrix(n, K, D, linear):
    z, shares = problem(n, n, K, D)
    dof0, kappa0, b0 = 3.5, 0.2, np.eye(D)
    square, log_det, count, expected = np.empty((n, K)), np.empty(K), np.empty(K), np.empty((n, K))
    for k in range(K):
        count[k], mean, b = posterior(z, shares[:, k], kappa0, b0, linear)
        square[:, k] = np.einsum("ni,ij,nj->n", z - mean, np.linalg.inv(b), z - mean)
        log_det[k] = np.linalg.slogdet(b)[1]
        for i in range(n):
            others = np.where(np.arange(n) == i, 0.0, shares[:, k])
            m, mean, b = posterior(z, others, kappa0, b0, linear)
            expected[i, k] = student(z[i], m, mean, b, dof0 + m, kappa0, linear)
    out = np.full((n, K), np.nan)
    student_without(square, shares, count, D, 1, dof0, kappa0, linear, LEAST, out)
    out -= 0.5 * (log_det + D * np.log(np.pi))
    assert_allclose(out, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize(("n", "K", "D"), [(1, 1, 1), (20, 2, 7), (25, 3, 8), (12, 2, 41)])
def test_scales_of_columns(n, K, D, linear):
    """Fewer columns than lanes, exactly as many, and several products' worth."""
    z, shares = problem(n + D, n, K, D)
    dof0, kappa0 = 2.5, 0.2
    means = np.zeros((K, D))
    scales = np.empty((K, D))
    count = np.empty(K)
    expected = np.zeros((n, K))
    for k in range(K):
        for d in range(D):
            x = z[:, d : d + 1]
            count[k], mean, b = posterior(x, shares[:, k], kappa0, np.eye(1), linear)
            means[k, d], scales[k, d] = mean[0], b[0, 0]
            for i in range(n):
                others = np.where(np.arange(n) == i, 0.0, shares[:, k])
                m, mean, b = posterior(x, others, kappa0, np.eye(1), linear)
                expected[i, k] += student(x[i], m, mean, b, dof0 + m, kappa0, linear)
    out = np.full((n, K), np.nan)
    given = z, means, 1.0 / scales, shares, count, dof0, kappa0, linear, LEAST
    student_columns_without(*given, out)
    out -= 0.5 * (np.log(scales).sum(axis=1) + D * np.log(np.pi))
    assert_allclose(out, expected, rtol=1e-9, atol=1e-9)


def test_rows_that_fill_a_component_stay_finite():
    """Rounding may say that a row is all of a component, or more: the density is low, but finite."""
    square, shares = np.array([[1.0 + 1e-12, 5.0]]), np.ones((1, 2))
    out = np.empty((1, 2))
    student_without(square, shares, np.ones(2), 2, 1, 3.0, 1e-100, True, LEAST, out)
    assert np.isfinite(out).all()


def test_far_columns_do_not_overflow():
    x, out = np.full((1, 40), 1e7), np.empty((1, 1))
    given = np.zeros((1, 40)), np.full((1, 40), 1e60), np.zeros((1, 1)), np.ones(1)
    student_columns_without(x, *given, 3.0, 0.1, True, LEAST, out)
    assert np.isfinite(out).all()


def test_no_rows():
    out = np.empty((0, 2))
    student_without(np.empty((0, 2)), out, np.ones(2), 3, 1, 3.0, 0.1, True, LEAST, out)
    one = np.full((2, 1), np.nan)
    nothing = np.empty((1, 0))
    student_columns_without(
        np.empty((2, 0)), nothing, nothing, np.ones((2, 1)), np.ones(1), 3.0, 0.1, True, LEAST, one
    )
    assert_array_equal(one, 0.0)
