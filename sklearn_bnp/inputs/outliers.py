"""A warning if some values of a column are so large that they hide all others.

Columns are modelled in standard deviations, and rows are blurred by a small part of one (``reg_covar``). A
few values that are a million times as large as the others make the standard deviation so large that the blur
covers these. So does a tenth of the values that are some thousand times as large, such as codes for missing
values, or rows in another unit.
"""

from __future__ import annotations

import numpy as np

from .advice import warn_caller

# The blur's standard deviation as a share of a column's, by default.
_BLUR = 1e-3
# A column is hidden if such a part of its values, between two percentiles, lies within so many times the
# blur's standard deviation. The two limits are about the same for values of one Gaussian.
_PARTS = (("Nine of ten", 5, 95, 10.0, "a few"), ("Half of the", 25, 75, 4.0, "some"))


def warn_if_hidden(x, moments):
    """Warn, at the line that calls the package, of the first column whose values a few others hide.

    Parameters
    ----------
    x : ndarray, shape (n, D)
        A sample of the rows, which may have missing entries.
    moments : Moments
        Of all rows.
    """
    sd = np.sqrt(moments.variance) * moments.magnitude
    for d in np.flatnonzero(sd > 0):
        column = x[:, d][~np.isnan(x[:, d])].astype(float)
        if len(column) == 0:
            continue
        # values that are mostly one and the same hide nothing
        if np.ptp(np.percentile(column, [25, 75])) == 0:
            continue
        rest = _without_most_frequent(column)
        for part, first, last, hidden, others in _PARTS:
            low, high = np.percentile(column, [first, last])
            if max(high - low, np.ptp(np.percentile(rest, [first, last]))) < hidden * _BLUR * sd[d]:
                warn_caller(
                    f"{part} values in column {d} of X lie between {low:.6g} and {high:.6g}, but its "
                    f"standard deviation is {sd[d]:.3g}: {others} values are so far out that clusters of the "
                    "others cannot be told apart. Look for errors in X, such as codes for missing values or "
                    "other units, leave such rows out, or transform the column, as by logarithms."
                )
                return


def _without_most_frequent(column):
    """The values other than the most frequent one, such as the zeros of counts and of amounts."""
    values, counts = np.unique(column, return_counts=True)
    return column[column != values[counts.argmax()]]
