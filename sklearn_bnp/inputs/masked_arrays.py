"""Masked arrays of NumPy: what is masked in rows is missing, and nothing else may be masked."""

from __future__ import annotations

import numpy as np


def with_nan(x):
    """Rows with NaN for what is masked in a masked array, or a list of them; anything else as it is.

    NumPy forgets masks where an array is asked for, and what is under them would pass for data.
    """
    if isinstance(x, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in x):
        return [with_nan(row) for row in x]
    if not isinstance(x, np.ma.MaskedArray):
        return x
    if not np.ma.is_masked(x) or x.dtype.kind not in "fiubO":
        return np.ma.getdata(x)
    if x.dtype.kind in "iub":
        x = x.astype(np.float64)
    return x.filled(np.nan)


def refuse_masked(value, name):
    """Raise if entries of an array are masked where each must be known, such as weights and parameters."""
    if not isinstance(value, np.ma.MaskedArray) or not np.ma.is_masked(value):
        return
    n, at = np.ma.count_masked(value), np.argwhere(np.ma.getmaskarray(value))[0].tolist()
    where = at[0] if len(at) == 1 else tuple(at)
    raise ValueError(
        f"{name} is a masked array of shape {value.shape} with {n} masked values, the first at position "
        f"{where}, but all must be known. Give numbers for these, as by {name}.filled(0)."
    )
