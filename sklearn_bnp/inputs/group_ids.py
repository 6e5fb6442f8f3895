"""Ids of the documents or sequences to which rows belong, as users give them."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import column_or_1d

from .masked_arrays import refuse_masked
from .tables import in_numpy


def check_groups(groups, n_rows, unit):
    """Sorted ids of the groups, the first row of each, and the position of each row's id among them."""
    refuse_masked(groups, "groups")
    try:
        with in_numpy():
            ids = column_or_1d(groups)
    except (TypeError, ValueError) as error:
        shape = _shape(groups)
        if shape is not None and len(shape) != 1:
            several = " Make one id of several, such as f'{a}-{b}'." if len(shape) == 2 else ""
            raise ValueError(
                f"groups has shape {shape}, but must be ({n_rows},): one id for each row of X, that of its "
                f"{unit}.{several}"
            ) from error
        raise ValueError(f"groups must hold one id for each row of X: {error}") from error
    if len(ids) != n_rows:
        raise ValueError(
            f"groups has {len(ids)} ids, but X has {n_rows} rows; give one id for each row."
        )
    _require_no_gaps(groups, ids, unit)
    try:
        found, first, number = np.unique(ids, return_index=True, return_inverse=True)
    except (TypeError, ValueError) as error:  # the second, of arrays
        raise ValueError(
            f"groups holds ids that cannot be sorted, as of several types: {error}. Use numbers or "
            "strings alone."
        ) from error
    return found, first, number.reshape(-1)


def _shape(values):
    try:
        return np.shape(values)
    except ValueError:  # lists of unequal lengths
        return None


def _require_no_gaps(groups, ids, unit):
    """Raise if an id is missing; ``ids`` are the ``groups`` as an array."""
    of_list = isinstance(groups, (list, tuple))
    if ids.dtype.kind in "fmM":
        gaps = np.isnan(ids)
    elif ids.dtype.kind == "O" or of_list:  # NumPy makes strings of NaN beside strings
        ids = groups if of_list else ids
        gaps = np.fromiter(map(_is_missing, ids), bool, len(ids))
    else:
        return
    if gaps.any():
        row = int(gaps.argmax())
        what = "NaN" if isinstance(ids[row], (float, np.floating)) else ids[row]
        raise ValueError(
            f"groups holds {what} for row {row}, which cannot be sorted among ids; give every row the id of "
            f"its {unit}."
        )


def _is_missing(one):
    """Whether an id is None, NaN, NaT or NA."""
    try:
        return one is None or bool(one != one)
    except (TypeError, ValueError) as error:
        # NA raises the first; an array, which is no id, the second
        return isinstance(error, TypeError)
