"""Kernels of counts against SciPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma, gammaln

from sklearn_bnp._kernels._counts import (
    digamma_rows,
    exp_digamma_table,
    log_gamma_sums,
    log_rises,
    pair_log_gamma_sums,
)

# One type; fewer than lanes of a vector; around tiles of 256 and 512 types; several of them.
SIZES = [1, 7, 8, 255, 257, 511, 512, 513, 1500]


def problem(V, K=6, seed=0, extra=1, zeros=0.5):
    """Statistics (K, V + extra) of 1e-12 to 1e9 tokens with zeros, and pseudo-counts from 1e-3 on."""
    rng = np.random.default_rng(seed)
    s = np.exp(rng.uniform(np.log(1e-12), np.log(1e9), size=(K, V + extra)))
    s *= rng.random(s.shape) >= zeros
    lam = np.exp(rng.uniform(np.log(1e-3), np.log(10.0), size=V))
    s.setflags(write=False)
    lam.setflags(write=False)
    return s, lam


def pairs(K):
    first, second = np.triu_indices(K, 1)
    return first.astype(np.intp), second.astype(np.intp)


def rises(s, lam, n_threads=1):
    out = np.full(len(s), np.nan)
    log_gamma_sums(s, lam, out, n_threads)
    return out


def pair_rises(s, lam, first, second, n_threads=1):
    out = np.full(len(first), np.nan)
    pair_log_gamma_sums(s, lam, first, second, out, n_threads)
    return out


def table(s, lam, n_threads=1):
    out = np.full((len(lam), len(s)), np.nan)
    exp_digamma_table(s, lam, out, n_threads)
    return out


def logs(s, lam, n_threads=1):
    out = np.full((len(s), len(lam)), np.nan)
    digamma_rows(s, lam, out, n_threads)
    return out


def assert_sums(actual, counts, lam):
    """To 1e-12 of the sums; what is rounded of terms that may cancel (moved up by 8) is allowed for."""
    upper, lower = gammaln(lam + counts), gammaln(lam)
    sizes = np.abs(upper) + np.abs(lower) + 2.0 * gammaln(lam + counts + 8.0)
    rounding = np.finfo(float).eps * sizes.sum(axis=-1)
    expected = (upper - lower).sum(axis=-1)
    assert np.all(np.abs(actual - expected) <= 1e-12 * np.abs(expected) + rounding)


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("V", SIZES)
def test_sums(V, extra):
    s, lam = problem(V, seed=V, extra=extra)
    assert_sums(rises(s, lam), s[:, :V], lam)


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("V", SIZES)
def test_pairs(V, extra):
    s, lam = problem(V, seed=V, extra=extra)
    first, second = pairs(len(s))
    expected = (s[first] + s[second])[:, :V]
    assert_sums(pair_rises(s, lam, first, second), expected, lam)
    assert_sums(pair_rises(s, lam, second, first), expected, lam)


def test_pairs_are_unions():
    """To the last bit what the statistics of the union give: merges compare the two."""
    s, lam = problem(700)
    first, second = pairs(len(s))
    assert_array_equal(pair_rises(s, lam, first, second), rises(s[first] + s[second], lam))


def test_more_pairs_than_a_block():
    s, lam = problem(30, K=60)
    first, second = pairs(60)
    assert len(first) > 1024
    assert_sums(pair_rises(s, lam, first, second), (s[first] + s[second])[:, :30], lam)


@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 1e9, 1e29, 1e31, 1e200])
@pytest.mark.parametrize("prior", [1e-300, 1e-3, 1.0, 1e9])
def test_range(prior, size):
    s, lam = np.full((1, 20), size), np.full(20, prior)
    assert_sums(rises(s, lam), s, lam)
    if prior > 1e-300:  # psi would overflow
        assert_allclose(logs(s, lam), digamma(lam + s) - digamma((lam + s).sum()), rtol=1e-12)


def test_no_counts_add_exactly_nothing():
    _, lam = problem(1500)
    s = np.zeros((3, 1501))
    s[1, 1400] = 3.0
    out = rises(s, lam)
    assert_array_equal(out[[0, 2]], 0.0)
    assert_array_equal(pair_rises(s, lam, np.array([0]), np.array([2])), 0.0)
    assert_allclose(out[1], gammaln(lam[1400] + 3.0) - gammaln(lam[1400]), rtol=1e-13)


def test_few_tokens_among_many_types():
    """Slopes of lnGamma times the counts, which a difference of two large sums would lose."""
    lam = np.full(14_000, 0.1)
    s = np.zeros((1, 14_000))
    s[0, ::7] = 1e-6
    slope = 2000 * (1e-6 * digamma(0.1) + 0.5e-12 * 101.4332991507927)  # and half of trigamma(0.1)
    assert_allclose(rises(s, lam), slope, rtol=1e-9)


@pytest.mark.parametrize("K", [1, 7, 8, 9, 20])
@pytest.mark.parametrize("V", SIZES)
def test_expected_logs(V, K):
    s, lam = problem(V, K=K, seed=V)
    a = lam + s[:, :V]
    expected = digamma(a) - digamma(a.sum(axis=1))[:, np.newaxis]
    terms = 1.0 + np.abs(digamma(a)) + np.abs(digamma(a.sum(axis=1)))[:, np.newaxis]
    assert np.all(np.abs(logs(s, lam) - expected) <= 1e-14 * terms)
    # exp turns the absolute error of its argument into a relative one
    error = np.abs(table(s, lam).T - np.exp(expected))
    assert np.all(error <= 1e-13 * terms * np.exp(expected) + 1e-306)


def test_one_type_is_certain():
    """However small its pseudo-count, where psi is far below any logarithm of a number."""
    assert_allclose(table(np.zeros((2, 2)), np.array([1e-3])), 1.0, rtol=1e-12)
    assert_allclose(logs(np.zeros((2, 2)), np.array([1e-3])), 0.0, atol=1e-12)


def test_topics_without_counts_have_the_mean_of_the_prior():
    _, lam = problem(600)
    s = np.zeros((3, 601))
    s[1] = 1.0
    expected = np.exp(digamma(lam) - digamma(lam.sum()))
    out = table(s, lam)
    assert_array_equal(out[:, 0], out[:, 2])
    # what would underflow comes out as 1e-307, and psi(1e-3) = -1000 is rounded
    assert_allclose(out[:, 0], expected, rtol=1e-12, atol=1e-306)


def test_columns_beyond_the_types_are_left_alone():
    s, lam = problem(20)
    out = np.full((len(s), 21), 7.0)
    digamma_rows(s, lam, out, 1)
    assert_array_equal(out[:, 20], 7.0)
    assert_array_equal(out[:, :20], logs(s, lam))


@pytest.mark.parametrize("n_threads", [2, 3, 5])
def test_threads_change_no_bit(n_threads):
    s, lam = problem(1500, K=50)
    first, second = pairs(50)
    assert_array_equal(rises(s, lam, n_threads), rises(s, lam))
    assert_array_equal(
        pair_rises(s, lam, first, second, n_threads), pair_rises(s, lam, first, second)
    )
    assert_array_equal(table(s, lam, n_threads), table(s, lam))
    assert_array_equal(logs(s, lam, n_threads), logs(s, lam))


def test_nothing_to_do():
    none, lam = np.empty((0, 5)), np.ones(4)
    assert rises(none, lam).shape == (0,)
    assert table(none, lam).shape == (4, 0)
    assert logs(none, lam).shape == (0, 4)
    no_pairs = np.empty(0, dtype=np.intp)
    assert pair_rises(np.ones((3, 5)), lam, no_pairs, no_pairs).shape == (0,)


@pytest.mark.parametrize("x", [0.0, 1.0, 2.0, 7.0, 30.0, 1e4, 1e9])
def test_log_rises(x):
    """Against the logarithms of the factors where these are few, which are exact where a is large."""
    a = np.exp(np.linspace(np.log(1e-12), np.log(1e12), 1037))
    out = np.full(len(a), np.nan)
    log_rises(a, np.full(len(a), x), out)
    if x <= 30:
        expected = np.log(a[:, np.newaxis] + np.arange(x)).sum(axis=1)
        assert_allclose(out, expected, rtol=1e-13, atol=1e-13 * max(x, 1.0))
    else:
        before = gammaln(a)
        size = np.abs(before) + np.abs(gammaln(a + x))
        assert np.all(np.abs(out - (gammaln(a + x) - before)) <= 1e-14 * size)
    log_rises(a[:0], a[:0], out[:0])
