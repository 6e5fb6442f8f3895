"""Checks that data are a table of numbers: messages that name the row, the column and the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, MappingView, Set
from contextlib import contextmanager

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context

from .frames import is_frame

_OF_TEXTS = (
    "for texts, give counts of words, as from sklearn.feature_extraction.text.CountVectorizer()"
    ".fit_transform(texts)"
)
_OF_LISTS_OF_NUMBERS = "give rows of as many numbers, with np.nan for missing ones"
_OF_LISTS_OF_WORDS = (
    "for lists of the words of each document, give CountVectorizer(analyzer=list).fit_transform(X); for "
    "pairs of words and counts, as of gensim, give gensim.matutils.corpus2csc(X, num_terms=n_features).T"
)
# What the first entry of something empty, or without an order, raises; the last one is of memory views.
_NO_FIRST = (TypeError, StopIteration, KeyError, NotImplementedError)
_EXPECTED = "Expected 2D array of shape (n_samples, n_features)"
_OF_FILES = "for a file, read it first, or give sklearn_bnp.open_batches(path)"
_OF_CATEGORIES = (
    "for columns of categories, give a pandas or polars DataFrame and a ColumnObservation, or "
    "numbers for the categories"
)
_OF_SYMBOLS = (
    "for a sequence of symbols, give a DataFrame with one of them in each row, such as "
    "pandas.DataFrame({'symbol': list(text)}), and a ColumnObservation"
)


def holds_arguments(x):
    """Whether a value is a dict of arguments, and no rows: SciPy's matrices of one format are dicts, too."""
    return isinstance(x, Mapping) and not issparse(x)


def require_table(x, *, of_words=False, of_steps=False):
    """Raise if data are no table at all, or of any strings.

    They are to be counts if they are ``of_words``, and rows in the order of time if they are ``of_steps``.
    Only first entries are looked at: what else is wrong with data is found by scikit-learn's checks.
    """
    if x is None or holds_arguments(x):
        what = "None" if x is None else f"a {type(x).__name__}"
        of_columns = "" if x is None else " If its values are columns, give pandas.DataFrame(X)."
        raise ValueError(
            f"X is {what}: Expected 2D array of shape (n_samples, n_features), a sparse matrix, or "
            f"a pandas or polars DataFrame, whose columns have names.{of_columns}"
        )
    of_text = f"{_OF_SYMBOLS}; {_OF_TEXTS}" if of_steps else _OF_TEXTS
    if isinstance(x, (str, bytes)):
        raise ValueError(f"X is a single string, {x!r:.60}: {_OF_FILES}; {of_text}.")
    if hasattr(x, "collect") and hasattr(x, "lazy"):
        kind = type(x).__name__
        raise ValueError(
            f"X is a {kind}, which is computed later: give X.collect(). For data that do not fit "
            "into memory, give its parts to partial_fit, each of them collected."
        )
    if isinstance(x, Iterator):
        raise ValueError(
            f"X is a {type(x).__name__}, which can be read only once: give list(X). For data that "
            "do not fit into memory, give its parts to partial_fit."
        )
    if isinstance(x, (Set, MappingView)) or hasattr(x, "get_group"):
        raise ValueError(f"X is a {type(x).__name__}: {_EXPECTED}. {_remedy_for_view(x)}")
    fields = getattr(getattr(x, "dtype", None), "names", None)
    if fields:
        raise ValueError(
            f"X is a structured array of the fields {fields}: {_EXPECTED}. Give pandas.DataFrame(X), or "
            "numpy.lib.recfunctions.structured_to_unstructured(X)."
        )
    text = _first_text(x, of_words)
    if text is not None:
        one_axis = n_axes(x) < 2
        remedy = of_text if one_axis or of_words else f"{_OF_CATEGORIES}; {_OF_TEXTS}"
        raise ValueError(f"X holds strings, such as {str(text)!r:.60}, and not numbers: {remedy}.")
    kind = getattr(getattr(x, "dtype", None), "kind", None)
    if kind == "c":
        raise ValueError(
            f"Complex data not supported: X has dtype {x.dtype}. Give real and imaginary parts as "
            "columns, np.hstack([X.real, X.imag])."
        )


