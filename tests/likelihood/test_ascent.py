"""Ascent of small functions by L-BFGS: the best point is kept, bounds hold, known points are not lost."""

import numpy as np
import pytest

from sklearn_bnp.likelihood.ascent import ascended

TOP = np.array([0.3, -1.2])
LEAST, MOST = np.full(2, -5.0), np.full(2, 5.0)
NOTHING = -np.inf, None


def hill(point):
    """A smooth function with its maximum 0 at `TOP`; a copy of the point belongs to each."""
    apart, steep = point - TOP, np.array([1.0, 30.0])
    return -0.5 * steep @ apart**2, -steep * apart, point.copy()


def test_the_top_is_reached():
    value, there = ascended(hill, np.zeros(2), LEAST, MOST, NOTHING, max_iter=50, slope=1e-8)
    np.testing.assert_allclose(there, TOP, atol=1e-6)
    assert value == pytest.approx(0.0, abs=1e-10)
    assert value == hill(there)[0]


def test_bounds_hold():
    _, there = ascended(
        hill, np.zeros(2), LEAST, np.array([0.1, 5.0]), NOTHING, max_iter=50, slope=1e-8
    )
    np.testing.assert_allclose(there, [0.1, -1.2], atol=1e-6)


def test_what_is_known_is_not_lost():
    known = 1.0, "known"
    assert ascended(hill, np.zeros(2), LEAST, MOST, known, max_iter=50, slope=1e-8) == known


def test_each_point_is_evaluated_once():
    seen = []

    def evaluate(point):
        seen.append(tuple(point))
        return hill(point)

    ascended(evaluate, np.zeros(2), LEAST, MOST, NOTHING, max_iter=50, slope=1e-8)
    assert len(seen) == len(set(seen))


def test_the_best_point_counts_and_not_the_last():
    """A search may end below a point that it has met on its way."""
    values = iter([0.0, 5.0, *(1.0,) * 100])

    def evaluate(point):
        value = next(values)
        return value, np.ones(2), value

    assert ascended(evaluate, np.zeros(2), LEAST, MOST, NOTHING, max_iter=5, slope=0.0)[0] == 5.0
