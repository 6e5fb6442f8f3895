"""Histograms stand for counts: sums of the objective's functions over documents follow from them."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma, gammaln

from sklearn_bnp._kernels._histograms import spread_over_nodes
from sklearn_bnp.topics.histograms import MOST_PANEL, N_NODES, NOTHING, RATIO, histograms

PRIORS = (1e-290, 1e-9, 1e-3, 0.1, 1.0, 30.0, 1e4)
RANGES = ((1e-6, 1e-3), (1e-3, 1.0), (0.3, 30.0), (1.0, 3000.0), (100.0, 1e6))


def sums(histogram, f):
    return histogram.weights @ f(histogram.nodes)


def alone(values, weight=None):
    values = np.asarray(values, dtype=float)
    [histogram] = histograms(values, [0, len(values)], weight)
    return histogram


@pytest.mark.parametrize(("bounds", "a"), list(itertools.product(RANGES, PRIORS)))
def test_sums_over_documents(bounds, a):
    """They agree to 1e-14 of the terms' sizes, which is rounding; digamma functions too."""
    values = np.exp(np.random.default_rng(0).uniform(*np.log(bounds), 3000))
    found = alone(values)
    for f in (gammaln, digamma):
        terms = f(values + a)
        assert abs(sums(found, lambda x, f=f: f(x + a)) - terms.sum()) <= 1e-14 * (
            len(values) + np.abs(terms).sum()
        )
    assert found.total == pytest.approx(3000.0, rel=1e-14)
    assert sums(found, lambda x: x) == pytest.approx(values.sum(), rel=1e-13)


@pytest.mark.parametrize("a", PRIORS)
def test_no_single_count_is_far_off(a):
    """The error is bounded for each count, so that it is whatever the counts of a corpus are."""
    for value in RATIO ** np.linspace(-6.0, 6.0, 241):
        term = gammaln(value + a)
        assert abs(sums(alone([value]), lambda x: gammaln(x + a)) - term) <= 2e-14 * (1 + abs(term))


def test_whole_counts():
    values = np.arange(1.0, 400.0)
    for a in PRIORS:
        expected = gammaln(values + a).sum()
        assert_allclose(sums(alone(values), lambda x, a=a: gammaln(x + a)), expected, rtol=1e-13)


def test_histograms_add_up_and_can_be_taken_apart():
    rng = np.random.default_rng(1)
    for _ in range(20):
        one, two = (np.exp(rng.uniform(*np.sort(rng.uniform(-6, 6, 2)), 50)) for _ in range(2))
        both = alone(one).added(alone(two))
        expected = alone(np.concatenate([one, two]))
        assert both.first == expected.first
        assert_allclose(both.weights, expected.weights, atol=1e-12)
        again = both.added(alone(two), -1.0)
        for f in (gammaln, np.log):
            assert_allclose(sums(again, f), f(one).sum(), atol=1e-11)
    for same in (NOTHING.added(expected), expected.added(NOTHING)):
        assert same.first == expected.first and np.array_equal(same.weights, expected.weights)
    assert_allclose(sums(expected.times(2.5), np.log), 2.5 * sums(expected, np.log))


def test_weights_are_repetition():
    rng = np.random.default_rng(2)
    values, times = rng.gamma(0.5, 20.0, 40), rng.integers(1, 5, 40)
    weighted, repeated = alone(values, times), alone(np.repeat(values, times))
    assert weighted.first == repeated.first
    assert_allclose(weighted.weights, repeated.weights, atol=1e-12)


def test_groups_are_apart():
    rng = np.random.default_rng(3)
    values = rng.gamma(0.3, 50.0, 60)
    found = histograms(values, [0, 0, 25, 25, 60, 60])
    assert [len(histogram.weights) == 0 for histogram in found] == [True, False, True, False, True]
    for histogram, own in ((found[1], values[:25]), (found[3], values[25:])):
        assert histogram.first == alone(own).first
        assert np.array_equal(histogram.weights, alone(own).weights)  # whatever stands beside it
    assert histograms(np.empty(0), [0, 0])[0] is NOTHING


def test_counts_out_of_range_are_held_at_its_ends():
    low, high = alone([1e-200]), alone([1e200])
    assert low.first == -MOST_PANEL and high.first == MOST_PANEL
    assert sums(low, np.log) == pytest.approx(-MOST_PANEL * np.log(RATIO))
    assert sums(high, np.log) == pytest.approx(MOST_PANEL * np.log(RATIO))


def test_kernel_is_its_definition():
    rng = np.random.default_rng(4)
    row, x, weight = rng.integers(0, 3, 30), rng.uniform(-1, 1, 30), rng.random(30)
    table = rng.normal(size=(5, 5))
    polynomials = np.cos(np.arange(5) * np.arccos(x)[:, np.newaxis])
    for w in (weight, None):
        moments, out = np.zeros((3, 5)), np.empty((3, 5))
        spread_over_nodes(row, x, w, table, moments, out)
        expected = np.zeros((3, 5))
        np.add.at(expected, row, polynomials if w is None else w[:, np.newaxis] * polynomials)
        assert_allclose(out, expected @ table, atol=1e-12)


def test_a_histogram_is_small():
    """Twenty numbers a panel, however many documents there are."""
    values = np.exp(np.random.default_rng(5).uniform(np.log(1e-2), np.log(1e3), 100_000))
    assert len(alone(values).weights) <= 6 * N_NODES
