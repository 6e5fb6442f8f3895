"""`document_terms` and `chain_terms` against the same objectives as operations on arrays."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln

from sklearn_bnp._kernels import _sticks
from tests.reference import sticks as twin

GAMMAS, ALPHAS, STICKINESS = (0.1, 5.0), (1e-3, 0.5, 30.0, 1e5), (0.0, 1e-6, 1.0, 50.0, 1e5)


def random_sticks(rng, n_sticks, omega):
    """Logit rho and log omega (K,), the latter about the logarithm of ``omega``."""
    return rng.normal(0.0, 1.5, n_sticks), rng.normal(np.log(omega), 1.0, n_sticks)


def of_documents(at, lgammas, digammas, using, n_docs, gamma, alpha):
    slopes = np.full((3, len(at[0])), np.nan)
    value, by_alpha = _sticks.document_terms(
        *at, lgammas, digammas, using, n_docs, gamma, alpha, slopes
    )
    return value, slopes, by_alpha


def of_chains(at, counts, *concentrations):
    slopes = np.full((3, len(at[0])), np.nan)
    value, *by_concentration = _sticks.chain_terms(*at, counts, *concentrations, slopes)
    return value, slopes, *by_concentration


def compare(found, expected, argument):
    """Terms that nearly cancel are as large as the value, the largest slope, or lnG of its argument."""
    largest = 1.0 + abs(expected[0]) + gammaln(2.0 + argument)
    assert_allclose(found[0], expected[0], rtol=0.0, atol=1e-13 * largest)
    largest += np.abs(expected[1]).max()
    for a, b in zip(found[1:], expected[1:], strict=True):
        assert_allclose(a, b, rtol=1e-9, atol=1e-11 * largest)


@pytest.mark.parametrize(("gamma", "alpha"), list(itertools.product(GAMMAS, ALPHAS)))
@pytest.mark.parametrize("n_docs", [3.0, 1e3, 1e7])
@pytest.mark.parametrize("n_topics", [1, 2, 7])
def test_terms_of_documents(gamma, alpha, n_docs, n_topics):
    rng = np.random.default_rng(n_topics)
    for omega in (3.0, 30.0, n_docs):
        sums = 10.0 * rng.normal(size=(2, n_topics)), n_docs * rng.random(n_topics)
        at = random_sticks(rng, n_topics, omega)
        args = *sums[0], sums[1], n_docs, gamma, alpha
        compare(of_documents(at, *args), twin.document_terms(*at, *args), alpha)


@pytest.mark.parametrize(("gamma", "alpha"), list(itertools.product(GAMMAS, ALPHAS)))
@pytest.mark.parametrize("kappa", STICKINESS)
@pytest.mark.parametrize("n_states", [1, 2, 7])
def test_terms_of_chains(gamma, alpha, kappa, n_states):
    """Some counts are zero, and some states are never left, or never met."""
    rng = np.random.default_rng(n_states)
    for omega, scale in ((3.0, 1.0), (30.0, 1e4), (1e6, 1e-6)):
        counts = scale * rng.gamma(0.4, 6.0, (n_states + 1, n_states))
        counts *= rng.random(counts.shape) < 0.7
        counts[rng.integers(n_states + 1)] = counts[:, rng.integers(n_states)] = 0.0
        at = random_sticks(rng, n_states, omega)
        args = counts, gamma, alpha, 2.0 * alpha, kappa
        compare(of_chains(at, *args), twin.chain_terms(*at, *args), alpha + kappa + counts.sum())


def test_terms_are_smooth_where_their_series_begin():
    """The remainders of a Beta at 20, and costs of the uncertainty of weights at alpha pi = 1e-4."""
    zero = np.zeros(1)
    for logit_rho, omega, alpha in ((0.0, 40.0, 1.0), (0.0, 20.0, 1.0), (0.0, 10.0, 2e-4)):
        found = [
            of_documents(
                (np.array([logit_rho]), np.log([omega * factor])), zero, zero, zero, 5.0, 1.0,
                alpha * factor,
            )
            for factor in (1.0 - 1e-15, 1.0 + 1e-15)
        ]  # fmt: skip
        for low, high in zip(*found, strict=True):
            assert_allclose(low, high, rtol=1e-11, atol=1e-12)


def test_weights_that_underflow_cost_nothing():
    """Means of late sticks are 1e-290 and less, and their squared coefficients of variation overflow."""
    at = np.full(40, 20.0), np.full(40, -10.0)
    value, slopes, *others = of_chains(at, np.ones((41, 40)), 1.0, 1.0, 1.0, 50.0)
    assert np.isfinite([value, *slopes.ravel(), *others]).all()
    sums = np.zeros(40)
    value, slopes, by_alpha = of_documents(at, sums, sums, sums, 10.0, 1.0, 1.0)
    assert np.isfinite([value, by_alpha, *slopes.ravel()]).all()


def test_concentrations_may_be_huge():
    """Where the products of special functions would overflow."""
    at = random_sticks(np.random.default_rng(0), 3, 10.0)
    for kappa in (1e29, 1e60):
        value, slopes, *others = of_chains(at, np.ones((4, 3)), 1.0, 1.0, 1.0, kappa)
        assert np.isfinite([value, *slopes.ravel(), *others]).all()


def test_no_sticks():
    assert of_documents((np.empty(0), np.empty(0)), *np.empty((3, 0)), 0.0, 1.0, 1.0)[0] == 0.0
