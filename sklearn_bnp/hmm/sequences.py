"""Sequences as users hold them, checked, and as the engine wants them: rows one sequence after another.

Design note. There are three ways to say which rows are a sequence: a list of arrays, ``lengths``
(rows of a sequence are neighbours), and ``groups`` (they need not be). A list is told from rows that are
given as lists by its items, which have two dimensions; arrays of one dimension could be either, and are
refused. `Sequences.rows` tells where rows came from, and `Sequences.as_given` brings what was found for
each row back into the form in which they came.
"""

from __future__ import annotations

from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples, validate_data

from ..estimator.observations import require_sparse_family
from ..estimator.sample_weights import check_weights, weight_of_each
from ..estimator.validation import (
    check_rows,
    numbers,
    read_frames,
    real_numbers,
)
from ..inputs.group_ids import check_groups
from ..inputs.masked_arrays import refuse_masked, with_nan
from ..inputs.rows import at_hand, stacked
from ..inputs.tables import (
    holds_arguments,
    holds_arrays,
    in_numpy,
    n_axes,
    refuse_infinity,
    require_table,
    says_what_is_no_number,
)
from ..likelihood.lags import lagged
from .batch import SequenceBatch


class Sequences(NamedTuple):
    """Sequences, and how they stand in X.

    Attributes
    ----------
    batch : SequenceBatch
    rows : ndarray, shape (n_rows,), or None
        The row of X of each row of the batch; None if they are in the same order.
    listed : bool
        Whether X is a list of sequences.
    n_given : int or None
        Rows of X, if some are left out: those of sequences of weight 0.
    reading : Reading or None
        How frames are read.
    """

    batch: SequenceBatch
    rows: np.ndarray | None = None
    listed: bool = False
    n_given: int | None = None
    reading: object = None

    @property
    def n_sequences(self):
        return len(self.batch.indptr) - 1

    @property
    def n_rows(self):
        """Rows, modelled or given."""
        return self.batch.x.shape[0]

    def as_given(self, values):
        """One value for each row, in the order of X; if X is a list, a list of arrays."""
        if self.listed:
            return np.split(values, self.batch.indptr[1:-1])
        if self.rows is None:
            return values
        out = np.empty_like(values)
        out[self.rows] = values
        return out

    def in_order_of_batch(self, values):
        """One value for each row of X, in the order of the batch."""
        return values if self.rows is None else values[self.rows]


def check_sequences(
    estimator, x, lengths, groups, observation, *, reset, min_rows=1, sample_weight=None, of_chunk=False,
    y=None,
):  # fmt: skip
    """`Sequences` of what was given to a method of the estimator, or of a chunk; ``y`` is not used."""
    _refuse_other_forms(x, lengths, groups)
    found = _read(estimator, x, lengths, groups, reset)
    if lengths is None and groups is None:
        _check_unused(y, found)
    _check_number(found.n_rows, min_rows)
    _check_lags(found.batch.indptr, observation)
    if sample_weight is not None:
        weight = _weight_of_sequences(found, sample_weight, lengths, of_chunk)
        found = _weighted(found, weight)
        _check_number(found.n_rows, min_rows)
    return found._replace(batch=found.batch._replace(lags=observation.lags))


def _refuse_other_forms(x, lengths, groups):
    """Raise unless X is a table or a list, and its sequences are told in one way."""
    if lengths is not None and groups is not None:
        raise ValueError(
            "lengths and groups are both given; give lengths if the rows of a sequence are next to "
            "each other, otherwise groups."
        )
    if holds_arguments(x) or hasattr(x, "get_group"):
        items = "list(X.values())" if holds_arguments(x) else "[frame for _, frame in X]"
        raise ValueError(
            f"X is a {type(x).__name__}: Expected 2D array of the rows of all sequences, or a list of "
            f"sequences, such as {items}."
        )
    require_table(x, of_steps=True)


def _read(estimator, x, lengths, groups, reset):
    """`Sequences` of a list, or of a table whose rows are told apart by lengths or groups."""
    if _is_list(x):
        return _of_list(estimator, x, lengths, groups, reset)
    _require_rows(x)
    rows, reading = check_rows(estimator, x, reset=reset)
    if groups is not None:
        return _of_groups(rows, groups)._replace(reading=reading)
    n_rows = rows.shape[0]
    n = np.array([n_rows]) if lengths is None else _check_lengths(lengths, n_rows)
    return Sequences(SequenceBatch("all", rows, _edges(n)), reading=reading)


def require_one_sequence(x):
    """Raise if X is a list of sequences."""
    if isinstance(x, (list, tuple)) and any(n_dimensions(item) >= 2 for item in x):
        raise ValueError(
            f"X is a list of {len(x)} sequences, but predict_next takes the next rows of one: call it for "
            "each sequence X[i] by itself, with the message of the last call for this sequence."
        )


def as_table(x):
    """The next rows of a sequence; a single row becomes a table, and that of a frame keeps its names."""
    if n_axes(x) != 1:
        return x
    if hasattr(x, "to_frame") and hasattr(x, "index"):  # a pandas Series
        return x.to_frame().T
    return np.asarray(with_nan(x))[np.newaxis]


