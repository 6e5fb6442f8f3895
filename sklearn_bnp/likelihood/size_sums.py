"""Sums over counts from which sizes of negative binomial distributions are learned.

The log probability of a count x under a size r holds ``lnGamma(r + x) - lnGamma(r)``. It does not depend on
the component, but its sum over all rows is needed for any r, as r is learned.

Design note
-----------
(a) ``lnGamma(r + x) - lnGamma(r) = sum_{j < x} log(r + j)``. The first 12 terms need only how many counts
    are greater than j, for each j.
(b) The rest is ``lnGamma(v + y) - lnGamma(v)`` with ``v = r + 12`` and ``y = max(x - 12, 0)``. It is a
    smooth function of log v, whose values at 28 Chebyshev nodes give it for sizes up to 1e4 with an error
    of at most 1e-12 nats for x to 32, 1e-10 for x to 112, and 2e-8 for x to a million. Smaller sizes have
    no larger errors, because the terms that are far from smooth were taken out.
(c) So 40 numbers for each column are enough. They are functions of the count alone, and as sums over rows
    they are statistics like others: they add up over batches, streams and machines, and can be subtracted.
(d) If sizes are given, one number for each column is enough.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev

from .counts import log_rise

# Sizes that may be learned. A column of larger ones cannot be told from a Poisson column, unless its counts
# are in the thousands.
LEAST_SIZE, MOST_SIZE = 1e-3, 1e4
# Terms that are counted one by one, and nodes for the rest.
_N_TERMS, _N_NODES = 12, 28

_TERMS = np.arange(_N_TERMS, dtype=float)
_ENDS = np.log(_N_TERMS), np.log(_N_TERMS + MOST_SIZE)
_POINTS = chebyshev.chebpts1(_N_NODES)
_NODES = np.exp(_ENDS[0] + (_ENDS[1] - _ENDS[0]) * (_POINTS + 1.0) / 2.0)
# From values at nodes to the coefficients of Chebyshev polynomials, and to those of their derivatives.
_TO_SERIES = np.linalg.inv(chebyshev.chebvander(_POINTS, _N_NODES - 1))
_TO_SLOPES, _TO_CURVES = (chebyshev.chebder(_TO_SERIES, order) for order in (1, 2))
# How much a point moves for each unit of the logarithm.
_SCALE = 2.0 / (_ENDS[1] - _ENDS[0])


def _polynomials(r):
    """Chebyshev polynomials (D, n_nodes) at the places of sizes (D,) among the nodes."""
    point = _SCALE * (np.log(_N_TERMS + r) - _ENDS[0]) - 1.0
    return np.cos(np.arccos(np.clip(point, -1.0, 1.0))[:, np.newaxis] * np.arange(_N_NODES))


class LearnedSizes:
    """Sums that give the term of any size; see the module's note."""

    n_sums = _N_TERMS + _N_NODES

    def of_counts(self, column, x):
        """The numbers (m, n_sums) that counts x (m,) add to the sums of their column."""
        out = np.zeros((len(x), self.n_sums))
        out[:, :_N_TERMS] = x[:, np.newaxis] > _TERMS
        many = np.flatnonzero(x > _N_TERMS)
        v, y = np.broadcast_arrays(_NODES, x[many, np.newaxis] - _N_TERMS)
        out[many, _N_TERMS:] = log_rise(v, y)
        return out

    def factors(self, r):
        """Factors (D, n_sums) of the sums, whose total is the term of sizes (D,)."""
        terms = np.log(r[:, np.newaxis] + _TERMS)
        return np.concatenate([terms, _polynomials(r) @ _TO_SERIES], axis=1)

    def slopes(self, sums, r):
        """First and second derivatives (D,) of the term by sizes (D,), of sums (D, n_sums)."""
        above, rest = sums[:, :_N_TERMS], sums[:, _N_TERMS:]
        terms, v, at = 1.0 / (r[:, np.newaxis] + _TERMS), r + _N_TERMS, _polynomials(r)
        first = _SCALE / v * np.sum(at[:, :-1] @ _TO_SLOPES * rest, axis=1)
        second = np.sum(at[:, :-2] @ _TO_CURVES * rest, axis=1)
        second = (_SCALE / v) ** 2 * second - first / v
        return (
            first + np.sum(above * terms, axis=1),
            second - np.sum(above * terms**2, axis=1),
        )


class GivenSizes:
    """The sum that gives the term of sizes ``r`` (D,), which are not learned.

    Parameters
    ----------
    r : ndarray, shape (D,)
        The sizes.
    """

    n_sums = 1

    def __init__(self, r):
        self.r = r

    def of_counts(self, column, x):
        """The number (m, 1) that each of the counts x (m,) adds to the sum of its column."""
        return log_rise(self.r[column], x)[:, np.newaxis]

    def factors(self, r):
        """Factors (D, 1) of the sums, all 1."""
        return np.ones((len(r), 1))
