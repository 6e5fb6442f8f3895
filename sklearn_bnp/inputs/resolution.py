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
"""

from __future__ import annotations

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


def recording_steps(x, weight=None):
    """Step h to which each column was recorded, shape (D,); 0 if no step is found.

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
    x = x[weight > 0].astype(np.float64, copy=False)
    if len(x) == 0:
        return np.zeros(x.shape[1])
    largest = np.maximum(np.maximum(x.max(axis=0), -x.min(axis=0)), np.finfo(float).tiny)
    total = np.full(x.shape[1], weight.sum())
    if np.isnan(largest).any():
        largest = np.fmax(np.fmax.reduce(np.abs(x), axis=0), np.finfo(float).tiny)
        total = weight[weight > 0] @ ~np.isnan(x)
    x /= largest
    first, _ = equal_rows(x)
    different = np.count_nonzero(~np.isnan(x[first]), axis=0)
    steps = np.zeros(x.shape[1])
    for d in range(x.shape[1]):
        ordered = np.sort(x[:, d])
        ordered = ordered[: np.searchsorted(ordered, np.nan)]  # NaN is sorted last
        if len(ordered) == 0:
            continue
        same = 8 * eps  # values that differ only by rounding are one value
        if ordered[-1] - ordered[0] < _FEW_DIGITS * same:
            same = 0.0  # unless there is hardly more than rounding: then each number counts
        values = ordered[np.append(True, np.diff(ordered) > same)]
        if len(values) == 1 or _RETURNS * len(values) > total[d]:
            continue
        if _RETURNS * len(values) > different[d] and not _is_scale(values):
            continue
        gap = np.diff(values)
        nearest = np.minimum(np.append(gap, np.inf), np.append(np.inf, gap))
        # a small quantile, for scales with unequal steps: a step that is too small does no harm
        steps[d] = np.quantile(nearest, 0.25)
    return steps * largest


def _is_scale(values):
    """Whether sorted values are few or lie evenly, as those of a scale do."""
    if len(values) <= _SCALE:
        return True
    gap = np.diff(values)
    share = gap[1:] / (gap[1:] + gap[:-1])
    return np.mean(np.abs(share - 0.5) < _HALFWAY) >= _EVEN
