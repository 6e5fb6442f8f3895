"""A warning if a few values of a column are so large that they hide all others.

Columns are modelled in standard deviations, and rows are blurred by a small part of one (``reg_covar``). A
few values that are a million times as large as the others make the standard deviation so large that the blur
covers these.
"""

from __future__ import annotations

import numpy as np

from .advice import warn_caller

# The blur's standard deviation as a share of a column's, by default. A column is hidden if nine of ten values
# lie within so many times the blur's, and are not mostly one and the same.
_BLUR, _HIDDEN = 1e-3, 10.0


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
        low, lower, upper, high = np.percentile(column, [5, 25, 75, 95])
        if lower < upper and high - low < _HIDDEN * _BLUR * sd[d]:
            warn_caller(
                f"Nine of ten values in column {d} of X lie between {low:.6g} and {high:.6g}, but its "
                f"standard deviation is {sd[d]:.3g}: a few values are so far out that clusters of the others "
                "cannot be told apart. Look for errors in X, leave such rows out, or transform the column, "
                "as by logarithms."
            )
            return
