"""Frames, whose columns have names and may hold categories of any kind.

Design note. Two things are read from a frame before it is treated like an array: which columns an
observation model means by their names, and the codes of categories that are not numbers. The result of the
fit is kept, and used for all later frames. Nothing here depends on pandas or polars, whose frames are
recognised by their methods. Arrays, sparse matrices and frames of numbers stay as they are.
"""

from __future__ import annotations

from numbers import Number
from typing import NamedTuple

import numpy as np

from .advice import listed


class Reading(NamedTuple):
    """How frames are read.

    Attributes
    ----------
    names : list
        Names of all columns.
    observation : ObservationModel
        The observation model, with numbers for columns.
    unused : list of int
        Columns that are in no block.
    categories : dict
        From the number of a column to its categories (an ndarray), whose positions are the codes. Columns
        of numbers are not in it.
    """

    names: list
    observation: object
    unused: list
    categories: dict


class FrameColumns:
    """Frames with the same columns, of which an observation model asks for the columns that it uses.

    Attributes
    ----------
    data : pandas or polars frame
        The first frame.
    unused : set of int
        Columns that no model has asked for.
    found : dict
        From the number of a column to its categories, for columns that do not hold numbers.
    """

    def __init__(self, frames):
        self.data, self._frames = frames[0], frames
        self.unused, self.found = set(range(frames[0].shape[1])), {}

    def numbers(self, columns):
        """Note that columns are used as numbers."""
        self.unused.difference_update(columns.tolist())

    def categories(self, columns):
        """Number of categories of each column; None where rows tell it. Notes that they are used.

        Rows tell it of columns of numbers, and of those whose dtype declares no categories: some categories
        may then be of rows of weight 0 alone.
        """
        self.numbers(columns)
        return [self._n_categories(d) for d in columns.tolist()]

    def _n_categories(self, d):
        parts = [_column(frame, d) for frame in self._frames]
        if all(_is_numeric(part) for part in parts):
            return None
        self.found[d] = _categories_in(parts, self.data.columns[d])
        return len(self.found[d]) if _are_declared(parts) else None


def is_frame(x):
    """Whether X is a pandas or polars frame, and not one that is computed later."""
    of_pandas = hasattr(x, "iloc") and hasattr(x, "columns")
    return hasattr(x, "shape") and (of_pandas or hasattr(x, "with_columns"))


def is_sparse_frame(x):
    """Whether X is a frame whose columns are all sparse, of which scikit-learn makes a sparse matrix."""
    if not (is_frame(x) and hasattr(x, "iloc") and len(x.shape) == 2 and x.shape[1]):
        return False
    return all(hasattr(dtype, "fill_value") for dtype in x.dtypes)


def require_zeros_to_fill(frame):
    """Raise unless what the columns of a sparse frame do not store is 0."""
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if dtype.fill_value != 0:
            raise ValueError(
                f"Column {name!r} of X has dtype {dtype}, in which {dtype.fill_value!r} is not stored. In "
                "sparse rows that must be 0: give X.sparse.to_dense()."
            )


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


def witness(frame):
    """A small frame of the same columns and types, in which all categories of the frame occur."""
    rows = [np.zeros(min(1, len(frame)), dtype=np.intp)]
    for d in range(frame.shape[1]):
        column = _column(frame, d)
        if not _is_numeric(column):
            values, missing = _values(column)
            try:
                first = {value: i for i, value in enumerate(values.tolist()) if not missing[i]}
            except TypeError:  # these cannot be categories, as will be said
                return frame
            rows.append(np.fromiter(first.values(), dtype=np.intp, count=len(first)))
    rows = np.unique(np.concatenate(rows))
    return frame.iloc[rows] if hasattr(frame, "iloc") else frame[rows]


def as_numbers(reading, part):
    """A part of the data, whose categories are codes if it is a frame.

    Columns that are not used are zero, whatever they hold. ``reading`` is a `Reading` or None. Beside columns
    of floats, codes are in single precision, so that the floats decide about the precision of the whole. If
    there are none, it is double, as of an array of codes.
    """
    if not is_frame(part):
        _require_categories_like_codes(reading)
        return part
    frame = part
    unused, categories = [], {}
    if reading is not None:
        if list(frame.columns) != reading.names:
            return frame  # the checks of data will say what is wrong
        unused, categories = reading.unused, reading.categories
    new = {d: np.zeros(len(frame)) for d in unused}
    for d in range(frame.shape[1]):
        column, name = _column(frame, d), frame.columns[d]
        known = d in categories
        if d in new:
            continue
        if not _is_numeric(column):
            new[d] = _codes(column, categories[d], name) if known else _floats(column, name)
        elif known:
            _refuse_numbers(column, categories[d], name)
            new[d] = _codes(column, categories[d], name)
        elif _lacks_booleans(column):
            new[d] = _floats(column, name)
    kept = (_column(frame, d) for d in range(frame.shape[1]) if d not in new)
    if any(_is_float(column) for column in kept):
        new.update({d: new[d].astype(np.float32) for d in (*unused, *categories)})
    return _with_columns(frame, new) if new else frame


def _require_categories_like_codes(reading):
    """Raise if an array does not say whether its numbers are codes or the categories of a frame."""
    if reading is None:
        return
    for d, categories in reading.categories.items():
        of_numbers = all(isinstance(value, (Number, np.bool_)) for value in categories)
        if of_numbers and not all(value == i for i, value in enumerate(categories)):
            raise ValueError(
                f"X is not a frame, but the model has learned from frames whose column {reading.names[d]!r} "
                f"holds the categories {_some(categories)}. An array does not say whether its numbers are "
                "these categories or their codes: give a frame."
            )


