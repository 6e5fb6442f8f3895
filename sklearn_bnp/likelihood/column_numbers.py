"""Numbers of columns, from all the ways in which `ColumnTransformer` lets users name columns."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from ..inputs.advice import advice_on, listed

_BOOLEAN = (bool, np.bool_)


def column_numbers(columns, n_features, frame=None):
    """Numbers (m,) of columns.

    Parameters
    ----------
    columns : int, str, slice, list of int, of str or of bool, or callable
        Columns as a user gave them. A callable is given the frame, and returns one of the others.
    n_features : int
        Number of columns of the data.
    frame : pandas or polars frame, or None
        The data, if they are a frame, in which names and callables find columns.
    """
    if callable(columns):
        columns = columns(_needed(frame, columns))
    if isinstance(columns, slice):
        bounds = (columns.start, columns.stop)
        if any(isinstance(bound, str) for bound in bounds):
            columns = _slice_of_names(columns, _needed(frame, columns))
        return np.arange(n_features)[columns]
    found = _items(columns)
    if found and all(isinstance(v, _BOOLEAN) for v in found):
        if len(found) != n_features:
            raise ValueError(
                f"columns={columns!r} holds {len(found)} booleans, but X has {n_features} columns; give one "
                "for each."
            )
        return np.flatnonzero(found)
    if found and all(isinstance(v, str) for v in found):
        names = list(_needed(frame, columns).columns)
        return np.array([_position(name, names) for name in found], dtype=np.intp)
    if not all(isinstance(v, Integral) and not isinstance(v, _BOOLEAN) for v in found):
        raise ValueError(
            f"columns={columns!r} must be whole numbers, names of columns, booleans (one for each column), "
            "a slice or a callable."
        )
    for d in found:
        if not -n_features <= d < n_features:
            raise ValueError(
                f"columns={columns!r} names column {d}, but X has {n_features} columns; count from 0."
            )
    return np.array(found, dtype=np.intp) % n_features


def _items(columns):
    """A list of columns, whether one or several were given."""
    if hasattr(columns, "__iter__") and not isinstance(columns, str):
        return list(columns)
    return [columns]


def _needed(frame, columns):
    """The frame; ValueError if there is none."""
    if frame is None:
        raise ValueError(
            f"columns={columns!r} are for frames, in which columns have names, but X is not a frame; give "
            "numbers of columns, or X as a pandas or polars DataFrame."
        )
    return frame


def _position(name, names):
    """Number of the column with this name."""
    if names.count(name) != 1:
        raise ValueError(
            f"Column {name!r} is {'not in X' if name not in names else 'in X more than once'}; its columns "
            f"are {listed(str(n) for n in names)}.{advice_on(name, [n for n in names if isinstance(n, str)])}"
        )
    return names.index(name)


def _slice_of_names(columns, frame):
    """Slice of numbers from a slice of names, which includes its last column."""
    names = list(frame.columns)
    start = 0 if columns.start is None else _position(columns.start, names)
    stop = len(names) if columns.stop is None else _position(columns.stop, names) + 1
    return slice(start, stop, columns.step)