def _require_rows(x):
    """Raise if X has a single axis: it may be one sequence of one feature, or one row."""
    if holds_arrays(x):
        raise ValueError(
            f"X is a {type(x).__name__} of {len(x)} arrays or lists: Expected 2D array, or a list of "
            "sequences, such as list(X)."
        )
    if n_axes(x) == 1:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: X has {len(x)} numbers. The rows of a sequence have "
            "the shape (n_timesteps, n_features). Reshape your data: X.reshape(-1, 1) is a sequence of "
            "a single feature, and X.reshape(1, -1) a single row."
        )


def _check_unused(y, found):
    """Raise if y is not labels, which scikit-learn's tools pass on, but perhaps lengths of sequences."""
    if y is None:
        return
    n, unit = (found.n_sequences, "sequence") if found.listed else (found.n_rows, "row")
    try:
        n_labels = _num_samples(y)
    except TypeError:  # a number
        n_labels = None
    if n_labels == n:
        return
    remedy = "leave it out"
    if not found.listed:
        if _sum(y) == n:
            remedy = f"its numbers sum to the {n} rows of X, as lengths of sequences do"
        remedy += "; to say which rows are a sequence, use lengths=... by name"
    raise ValueError(
        f"y is ignored, and if given must have one label for each {unit} of X ({n}), but it is {y!r:.60}: "
        f"{remedy}."
    )


def _sum(values):
    """The sum of numbers; None of anything else."""
    try:
        total = np.sum(np.asarray(values, dtype=object))
    except (TypeError, ValueError):
        return None
    return total if np.ndim(total) == 0 else None


def _check_number(n_rows, min_rows):
    """Raise if there are fewer rows than it takes."""
    if n_rows < min_rows:
        raise ValueError(
            f"Found array with {n_rows} sample(s) (n_samples={n_rows}) while a minimum of {min_rows} is "
            "required: give longer sequences, or more of them."
        )


def _weight_of_sequences(found, sample_weight, lengths, of_chunk):
    """Weights (n_sequences,), which are given one a sequence or one a row."""
    n = found.n_sequences
    single = isinstance(sample_weight, Real)
    n_weights = 1 if single else len(numbers(sample_weight, "sample_weight"))
    if found.listed or (lengths is not None and n_weights == n):
        return check_weights(sample_weight, n, "sequence", of_chunk=of_chunk)
    if lengths is not None and not single and n_weights != found.n_rows:
        raise ValueError(
            f"sample_weight has shape ({n_weights},); it must be ({n},), one weight a sequence, or "
            f"({found.n_rows},), one a row."
        )
    weight = check_weights(sample_weight, found.n_rows, "row", of_chunk=of_chunk)
    number = np.repeat(np.arange(n), np.diff(found.batch.indptr))
    number = number if found.rows is None else number[np.argsort(found.rows)]
    return weight_of_each(weight, number, n, "sequence")


def _weighted(found, weight):
    """The sequences with their weights; those of weight 0 are left out."""
    batch, keep = found.batch, weight > 0
    if keep.all():
        return found._replace(batch=batch._replace(weight=weight.copy()))
    lengths = np.diff(batch.indptr)
    kept = np.flatnonzero(np.repeat(keep, lengths))
    batch = batch._replace(x=batch.x[kept], indptr=_edges(lengths[keep]), weight=weight[keep])
    rows = kept if found.rows is None else found.rows[kept]
    return found._replace(batch=batch, rows=rows, n_given=int(lengths.sum()))