def _some(values):
    """The first few values."""
    first = ", ".join(f"{value}" for value in values[:5])
    return first + (" ..." if len(values) > 5 else "")


def with_categories(reading, rows):
    """Rows (n, D) with the categories of a `Reading` in place of codes; as they are if there are none.

    ``n_categories`` may allow for more than a frame held. These have no names, and are None.
    """
    if reading is None or not reading.categories:
        return rows
    out = rows.astype(object)
    for d, categories in reading.categories.items():
        codes, names = rows[:, d].astype(np.intp), np.append(categories, None)
        out[:, d] = names[np.minimum(codes, len(categories))]
    return out


# ---------------------------------------------------------------------- pandas and polars


def _column(frame, d):
    """Column d, a series."""
    return frame.iloc[:, d] if hasattr(frame, "iloc") else frame[:, d]


def _is_numeric(column):
    """Whether a series holds numbers or booleans."""
    if hasattr(column, "iloc"):
        return column.dtype.kind in "fiub"
    return column.dtype.is_numeric() or str(column.dtype) == "Boolean"


def _lacks_booleans(column):
    """Whether a series of polars holds booleans, of which some are missing: NumPy makes them objects."""
    return (
        not hasattr(column, "iloc") and str(column.dtype) == "Boolean" and column.null_count() > 0
    )


def _is_float(column):
    """Whether a series holds floating-point numbers."""
    return column.dtype.kind == "f" if hasattr(column, "iloc") else column.dtype.is_float()


def _values(column):
    """Values (n,) of a series, and whether each of them is missing."""
    missing = column.isna() if hasattr(column, "isna") else column.is_null()
    return np.asarray(column, dtype=object), np.asarray(missing, dtype=bool)


def _with_columns(frame, new):
    """A copy of the user's frame with new values (n,) in some columns."""
    if hasattr(frame, "iloc"):
        frame = frame.copy(deep=False)
        for d, values in new.items():
            frame.isetitem(d, values)
        return frame
    series = type(frame[:, 0])
    return frame.with_columns([series(frame.columns[d], values) for d, values in new.items()])


def floats_of(frame, d):
    """Numbers (n,) in column d of a frame, NaN where they are missing; ValueError if it holds others."""
    column = _column(frame, d)
    if not _is_numeric(column):
        return _floats(column, frame.columns[d])
    if hasattr(column, "iloc"):
        return column.to_numpy(dtype=float, na_value=np.nan)
    return np.asarray(column, dtype=float)


def _floats(column, name):
    """Numbers (n,) of a series that holds them as objects, NaN where they are missing.

    NumPy must not convert them: dates would become days or microseconds, which depends on the library.
    """
    values, missing = _values(column)
    out = np.full(len(values), np.nan)
    for i in np.flatnonzero(~missing):
        try:
            out[i] = values[i]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Column {name!r} of X has dtype {column.dtype} and holds {values[i]!r}, but here columns "
                "must be numbers. Leave it out, or turn it into numbers (a date into the days since some "
                "day). A column of categories belongs in a block of ColumnObservation."
            ) from error
    return out


# ---------------------------------------------------------------------- categories


def _categories_in(columns, name):
    """Categories of the series of one column: those of their dtype, or else those that occur, sorted."""
    if _are_declared(columns):
        each = [np.asarray(column.dtype.categories, dtype=object).tolist() for column in columns]
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


def _are_declared(columns):
    """Whether the dtypes of the series of one column name its categories."""
    return all(np.ndim(getattr(column.dtype, "categories", None)) == 1 for column in columns)


def _sorted_categories(columns, name):
    """The categories that occur in the series of one column, sorted."""
    seen = set()
    try:
        for column in columns:
            values, missing = _values(column)
            seen.update(values[~missing].tolist())
        # values of different types, such as numbers and strings, cannot be compared
        return sorted(seen, key=lambda v: (type(v).__name__, v))
    except TypeError as error:
        raise ValueError(
            f"Column {name!r} of X has dtype {column.dtype}, and what it holds cannot be categories: "
            f"{error}. Make them strings or numbers."
        ) from error


def _codes(column, categories, name):
    """Codes (n,) of a series, NaN where it is missing."""
    values, missing = _values(column)
    code_of = {value: code for code, value in enumerate(categories.tolist())}
    codes = np.full(len(values), np.nan)
    for i in np.flatnonzero(~missing):
        code = code_of.get(values[i])
        if code is None:
            raise ValueError(
                f"Column {name!r} of X holds {values[i]!r}, a category that was not there in fit; it had "
                f"{listed(categories)}. Declare all categories in fit, by a dtype of them, or leave such "
                "rows out."
            )
        codes[i] = code
    return codes


def _refuse_numbers(column, categories, name):
    """Raise if a series of numbers holds one, and some of the categories of its column are no numbers."""
    other = next((value for value in categories.tolist() if not isinstance(value, Number)), None)
    if other is None:
        return
    values, missing = _values(column)
    given = next((v for v in values[~missing].tolist() if v == v), None)
    if given is None:  # nothing is observed, and so nothing is wrong
        return
    remedy = "Give categories of the same kind"
    if isinstance(other, str):
        text = "astype(str)" if hasattr(column, "iloc") else "cast(str)"
        remedy = f"Convert the column, as by frame[{name!r}].{text}"
    raise ValueError(
        f"Column {name!r} of X has dtype {column.dtype} and holds the number {given!r}, but the categories "
        f"of this column are {listed(categories)}, such as {other!r}, which is not a number. {remedy}. Only "
        "an array without names of columns may hold codes in their place."
    )
