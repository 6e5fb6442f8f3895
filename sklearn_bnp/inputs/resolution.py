"""The steps to which the columns of data were recorded, found from values that occur repeatedly.

Design note
-----------
(a) A density may rise without limit at a value that many rows share. But a value that was recorded to a
    step h is only known to lie within h. A row that is blurred by the variance h^2 / 12 of a uniform cell
    (Sheppard's correction) gains nothing from a component narrower than that.
(b) Only values that occur repeatedly tell a step. In continuous data there are none, and the step is 0.
(c) In continuous columns values also occur repeatedly if rows have weights, or if whole rows occur several
    times. Such copies tell no step. A column was recorded in steps if its different rows share values, or if
    its values are few or lie evenly. The distances between random values are uneven.
(d) Whole numbers that were transformed, as by a logarithm, have no constant step, nor have shares of several
    totals. Each of their values stands for a cell of its own width, half of the distance between its
    neighbours. A neighbour that is much farther away than the other one is no part of the same scale, and
    does not count in full. Nor do distances in sparse tails, where values are missing in between.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .rows import equal_rows

# Largest number of rows in the sample.
SAMPLE_ROWS = 5000
# A column was recorded in steps if each value has at least this weight on average. Rows that are drawn with
# replacement from continuous ones have 1.6.
_RETURNS = 2.0
# A column whose range is less than so many times what rounding may change, as of float32 rows far from zero,
# was recorded in the steps of its numbers.
_FEW_DIGITS = 1000.0
# So few values that occur repeatedly are those of a scale, even if their distances are unequal.
_SCALE = 20
# Values lie evenly if at least this share of them is halfway between the neighbours on both sides, to within
# this part of the distance between these. Of random values a tenth are.
_EVEN, _HALFWAY = 0.3, 0.05
# If no different rows share values, these have cells only if so large a share of them is about halfway.
# Of random values three in ten are, and of square roots of the first eight whole numbers five in six.
_MOSTLY, _ABOUT_HALFWAY = 0.8, 0.15
# A distance between neighbours is a multiple of the step if it is one to within this part of the step. Values
# have a constant step unless this share of the rows is beside other distances.
_MULTIPLE, _UNEVEN = 0.15, 0.1
# A neighbour counts as at most so many times as far away as the other one. The second distance between square
# roots of whole numbers is 2.4 times smaller than the first.
_FARTHER = 2.5


class ColumnCells(NamedTuple):
    """Cells of a column whose values have no constant step.

    Attributes
    ----------
    column : int
        Number of the column.
    values : ndarray, shape (m,)
        The different values of a sample of rows, sorted. Other values have the cell of the nearest of these.
    widths : ndarray, shape (m,)
        Widths of the cells that the values stand for.
    typical : float
        Root of the mean squared width over the rows of the sample.
    """

    column: int
    values: np.ndarray
    widths: np.ndarray
    typical: float


class Recording(NamedTuple):
    """How the columns of data were recorded.

    Attributes
    ----------
    steps : ndarray, shape (D,)
        Step h of each column; 0 if no step is found.
    cells : tuple of ColumnCells
        Cells of columns with a step that is not the same for all values.
    """

    steps: np.ndarray
    cells: tuple


def recording(x, weight=None):
    """`Recording` of the columns.

    Parameters
    ----------
    x : ndarray, shape (n, D)
        A sample of rows, in which missing entries are NaN.
    weight : ndarray, shape (n,), or None
        Sample weights.
    """
    x = np.asarray(x)
    eps = np.finfo(x.dtype if x.dtype == np.float32 else np.float64).eps
    weight = np.ones(len(x)) if weight is None else np.asarray(weight, dtype=float)
    x, weight = x[weight > 0].astype(np.float64, copy=False), weight[weight > 0]
    if len(x) == 0:
        return Recording(np.zeros(x.shape[1]), ())
    largest = np.maximum(np.maximum(x.max(axis=0), -x.min(axis=0)), np.finfo(float).tiny)
    total = np.full(x.shape[1], weight.sum())
    if np.isnan(largest).any():
        largest = np.fmax(np.fmax.reduce(np.abs(x), axis=0), np.finfo(float).tiny)
        total = weight @ ~np.isnan(x)
    x /= largest
    first, _ = equal_rows(x)
    different = np.count_nonzero(~np.isnan(x[first]), axis=0)
    steps, cells = np.zeros(x.shape[1]), []
    for d in range(x.shape[1]):
        values, mass = _values(x[:, d], weight, 8 * eps)
        if len(values) < 2 or _RETURNS * len(values) > total[d]:
            continue
        shared = _RETURNS * len(values) <= different[d]
        if not shared and not _is_scale(values):
            continue
        gap = np.diff(values)
        nearest = np.minimum(np.append(gap, np.inf), np.append(np.inf, gap))
        # a small quantile, for scales with unequal steps: a step that is too small does no harm
        steps[d] = np.quantile(nearest, 0.25)
        if (shared or _is_smooth(gap)) and _is_uneven(gap, mass, steps[d]):
            cells.append(_cells(d, values, gap, mass, largest[d]))
    return Recording(steps * largest, tuple(cells))


def _values(column, weight, same):
    """Different values (m,) of a column (n,), sorted, and the weight of the rows (m,) that have each.

    Values that differ by no more than ``same``, which is rounding, are one value; unless there is hardly more
    than rounding in the column: then each number counts.
    """
    order = np.argsort(column, kind="stable")
    ordered = column[order]
    ordered = ordered[: np.searchsorted(ordered, np.nan)]  # NaN is sorted last
    if len(ordered) == 0:
        return ordered, ordered
    if ordered[-1] - ordered[0] < _FEW_DIGITS * same:
        same = 0.0
    first = np.flatnonzero(np.append(True, np.diff(ordered) > same))
    return ordered[first], np.add.reduceat(weight[order[: len(ordered)]], first)


def _cells(column, values, gap, mass, unit):
    """`ColumnCells` of values (m,) in this unit, which ``mass`` (m,) rows have."""
    widths = _widths(values, gap, mass)
    typical = float(np.sqrt(mass @ widths**2 / mass.sum()))
    return ColumnCells(column, values * unit, widths * unit, typical * unit)


def _is_uneven(gap, mass, step):
    """Whether distances of neighbours, beside many of the rows, are no multiples of the step."""
    multiple = gap / step
    off = np.abs(multiple - np.round(multiple)) > _MULTIPLE
    beside = np.append(off, False) | np.append(False, off)
    return bool(mass[beside].sum() > _UNEVEN * mass.sum())


def _widths(values, gap, mass):
    """Widths (m,) of the cells of values that ``mass`` (m,) rows have, from their distances (m - 1,)."""
    if len(gap) < 2:
        return np.repeat(gap, 2)
    left, right = np.append(gap[0], gap), np.append(gap, gap[-1])
    # at the ends, the cell is as wide on the side without a neighbour
    left[0] = right[0] = min(gap[0], _FARTHER * gap[1])
    left[-1] = right[-1] = min(gap[-1], _FARTHER * gap[-2])
    width = 0.5 * (np.minimum(left, _FARTHER * right) + np.minimum(right, _FARTHER * left))
    often = np.flatnonzero(mass > _RETURNS)
    if len(often):
        after = np.clip(np.searchsorted(values[often], values), 1, max(1, len(often) - 1))
        low, high = often[after - 1], often[np.minimum(after, len(often) - 1)]
        nearest = np.where(values - values[low] <= values[high] - values, low, high)
        # in sparse tails values are missing
        width = np.where(mass > _RETURNS, width, np.minimum(width, width[nearest]))
    return width


def _is_scale(values):
    """Whether sorted values are few or lie evenly, as those of a scale do."""
    if len(values) <= _SCALE:
        return True
    return np.mean(_unevenness(np.diff(values)) < _HALFWAY) >= _EVEN


def _is_smooth(gap):
    """Whether most distances of neighbours are about as large as the one before."""
    return len(gap) > 4 and np.mean(_unevenness(gap) < _ABOUT_HALFWAY) >= _MOSTLY


def _unevenness(gap):
    """How far values are from halfway between their neighbours, as a part of the distance between these."""
    return np.abs(gap[1:] / (gap[1:] + gap[:-1]) - 0.5)
