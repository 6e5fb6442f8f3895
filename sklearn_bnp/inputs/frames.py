"""Frames: columns that have names, and categories of any kind.

Design note. Of a frame two things are read before it is data like any other: which columns an observation
model means by their names, and the codes of categories that are not numbers. What was found in the fit is
kept, and used for all frames after it. Nothing here depends on pandas or polars: their frames are known
by what they can do. Arrays, sparse matrices and frames of numbers go through as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Reading(NamedTuple):
    """How frames are read.

    Attributes
    ----------
    names : list
        Of all columns.
    observation : ObservationModel
        With columns by number.
    unused : list of int
        Columns that no block takes.
    categories : dict
        Column -> its categories (an ndarray), whose positions are the codes; those of numbers left out.
    """

    names: list
    observation: object
    unused: list
    categories: dict


class FrameColumns:
    """What an observation model is told of frames that have the same columns; it says what it takes.

    Attributes
    ----------
    data : pandas or polars frame
        The first of them.
    unused : set of int
        Columns that were not asked for.
    found : dict
        Column -> its categories, where they are not numbers.
    """

    def __init__(self, frames):
        self.data, self._frames = frames[0], frames
        self.unused, self.found = set(range(frames[0].shape[1])), {}

    def numbers(self, columns):
        """Columns of numbers are taken."""
        self.unused.difference_update(columns.tolist())

    def categories(self, columns):
        """How many categories each column has that is taken; None where they are numbers already."""
        self.numbers(columns)
        return [self._n_categories(d) for d in columns.tolist()]

    def _n_categories(self, d):
        parts = [_column(frame, d) for frame in self._frames]
        if all(_is_numeric(part) for part in parts):
            return None
        self.found[d] = _categories_in(parts, self.data.columns[d])
        return len(self.found[d])


def is_frame(x):
    """Whether X is a pandas or polars frame, and not one that is computed later."""
    of_pandas = hasattr(x, "iloc") and hasattr(x, "columns")
    return hasattr(x, "shape") and (of_pandas or hasattr(x, "with_columns"))


def reading_of(observation, frames):
    """`Reading` of frames of the same columns by an observation model; None if they need none."""
    names, D = list(frames[0].columns), frames[0].shape[1]
    known = all(list(frame.columns) == names for frame in frames)
    if not known or D == 0 or not any(len(frame) for frame in frames):
        return None  # the checks of data will say what is wrong
    frame = FrameColumns(frames)
    by_number = observation.for_frame(frame, np.arange(D))
    if by_number is observation and not frame.found:
        return None
    return Reading(names, by_number, sorted(frame.unused), frame.found)


def as_numbers(reading, part):
    """A part of the data, whose categories are codes if it is a frame.

    Columns that are not used are zero, whatever they hold. ``reading`` is a `Reading` or None.
    """
    if not is_frame(part):
        return part
    frame = part
    unused, categories = [], {}
    if reading is not None:
        if list(frame.columns) != reading.names:
            return frame  # the checks of data will say what is wrong
        unused, categories = reading.unused, reading.categories
    new = {d: np.zeros(len(frame), dtype=np.float32) for d in unused}
    for d in range(frame.shape[1]):
        column, name = _column(frame, d), frame.columns[d]
        if d not in new and not _is_numeric(column):
            known = d in categories
            new[d] = _codes(column, categories[d], name) if known else _floats(column, name)
    return _with_columns(frame, new) if new else frame


# ---------------------------------------------------------------------- pandas and polars


def _column(frame, d):
    """Column d, a series."""
    return frame.iloc[:, d] if hasattr(frame, "iloc") else frame[:, d]


def _is_numeric(column):
    """Whether a series holds numbers or booleans."""
    if hasattr(column, "iloc"):
        return column.dtype.kind in "fiub"
    return column.dtype.is_numeric() or str(column.dtype) == "Boolean"


def _values(column):
    """Values (n,) of a series, and which of them are missing."""
    missing = column.isna() if hasattr(column, "isna") else column.is_null()
    return np.asarray(column, dtype=object), np.asarray(missing, dtype=bool)


def _with_columns(frame, new):
    """A frame with new values (n,) in some columns; the user's stays as it is."""
    if hasattr(frame, "iloc"):
        frame = frame.copy(deep=False)
        for d, values in new.items():
            frame.isetitem(d, values)
        return frame
    series = type(frame[:, 0])
    return frame.with_columns([series(frame.columns[d], values) for d, values in new.items()])


def _floats(column, name):
    """Numbers (n,) of a series that holds them as objects, NaN where they are missing.

    Left to NumPy, dates would be days or microseconds, as the library has them.
    """
    values, missing = _values(column)
    out = np.full(len(values), np.nan)
    for i in np.flatnonzero(~missing):
        try:
            out[i] = values[i]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Column {name!r} of X has dtype {column.dtype} and holds {values[i]!r}, but numbers are "
                "wanted: make it numbers (of dates, the days since some day), leave it out, or take it for "
                "categories in a block of ColumnObservation."
            ) from error
    return out


# ---------------------------------------------------------------------- categories


def _categories_in(columns, name):
    """Categories of series of one column: those that their dtype declares, or those that occur, sorted."""
    declared = [getattr(column.dtype, "categories", None) for column in columns]
    if all(np.ndim(values) == 1 for values in declared):
        each = [np.asarray(values, dtype=object).tolist() for values in declared]
        out = list(dict.fromkeys(v for values in each for v in values))
    else:
        out = _sorted_categories(columns, name)
    if not out:
        raise ValueError(
            f"Column {name!r} of X holds no category at all: all its entries are missing. Leave it out."
        )
    categories = np.empty(len(out), dtype=object)
    categories[:] = out
    return categories


def _sorted_categories(columns, name):
    """Categories that occur."""
    seen = set()
    try:
        for column in columns:
            values, missing = _values(column)
            seen.update(values[~missing].tolist())
        # kinds of values, such as numbers and strings, cannot be compared
        return sorted(seen, key=lambda v: (type(v).__name__, v))
    except TypeError as error:
        raise ValueError(
            f"Column {name!r} of X has dtype {column.dtype}, and what it holds cannot be categories: "
            f"{error}. Make them strings or numbers."
        ) from error


def _codes(column, categories, name):
    """Codes (n,) of a series, NaN where it is missing; exact in single precision."""
    values, missing = _values(column)
    code_of = {value: code for code, value in enumerate(categories.tolist())}
    codes = np.full(len(values), np.nan, dtype=np.float32)
    for i in np.flatnonzero(~missing):
        code = code_of.get(values[i])
        if code is None:
            raise ValueError(
                f"Column {name!r} of X holds {values[i]!r}, a category that was not there in fit; it had "
                f"{categories.tolist()}. Declare all categories in fit, by a dtype of them, or leave such "
                "rows out."
            )
        codes[i] = code
    return codes
