"""How often rows of a sample count: copies of rows, weights that may be frequencies, and small weights.

Rows of a sample are evidence of new components. Equal rows of continuous columns are copies, which tell no
more than one of them. Weights are evidence as far as they can be numbers of equal rows that were seen.
"""

from __future__ import annotations

import numpy as np

from ..inputs.rows import equal_rows

# A row is a cluster by itself if it occurs, or weighs, so many times as much as other rows do. Others are
# those that are left when so many of the most frequent rows, or of the heaviest, are set aside.
_CLUSTER, _MOST_REPEATED, _MOST_HEAVY = 20.0, 9, 2
# The unit of weights is found in other ways if there are fewer different rows than these. Steps of bisection
# in which it is found. How many times as many equal rows there may be as are expected.
_SMALL_TABLE, _TABLE, _HALVINGS, _MORE = 20, 100, 40, 10.0


def least_weight(weight):
    """The smallest weight, but 1 at the most; 1 if ``weight`` is None."""
    return 1.0 if weight is None else min(1.0, float(weight.min()))


def rows_owned(n, resp, weight, mass=1.0):
    """Masses ``n`` (J,), as they would be if weights below 1 were 1; see `Sample.rows_owned`."""
    if weight is None or weight.min() >= 1.0:
        return n
    return (mass * np.maximum(weight, 1.0)) @ resp


def copies(z):
    """Which of the rows ``z`` (n, D) are copies, as `equal_rows` returns them.

    A row with gaps that shows half of its entries or more, and agrees in all of these with one of the most
    frequent complete rows, is a copy of that row, too.
    """
    first, number = equal_rows(z)
    missing = np.isnan(z) if isinstance(z, np.ndarray) else None
    if missing is None or not missing.any():
        return first, number
    times = np.bincount(number)
    times[missing[first].any(axis=1)] = 0
    n_missing = missing.sum(axis=1)
    left = np.flatnonzero((n_missing > 0) & (2 * n_missing <= z.shape[1]))
    for group in np.argsort(-times, kind="stable")[: _MOST_REPEATED + 1]:
        if times[group] < 2:
            break
        agree = (missing[left] | (z[left] == z[first[group]])).all(axis=1)
        number[left[agree]] = group
        left = left[~agree]
    kept, number = np.unique(number, return_inverse=True)
    return first[kept], number.reshape(-1)


def without_copies(first, number, weight, n_heavy=_MOST_HEAVY):
    """Weights (n,) with which rows count if equal ones count as one; None if no row counts more than once.

    ``first`` and ``number`` are as `copies` or `equal_rows` return them. The first of several equal rows
    counts as all of them together, but once at the most, and the others count 0. A row that is there very
    often is a cluster. All its copies count, divided by how often other rows are there. So does a row that
    weighs much more than all but ``n_heavy`` others; its weight is divided by what these weigh.
    """
    if len(weight) == 0:
        return None
    times = np.bincount(number, weight)
    if times.max() <= 1.0:
        return None
    counts = np.zeros(len(weight))
    counts[first] = np.minimum(times, 1.0)
    often, is_repeated = _clusters(np.bincount(number), _MOST_REPEATED)
    counts = np.where(is_repeated[number], np.minimum(weight, 1.0) / often, counts)
    typical, is_heavy = _clusters(times, n_heavy)
    return np.where(is_heavy[number], weight / typical, counts)


def frequencies(weight, expected, number, may_be_table=True):
    """Weights (n,) of rows, or of runs, cut to what their frequencies can be.

    ``expected`` (n,) says how many rows equal to each can be expected, in units of the weights, and
    ``number`` (n,) tells which rows are equal. Weights may be in another unit, such as thousands of people.
    It is found first, and they are divided by it. Then a row keeps a weight of up to 1, or of up to ten times
    what is expected if that is more. Rows that weigh much more than others are clusters,
    and are not cut. ``may_be_table`` tells whether few different rows may be the cells of a table, all of
    which occur often.
    """
    _, first, equal = np.unique(number, return_index=True, return_counts=True)
    unit = _unit_of_frequencies(np.bincount(number, weight), expected[first], may_be_table)
    own = weight / unit
    most = np.maximum(_MORE * expected / (unit * equal[number]), 1.0)
    _, is_heavy = _clusters(own, _MOST_REPEATED)
    return np.where(is_heavy, own, np.minimum(own, most))


def _unit_of_frequencies(sums, expected, may_be_table):
    """The unit, 1 or more, in which the weights of m different rows, ``sums`` (m,), are their frequencies.

    Frequencies are taken for Poisson variables with the means ``expected / unit`` (m,). Only rows that occur
    are seen, and the mean of such a variable over what is not zero is ``x / (1 - exp(-x))``, if x is its
    mean. The unit is the one in which all weights together sum to that. In a table of fewer than 100 rows it
    is the median of weights over expectations instead: the sum would mostly show the errors of small
    expectations. In one of fewer than 20 rows, in which all frequencies may be great, it is 1. In a greater
    table the lightest row counts once at the most.
    """
    low = 1.0
    if may_be_table:
        if len(sums) < _SMALL_TABLE:
            return 1.0
        low = max(1.0, sums.min())
        if len(sums) < _TABLE:
            return max(low, float(np.median(sums / np.maximum(expected, 1.0))))
    total, high = sums.sum(), max(low, sums.mean())
    for _ in range(_HALVINGS):
        unit = np.sqrt(low * high)
        x = np.maximum(expected / unit, 1e-12)
        if np.sum(unit * x / -np.expm1(-x)) < total:
            low = unit
        else:
            high = unit
    return high


def _clusters(times, n_most):
    """How much a row counts at the most without the ``n_most`` greatest, and which (m,) count much more."""
    typical = max(1.0, np.sort(times)[-1 - min(n_most, len(times) // 2)])
    return typical, (times >= _CLUSTER * typical) & (n_most > 0)


def times_raised(n_rows, total, n):
    """Factor for small weights of sampled rows of a component of mass ``n``; see `Sample.standing_for`."""
    return min(n, n_rows) / total if total < n_rows else 1.0