def _remedy_for_view(x):
    """The end of an error: what to give in place of a set, a view of a dict, or groups of a frame."""
    if hasattr(x, "get_group"):
        return "Give the whole frame, and to a method that takes groups, groups=... as well."
    if isinstance(x, Set):
        return "Give a list or an array, whose rows have an order."
    return "Give list(X)."


def require_columns(frame):
    """Raise if a frame has no columns, or several of one name."""
    names = list(frame.columns)
    if not names:
        raise ValueError(
            f"X holds a {type(frame).__name__} with 0 feature(s) (shape={tuple(frame.shape)}) while a "
            "minimum of 1 is required: give frames with columns."
        )
    twice = next((name for name, n in Counter(names).items() if n > 1), None)
    if isinstance(twice, (str, int)):
        raise ValueError(
            f"Column {twice!r} is in X more than once, and names tell columns apart: rename one of them, or "
            "give X.to_numpy()."
        )


def require_rows(x, *, of_words=False):
    """Raise if data are a list of tables, or its rows differ in length; ``of_words`` as above."""
    if holds_arrays(x):
        raise ValueError(
            f"X holds objects that are arrays or lists: {_EXPECTED}. If they are rows of as many numbers, "
            "give np.stack(X)."
        )
    if not isinstance(x, (list, tuple)) or not len(x):
        return
    shape = getattr(x[0], "shape", ())
    if len(shape) == 2:
        raise ValueError(
            f"X is a list, and its first entry has shape {tuple(shape)}: Expected 2D array. Join tables "
            "by np.concatenate, scipy.sparse.vstack or pandas.concat, or give one after the other to "
            "partial_fit."
        )
    if isinstance(x[0], (list, tuple)) and any(getattr(entry, "shape", ()) for entry in x[0]):
        raise ValueError(f"X is a list of lists of arrays: {_EXPECTED}. Join the arrays to one.")
    sizes = {len(row) if hasattr(row, "__len__") and not issparse(row) else 0 for row in x}
    firsts = (entry for row in x if isinstance(row, (list, tuple)) for entry in row[:1])
    of_pairs = of_words and any(isinstance(entry, tuple) for entry in firsts)
    if len(sizes) == 1 and not of_pairs:
        return
    remedy = _OF_LISTS_OF_WORDS if of_words else _OF_LISTS_OF_NUMBERS
    what = "pairs" if of_pairs else f"{min(sizes)} to {max(sizes)} entries"
    raise ValueError(
        f"X is a list whose rows have {what}: Expected 2D array of shape (n_samples, n_features); "
        f"{remedy}."
    )


def holds_arrays(x):
    """Whether X is an array or a Series of objects that are arrays or lists themselves."""
    if getattr(getattr(x, "dtype", None), "kind", None) != "O" or n_axes(x) != 1 or not len(x):
        return False
    return n_axes(x.iloc[0] if hasattr(x, "iloc") else x[0]) > 0


def n_axes(x):
    """Number of axes of an array, or of lists in each other."""
    try:
        if not hasattr(x, "shape") and hasattr(x, "__array__"):
            x = np.asarray(x)
        return np.ndim(x) if not hasattr(x, "shape") else len(x.shape)
    except ValueError:  # lists of unequal lengths
        return 2 if isinstance(x[0], (list, tuple)) else 1


