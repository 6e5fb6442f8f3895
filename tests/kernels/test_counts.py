"""Sums of log Gamma against SciPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln

from sklearn_bnp._kernels._counts import log_gamma_sums, pair_log_gamma_sums


def problem(K, V, rng, extra=1):
    """Statistics with one column more than types, most of them zero."""
    s = rng.gamma(0.2, 50.0, size=(K, V + extra)) * (rng.random((K, V + extra)) < 0.3)
    return s, rng.gamma(0.5, 1.0, size=V) + 1e-3


@pytest.mark.parametrize(("K", "V"), [(1, 1), (3, 7), (5, 8), (4, 1000)])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_sums(K, V, n_threads):
    s, lam = problem(K, V, np.random.default_rng(V))
    s.setflags(write=False)
    out = np.empty(K)
    log_gamma_sums(s, lam, out, n_threads)
    terms = gammaln(lam + s[:, :V])
    assert np.all(np.abs(out - terms.sum(axis=1)) <= 1e-13 * np.abs(terms).sum(axis=1) + 1e-13)


@pytest.mark.parametrize("V", [1, 9, 64, 501])
def test_pairs(V):
    s, lam = problem(6, V, np.random.default_rng(V), extra=0)
    first, second = np.triu_indices(6, 1)
    out = np.empty(len(first))
    pair_log_gamma_sums(s, lam, first, second, out, 1)
    terms = gammaln(lam + s[first] + s[second])
    assert np.all(np.abs(out - terms.sum(axis=1)) <= 1e-13 * np.abs(terms).sum(axis=1) + 1e-13)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e9, 1e30])
def test_range(size):
    out = np.empty(1)
    log_gamma_sums(np.full((1, 20), size), np.full(20, 1e-3), out, 1)
    assert_allclose(out, 20 * gammaln(size + 1e-3), rtol=1e-13, atol=1e-12)


def test_threads_do_not_change_a_bit():
    s, lam = problem(7, 333, np.random.default_rng(0))
    first, second = np.triu_indices(7, 1)
    one, two = np.empty(len(first)), np.empty(len(first))
    pair_log_gamma_sums(s, lam, first, second, one, 1)
    pair_log_gamma_sums(s, lam, first, second, two, 2)
    assert_array_equal(one, two)


def test_no_components():
    out = np.empty(0)
    log_gamma_sums(np.empty((0, 5)), np.ones(4), out, 1)
