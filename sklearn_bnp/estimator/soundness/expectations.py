"""Expectations of numbers and arrays that were read from a file: each raises ValueError if it is not met."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np


def expect(holds, what):
    """Raise ValueError with the message ``what`` unless the condition ``holds``."""
    if not holds:
        raise ValueError(what)


def expect_type(what, value, *types):
    """Raise unless a value is an instance of one of these types."""
    expect(isinstance(value, types), f"{what} is a {type(value).__name__}")


def expect_numbers(
    what, value, shape, *, kinds="f", size=8, least=-np.inf, most=np.inf, finite=True
):
    """Raise unless a value is an array of numbers of this shape and within these bounds.

    An entry of ``shape`` may be None for any length; ``size`` are the bytes of a number, or None for any.
    Without ``finite`` numbers may be infinite, but not NaN.
    """
    expect_type(what, value, np.ndarray)
    expect(
        value.dtype.kind in kinds and size in (None, value.dtype.itemsize),
        f"{what} holds values of type {value.dtype}",
    )
    fits = value.ndim == len(shape) and all(
        n in (None, m) for n, m in zip(shape, value.shape, strict=True)
    )
    wanted = ", ".join("any" if n is None else str(n) for n in shape)
    expect(fits, f"{what} has shape {value.shape}, not ({wanted})")
    if value.size == 0:
        return
    low, high = value.min(), value.max()
    expect(low == low and high == high, f"{what} holds NaN")
    if finite:
        expect(np.isfinite(low) and np.isfinite(high), f"{what} is not finite")
    expect(low >= least and high <= most, f"{what} is not between {least:g} and {most:g}")


def expect_positions(what, value, shape, below, *, least=0):
    """Raise unless a value is an array of whole numbers of this shape, from ``least`` to before ``below``."""
    expect_numbers(what, value, shape, kinds="iu", size=None, least=least, most=below - 1)


def expect_edges(what, value, last):
    """Raise unless a value is an array of non-decreasing numbers from 0 to ``last``."""
    expect_positions(what, value, (None,), last + 1)
    expect(
        len(value) and value[0] == 0 and value[-1] == last and np.all(np.diff(value) >= 0),
        f"{what} does not go up from 0 to {last}",
    )


def expect_number(what, value, *, least=-np.inf, most=np.inf, finite=True):
    """Raise unless a value is a number within these bounds."""
    expect_type(what, value, Real)
    expect(value == value and (np.isfinite(value) or not finite), f"{what} is {value}")
    expect(least <= value <= most, f"{what} is {value}, not between {least:g} and {most:g}")


def expect_count(what, value, *, least=0):
    """Raise unless a value is a whole number."""
    expect_type(what, value, Integral)
    expect_number(what, value, least=least)


def expect_uids(what, value, below):
    """Raise unless a value holds uids of components that are less than ``below``, each once."""
    names = value.tolist() if isinstance(value, np.ndarray) else list(value)
    expect(all(type(uid) is int and 0 <= uid < below for uid in names), f"{what} are not names")
    expect(len(set(names)) == len(names), f"{what} are not all different")


def expect_same_form(what, value, like):
    """Raise unless a value has the types and shapes of another one, and finite numbers."""
    is_array = isinstance(like, np.ndarray)  # of which memory maps are a kind
    expect(is_array or type(value) is type(like), f"{what} is a {type(value).__name__}")
    if is_array:
        expect_numbers(what, value, like.shape, size=None)
    elif isinstance(like, tuple):
        expect(len(value) == len(like), f"{what} has {len(value)} parts, not {len(like)}")
        for i, (part, other) in enumerate(zip(value, like, strict=True)):
            name = f"{what}.{like._fields[i]}" if hasattr(like, "_fields") else what
            expect_same_form(name, part, other)
    elif isinstance(like, Real):
        expect_number(what, value)