def _first_text(x, of_words):
    """The first entry of data, or of the columns of a frame of words, if it is a string; None otherwise."""
    if issparse(x):
        return None
    if is_frame(x) and len(x.shape) == 2:
        if not of_words or 0 in x.shape:
            return None  # frames may hold categories, and name the column otherwise
        row = x.iloc[:1].to_numpy(dtype=object)[0] if hasattr(x, "iloc") else x.row(0)
        return next((v for v in row if isinstance(v, str)), None)
    dtype = getattr(x, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "O") in "fiubc":
        return None
    first = x
    for _ in range(3):  # a sequence of rows of entries
        if is_frame(first) or issparse(first):
            return None
        if isinstance(first, (str, bytes)):
            of_objects = getattr(dtype, "kind", None) == "O"  # NumPy makes numbers of their strings
            return None if of_objects and _is_number(first) else first
        try:
            first = next(iter(first))
        except _NO_FIRST:
            return None
    return None


def _is_number(value):
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def in_numpy():
    """Context in which scikit-learn turns arrays of other libraries, such as PyTorch, into NumPy's.

    Under ``array_api_dispatch`` it would leave them as they are, and the kernels take NumPy's alone.
    """
    return config_context(array_api_dispatch=False)


# ---------------------------------------------------------------------- entries that are no numbers


@contextmanager
def says_what_is_no_number(x, name="X"):
    """Context in which errors of a conversion to numbers name the entry that is none, and the remedy."""
    try:
        yield
    except (TypeError, ValueError) as error:
        found = _no_number(x, name)
        if found is None:
            raise
        raise type(error)(f"{found} ({error})") from error


def require_numbers(x):
    """Raise if an array is not of real numbers; of objects, the message names the first that is none."""
    if x.dtype.kind not in "fiub":
        found = _no_number(x, "X")
        raise ValueError(found or f"X has dtype {x.dtype}; it must hold real numbers.")


def _no_number(x, name):
    """Message on the first entry of an array of objects or strings (n, D) that is no number, or None.

    scikit-learn makes numbers of strings only if they are objects.
    """
    if not isinstance(x, np.ndarray) or x.ndim != 2 or x.dtype.kind not in "OUS":
        return None
    for (row, column), value in np.ndenumerate(x):
        if x.dtype.kind != "O" or not _is_number(value):
            value = value.item() if isinstance(value, np.generic) else value
            return (
                f"{name} holds {value!r:.60} in row {row}, column {column}, and columns must be numbers. "
                "Leave this column out, or turn it into numbers (a date into the days since some day); give "
                f"np.nan for a missing value; {_OF_CATEGORIES}."
            )
    return None


# ---------------------------------------------------------------------- numbers that are not finite


def require_finite_counts(x):
    """Raise if sparse counts are not finite, with the row and the column of the first one."""
    at = np.flatnonzero(~np.isfinite(x.data)) if x.dtype.kind == "f" else ()
    if len(at):
        row, column = np.searchsorted(x.indptr, at[0], side="right") - 1, x.indices[at[0]]
        what = "NaN" if np.isnan(x.data[at[0]]) else "infinity"
        raise ValueError(
            f"Input X contains {what} in row {row}, column {column}, but holds counts of words: give 0 "
            "where a word does not occur, or leave the document out."
        )


def refuse_infinity(x, name):
    """Raise if rows hold an infinite number, and name the place of the first one."""
    if issparse(x):
        values = x.data
    else:
        values = np.asarray(x)
    if values.dtype.kind != "f" or values.size == 0:
        return
    largest = max(np.fmax.reduce(values, axis=None), -np.fmin.reduce(values, axis=None))
    if largest == np.inf:
        raise_infinite(x, name)


def raise_infinite(x, name="X"):
    """Raise ValueError with the place of the first infinite number, of which there is one."""
    if issparse(x):
        at = np.flatnonzero(np.isinf(x.data))[0]
        row, column = np.searchsorted(x.indptr, at, side="right") - 1, x.indices[at]
    else:
        row = next(i for i in range(len(x)) if np.isinf(x[i]).any())
        column = np.flatnonzero(np.isinf(x[row]))[0]
    raise ValueError(
        f"Input {name} contains infinity in row {row}, column {column}. Look for errors, such as a division "
        "by zero or the logarithm of zero; leave the row out, or put a finite number there."
    )
