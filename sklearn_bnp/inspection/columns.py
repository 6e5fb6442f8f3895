"""Columns of data as they are drawn: their names, what a fit took them for, and the numbers in them.

Design note. Data come in all forms that a fit takes, and may have columns that cannot be drawn: texts that
the model ignores, and categories, whose codes have no place on an axis. So a column is converted to numbers
only when it is drawn. An observation model tells a frame what it uses each column for, in ``for_frame``. It
is asked once more here, by an object that notes the answers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from ..estimator.observations import resolve_observation
from ..inputs.frames import floats_of, is_frame
from ..inputs.masked_arrays import with_nan


class Uses(NamedTuple):
    """The columns that a fitted estimator takes for numbers, and those that it takes for categories.

    Attributes
    ----------
    observation : ObservationModel
        That of the fit, with numbers for columns.
    numbers : list of int
        Columns that are used as numbers.
    categories : set of int
        Columns that are used as categories.
    """

    observation: Any
    numbers: list
    categories: set


class _Asked:
    """Stands for a frame in ``for_frame``, and notes what columns are used for."""

    data = None  # no names are looked up: columns are numbers since the fit

    def __init__(self):
        self.used, self.coded = set(), set()

    def numbers(self, columns):
        self.used.update(columns.tolist())

    def categories(self, columns):
        self.coded.update(columns.tolist())
        return [None] * len(columns)


def uses_of(estimator):
    """`Uses` of the columns by a fitted estimator."""
    reading, asked = getattr(estimator, "_reading", None), _Asked()
    observation = resolve_observation(estimator._observation, reading)
    observation = observation.for_frame(asked, np.arange(estimator.n_features_in_))
    return Uses(observation, sorted(asked.used - asked.coded), asked.coded)


def names_of(x):
    """Names of the columns of a frame, strings; None if there are none."""
    return [str(name) for name in x.columns] if hasattr(x, "columns") else None


def numbers_in(x, columns):
    """Numbers (n, m) in some columns of rows, NaN where they are missing.

    Raises ValueError, with the name of the column, if it does not hold numbers.
    """
    if is_frame(x):
        found = [floats_of(x, d) for d in columns]
        return np.stack(found, axis=1) if found else np.empty((len(x), 0))
    if issparse(x):
        return x.tocsr()[:, columns].toarray().astype(float)
    return np.asarray(np.asarray(with_nan(x))[:, columns], dtype=float)


def columns_of_numbers(x):
    """Positions of the columns that hold numbers."""
    if not is_frame(x):
        return list(range(np.shape(x)[1]))
    return [d for d in range(x.shape[1]) if _has_numbers(x, d)]


def _has_numbers(frame, d):
    try:
        floats_of(frame, d)
    except ValueError:
        return False
    return True