def _edges(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


# ---------------------------------------------------------------------- lists


def _is_list(x):
    """Whether X is a list, tuple or array of sequences, and not rows."""
    if isinstance(x, np.ndarray):
        return x.ndim == 3 or (x.ndim == 1 and x.dtype == object and _holds_sequences(x))
    return isinstance(x, (list, tuple)) and (len(x) == 0 or _holds_sequences(x))


def _holds_sequences(items):
    """Whether items are sequences, or arrays that could be; rows are lists of equal lengths."""
    if any(n_dimensions(item) >= 2 for item in items) or len({_length(i) for i in items}) > 1:
        return True
    return any(n_dimensions(item) == 1 and not isinstance(item, (list, tuple)) for item in items)


def n_dimensions(item):
    """Dimensions of an array, or of lists in each other, by the first entries of these."""
    if isinstance(item, (list, tuple)):
        return 1 + n_dimensions(item[0]) if item else 1
    return np.ndim(item)


def _length(item):
    """Rows of a sequence, or numbers of a row; None of a number."""
    return len(item) if hasattr(item, "__len__") and not isinstance(item, str) else None


def _of_list(estimator, x, lengths, groups, reset):
    for name, value in {"lengths": lengths, "groups": groups}.items():
        if value is not None:
            raise ValueError(
                f"{name} were given with a list of sequences, which says where sequences begin; leave "
                f"{name} out, or give the rows of all sequences as one array."
            )
    if len(x) == 0:
        raise ValueError(
            "X is an empty list; give a sequence at least, of shape (n_timesteps, n_features)."
        )
    for i, item in enumerate(x):
        if isinstance(item, (list, tuple)) and n_dimensions(item) > 2:
            raise ValueError(
                f"X[{i}] is a {type(item).__name__} of sequences, but X is a list of sequences, each of "
                "shape (n_timesteps, n_features): give one list of all sequences, such as sum(X, [])."
            )
    parts, reading = read_frames(estimator, list(x), reset=reset)
    parts = [_check_sequence(estimator, item, i) for i, item in enumerate(parts)]
    width = parts[0].shape[1]
    for i, part in enumerate(parts):
        if part.shape[1] != width:
            raise ValueError(
                f"X[{i}] has {part.shape[1]} features, but X[0] has {width}; all sequences must have the "
                "same columns."
            )
    for i, item in enumerate(x):  # numbers and names of columns
        whole = item if hasattr(item, "columns") else parts[i]
        validate_data(estimator, whole, reset=reset and i == 0, skip_check_array=True)
    rows = real_numbers(stacked(parts), estimator.observation, check_small=reset)
    indptr = _edges([part.shape[0] for part in parts])
    return Sequences(SequenceBatch("all", rows, indptr), listed=True, reading=reading)


def _check_sequence(estimator, item, i):
    """Rows (T, D) of one sequence of a list."""
    shape = _shape(item)
    if len(shape) != 2:
        raise ValueError(
            f"X[{i}] has shape {shape}, but X is a list of sequences, each of shape (n_timesteps, "
            "n_features). Reshape sequences of a single feature by array.reshape(-1, 1); if X holds the "
            "rows of one sequence, give np.stack(X)."
        )
    if shape[0] == 0:
        raise ValueError(f"X[{i}] has shape {shape}: leave out sequences without rows.")
    require_sparse_family(item, estimator.observation)
    with says_what_is_no_number(item, f"X[{i}]"), in_numpy():
        rows = check_array(
            item, accept_sparse="csr", accept_large_sparse=True, dtype="numeric", order=None,
            input_name=f"X[{i}]", estimator=estimator, ensure_all_finite=False,
        )  # fmt: skip
    refuse_infinity(rows, f"X[{i}]")
    return rows


def _shape(item):
    try:
        return np.shape(item)
    except ValueError:
        return (len(item), "?")


# ---------------------------------------------------------------------- rows of all sequences


def _check_lengths(lengths, n_rows):
    """Lengths (n_sequences,) of sequences."""
    refuse_masked(lengths, "lengths")
    try:
        value = np.asarray(lengths)
    except ValueError:
        value = np.empty(0, dtype=object)
    if value.ndim != 1 or value.dtype.kind not in "iu" or not np.all(value > 0):
        ids = " If these are the ids of the sequences of rows, give them as groups=..."
        raise ValueError(
            f"lengths={lengths!r:.200} must be a list of whole numbers, 1 or more: how many rows of X each "
            f"sequence has.{ids if value.shape == (n_rows,) else ''}"
        )
    if value.sum() != n_rows:
        raise ValueError(
            f"lengths sum to {value.sum()}, but X has {n_rows} rows; give the number of rows of each "
            "sequence."
        )
    return value


def _of_groups(x, groups):
    """Sequences by the ids of rows, in the order in which ids first appear."""
    _, first, number = check_groups(groups, x.shape[0], "sequence")
    place = np.empty(len(first), dtype=np.intp)
    place[np.argsort(first)] = np.arange(len(first))
    sequence_of_row = place[number]
    rows = np.argsort(sequence_of_row, kind="stable")
    indptr = _edges(np.bincount(sequence_of_row))
    if np.all(rows[1:] > rows[:-1]):
        return Sequences(SequenceBatch("all", x, indptr))
    return Sequences(SequenceBatch("all", x[rows], indptr), rows)


def _check_lags(indptr, observation):
    """Raise if a sequence has no rows but those that are given."""
    lengths, lags = np.diff(indptr), observation.lags
    short = np.flatnonzero(lengths <= lags)
    if len(short):
        i = int(short[0])
        # fewer earlier rows than one are no order, and a correlated Gaussian has none
        remedy = ", or lower the order" if lags > 1 else ""
        raise ValueError(
            f"Sequence {i} has {lengths[i]} row(s), but observation={observation!r} takes the first {lags} "
            f"of each as given and needs {lags + 1} or more; leave short sequences out{remedy}."
        )


# ---------------------------------------------------------------------- given rows


def modelled(batch):
    """Rows as the likelihood sees them, not yet prepared, and where sequences begin among them."""
    return lagged(at_hand(batch.x), batch.indptr, batch.lags)


def with_given_rows(values, batch, fill=None):
    """Values of modelled rows, with those of each sequence's first one for the rows that are given.

    Or with ``fill`` for these.
    """
    if batch.lags == 0:
        return values
    lengths = np.diff(batch.indptr)
    place = np.arange(batch.x.shape[0]) - np.repeat(batch.indptr[:-1], lengths) - batch.lags
    starts = np.repeat(batch.indptr[:-1] - batch.lags * np.arange(len(lengths)), lengths)
    out = values[starts + np.maximum(place, 0)]
    if fill is not None:
        out[place < 0] = fill
    return out
