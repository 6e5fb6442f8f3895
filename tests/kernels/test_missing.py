"""Kernels of rows with missing entries against conditional moments, row by row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_bnp._kernels._missing import complete_rows, missing_sums, missing_table
from sklearn_bnp.likelihood.full_gaussian_missing import patterns_of
from tests.reference import completion


def problem(D, n, K, seed=0):
    """Rows with missing entries in order of their patterns, and forms ``c + b . x - x' a x / 2``."""
    rng = np.random.default_rng(seed)
    z = 2.0 * rng.standard_normal((n, D))
    z[rng.random(z.shape) < 0.4] = np.nan
    rows = patterns_of(z)
    root = rng.standard_normal((K, D, D + 2))
    a = root @ root.transpose(0, 2, 1) / D
    b, c = rng.standard_normal((K, D)), rng.standard_normal(K)
    ridge, each = rng.random(D) * 0.01, rng.standard_normal(D)
    ordered = np.ascontiguousarray(z[rows.order])
    for array in (ordered, a, b, c, ridge, each):
        array.setflags(write=False)
    return ordered, rows, a, b, c, ridge, each


@pytest.mark.parametrize(("D", "K"), [(2, 3), (3, 8), (8, 1), (8, 19), (21, 3)])
@pytest.mark.parametrize("n", [0, 1, 200])
def test_log_weights(D, K, n):
    z, rows, a, b, c, _, _ = problem(D, n, K)
    fix = np.random.default_rng(1).standard_normal((K, D))
    out = np.empty((len(z), K))
    missing_table(z, rows.starts, rows.missing, a, b, c, fix, out)
    expected = np.empty_like(out)
    for i, row in enumerate(z):
        missing = np.isnan(row)
        for k in range(K):
            value = completion.conditional(a[k], b[k], c[k], row).log_weight
            # the integral has its 2 pi, which the kernel's caller puts into ``fix``
            expected[i, k] = value + (fix[k, missing] - 0.5 * np.log(2 * np.pi)).sum()
    assert_allclose(out, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("D", "K"), [(2, 3), (3, 8), (8, 1), (8, 19), (21, 3)])
@pytest.mark.parametrize("linear", [True, False])
def test_sums(D, K, linear):
    """Of shares some of which are 0, added to what is there."""
    z, rows, a, b, _, ridge, each = problem(D, 100, K)
    b = b if linear else np.zeros_like(b)
    rng, n_packed = np.random.default_rng(2), D * (D + 1) // 2
    shares = rng.random((len(z), K)) * (rng.random((len(z), K)) < 0.5)
    s = np.ones((K, n_packed + (D if linear else 0) + 3))
    missing_sums(z, rows.starts, rows.missing, shares, a, b, ridge, each, linear, s)
    expected = np.ones_like(s)
    for i, row in enumerate(z):
        for k in range(K):
            x, square, entropy = completion.moments(a[k], b[k], row)
            missing = np.isnan(row)
            square[missing, missing] -= ridge[missing]
            parts = [square[np.triu_indices(D)], x if linear else []]
            expected[k] += shares[i, k] * np.concatenate(
                [*parts, [1, entropy - each[missing].sum(), 1]]
            )
    assert_allclose(s, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [1.0, 1e-40])
def test_sums_are_without_hopeless_shares(size):
    """Those are left out that do not show beside the row's largest one, however small that is."""
    z, rows, a, b, _, ridge, each = problem(4, 60, 10)
    shares = size * np.random.default_rng(4).random((len(z), 10))
    hopeless = np.random.default_rng(5).random(shares.shape) < 0.7
    hopeless[np.arange(len(z)), shares.argmax(axis=1)] = False
    found, expected = np.zeros((10, 17)), np.zeros((10, 17))
    fixed = (a, b, ridge, each, True)
    given = np.where(hopeless, 1e-17 * shares, shares)
    missing_sums(z, rows.starts, rows.missing, given, *fixed, found)
    missing_sums(z, rows.starts, rows.missing, np.where(hopeless, 0.0, shares), *fixed, expected)
    assert np.array_equal(found, expected)
    assert (expected[:, -1] > 0).all()


def test_completed_rows():
    z, rows, a, b, _, ridge, each = problem(5, 60, 1)
    G, x = len(rows.missing), np.empty(z.shape)
    spread, entropy = np.full((G, 15), np.nan), np.empty(G)
    complete_rows(z, rows.starts, rows.missing, a[0], b[0], ridge, each, x, spread, entropy)
    pattern = np.repeat(np.arange(G), np.diff(rows.starts))
    for i, row in enumerate(z):
        mean, square, h = completion.moments(a[0], b[0], row)
        missing = np.isnan(row)
        variance = square - np.outer(mean, mean)
        variance[missing, missing] -= ridge[missing]
        assert_allclose(x[i], mean, rtol=1e-10)
        assert_allclose(spread[pattern[i]], variance[np.triu_indices(5)], atol=1e-10)
        assert_allclose(entropy[pattern[i]], h - each[missing].sum(), rtol=1e-10)


@pytest.mark.parametrize("D", [3, 11, 20, 40, 70])
def test_patterns(D):
    """Whole rows, blank ones, and the others by what they lack; nothing is lost."""
    rng = np.random.default_rng(3)
    z = rng.standard_normal((300, D))
    z[rng.random(z.shape) < 0.3] = np.nan
    z[[4, 9]], z[[5, 8]] = np.nan, 1.0
    z[100:200] = z[200:]  # patterns of many columns come twice as well
    rows = patterns_of(z)
    assert {4, 9} <= set(rows.blank) and {5, 8} <= set(rows.whole)
    together = np.concatenate([rows.whole, rows.blank, rows.order])
    assert sorted(together.tolist()) == list(range(300))
    pattern = np.repeat(rows.missing, np.diff(rows.starts), axis=0)
    assert np.array_equal(np.isnan(z[rows.order]), pattern.astype(bool))
    assert len({tuple(h) for h in rows.missing.tolist()}) == len(rows.missing)


def test_forms_that_have_no_integral():
    """They answer nan, and harm nobody else."""
    z, rows, a, b, c, _, _ = problem(4, 50, 3)
    a = a.copy()
    a[1] = -np.eye(4)
    out = np.empty((len(z), 3))
    missing_table(z, rows.starts, rows.missing, a, b, c, np.zeros((3, 4)), out)
    assert np.isnan(out[:, 1]).all()
    assert np.isfinite(out[:, [0, 2]]).all()
