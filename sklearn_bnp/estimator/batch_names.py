"""Checks of ``batch_id``, the names of the batches of a stream."""

from __future__ import annotations

import datetime


def checked_batch_id(batch_id):
    """The name of a batch as it is kept; raise unless it can be looked up."""
    check_batch_id(batch_id)
    return _plain_name(batch_id)


def _plain_name(name):
    """A date or a time of Python in place of one of pandas or of a named time zone, if they are equal.

    Equal names are the same batch, and files can hold names of this kind.
    """
    if type(name) is tuple:
        return tuple(map(_plain_name, name))
    if not isinstance(name, (datetime.date, datetime.timedelta)):
        return name
    plain = _plain_date(name)
    # pandas counts nanoseconds, too; an hour that a time zone has twice is equal to none of another zone
    return plain if plain == name and hash(plain) == hash(name) else name


def _plain_date(name):
    """A date, time or duration without what the types of Python's `datetime` do not know."""
    if isinstance(name, datetime.timedelta):
        return datetime.timedelta(name.days, name.seconds, name.microseconds)
    if not isinstance(name, datetime.datetime):
        return datetime.date(name.year, name.month, name.day)
    if not isinstance(name.tzinfo, (datetime.timezone, type(None))):
        name = name.astimezone(datetime.UTC)
    clock = (name.hour, name.minute, name.second, name.microsecond, name.tzinfo)
    return datetime.datetime(name.year, name.month, name.day, *clock, fold=name.fold)


def check_batch_id(batch_id):
    """Raise unless the name of a batch can be looked up."""
    try:
        hash(batch_id)
    except TypeError as error:
        raise TypeError(
            f"batch_id={batch_id!r} is not hashable; use a number, a str or a tuple of them."
        ) from error
    if _holds_nan(batch_id):
        raise ValueError(
            f"batch_id={batch_id!r} is not equal to itself, so that the batch could not be found again by "
            "this name; use a number, a str or a tuple of them."
        )


def _holds_nan(name):
    """Whether a name is NaN, NaT or NA of any package, or a tuple that holds one."""
    if isinstance(name, tuple):
        return any(map(_holds_nan, name))
    try:
        return bool(name != name)
    except TypeError:  # of NA, which is neither equal to itself nor different
        return True


_NAMELESS = (
    "only fit has been called, or what remembers no names either: combine, or partial_fit with "
    "learning_method='stochastic'"
)


def check_may_forget(batch_id, names, n_batches, memoize):
    """Raise unless a batch is in memory, whose batches have these ``names``, and is not all of it.

    ``n_batches`` counts those whose names are gone, too.
    """
    if batch_id not in names:
        if not memoize:
            raise ValueError(
                f"batch_id={batch_id!r} cannot be forgotten: with memoize=False only the sum of all batches "
                "is remembered. Set memoize=True before the stream begins."
            )
        some = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
        raise ValueError(
            f"batch_id={batch_id!r} is not the name of a batch in memory; "
            + (f"those are {some}." if names else f"there is none, since {_NAMELESS}.")
        )
    if n_batches == 1:
        raise ValueError(
            f"batch_id={batch_id!r} is the only batch, without which nothing is left: begin anew, with a "
            "clone of the estimator."
        )


def check_may_empty(batch_id, n_batches):
    """Raise if a batch that holds nothing would take the place of the only one there is."""
    if n_batches == 1:
        raise ValueError(
            f"X holds no tokens, but batch_id={batch_id!r} is the only batch in memory: nothing would "
            "be left in its place. Give documents with words, or another batch_id."
        )
