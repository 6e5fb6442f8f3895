"""Limits of the parameters of priors, and of sums of weights and counts.

Beyond them, logarithms and squares overflow, or rounding leaves nothing of what is to be learned: in doubles,
lnGamma(1e16) is lnGamma(1e16 + 1).
"""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse
from sklearn.utils._param_validation import Interval

# Limits of pseudo-counts and concentrations, which are added to counts of rows.
LEAST, MOST = 1e-100, 1e12
POSITIVE = Interval(Real, LEAST, MOST, closed="both")
NOT_NEGATIVE = Interval(Real, 0, MOST, closed="both")
# Limits of sums of weights and counts, which are added up and subtracted again: smaller sums are no data,
# and the rounding errors of larger ones are as large as a row.
LEAST_MASS, MOST_MASS = 1e-6, 1e15
POPULATION = Interval(Integral, 1, int(MOST_MASS), closed="both")
# Largest distance of a prior mean in standard deviations of the data; it is that of rows that come later.
_FARTHEST = 1e7
# Limits of prior variances, as multiples of the data's.
_LEAST_VARIANCE, _MOST_VARIANCE = 1e-50, 1e50


def largest_of(z):
    """Largest absolute value of an array or of sparse rows, except NaN; 0 if there is none."""
    z = z.data if issparse(z) else z
    largest = max(z.max(initial=0), -z.min(initial=0))
    if np.isnan(largest):
        largest = max(np.fmax.reduce(z, axis=None), -np.fmin.reduce(z, axis=None))
    return 0.0 if np.isnan(largest) else largest


def are_within(value, least=LEAST, most=MOST):
    """Whether all numbers are from ``least`` to ``most``, and thus finite."""
    return bool(np.all((value >= least) & (value <= most)))


def as_numbers(value, size):
    """``value`` as ``size`` floats; NaN where it is no number, nor so many of them."""
    try:
        return np.broadcast_to(np.asarray(value, dtype=float), size).copy()
    except (TypeError, ValueError):
        return np.array([np.nan])


def points_within(scaling, points, name):
    """Points (..., D) that are the value of a parameter, scaled as rows are, (..., D').

    Raises ValueError if they are so far out that the squares of their distances would round all others away.
    """
    with np.errstate(over="ignore"):
        z = scaling.apply(np.atleast_2d(points)).reshape(*np.shape(points)[:-1], -1)
    farthest = np.abs(z).max()
    if not farthest <= _FARTHEST:
        raise ValueError(
            f"{name} holds values {farthest:.1g} standard deviations away from the data; they may be no "
            f"more than {_FARTHEST:g} away. Give them in the units of X."
        )
    return z


def variances_within(value, of_data, name):
    """Variances that are the value of a parameter, divided by those of the data.

    Raises ValueError if they are too large or too small to compute with.
    """
    with np.errstate(over="ignore", divide="ignore"):
        ratio = value / of_data
    if not are_within(ratio, _LEAST_VARIANCE, _MOST_VARIANCE):
        raise ValueError(
            f"{name} holds variances of {np.min(value):.1g} to {np.max(value):.1g}, but those of the data "
            f"are {np.min(of_data):.1g} to {np.max(of_data):.1g}; they may differ by a factor of "
            f"{_MOST_VARIANCE:g}. Give them in the units of X."
        )
    return ratio
