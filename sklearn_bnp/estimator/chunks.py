"""Data in chunks that lie elsewhere, for `fit`: how chunks are read and checked where they lie.

Design note
-----------
(a) A chunk goes through the same checks as data in memory, by a copy of the estimator that holds its
    parameters and no more. What can only be known of all chunks is checked by the driver: that columns
    agree, that weights do not vanish, that values are not too small.
(b) Categories of frames are found from the *witness* of each frame: a small frame of the same columns, which
    shows all the categories that occur.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _num_samples, validate_data

from ..distributed.choice_of_place import place_of
from ..distributed.chunks import chunks_of
from ..distributed.recognition import is_of_dask
from ..distributed.source import ChunkInfo, ChunkSource
from ..inputs.frames import is_frame, witness
from ..inputs.moment_sums import largest_by_column
from ..inputs.rows import at_hand
from .sample_weights import check_total_weight
from .validation import check_not_tiny, keep_reading

# Attributes by which an estimator reads data.
_OF_READING = ("n_features_in_", "feature_names_in_", "_reading", "categories_", "_observation")


class ChunkedData(NamedTuple):
    """Checked data in chunks.

    Attributes
    ----------
    source : ChunkSource
    reading : Reading or None
        How frames are read.
    """

    source: ChunkSource
    reading: object

    @property
    def batch(self):
        """All chunks as one batch of a stream."""
        return self.source.everything


class ChunkReader:
    """Checks the arguments of `fit` for one chunk, and makes a batch of them; it can be pickled.

    A slice derives from it and defines ``batch(estimator, X, ...)``, which is None if nothing is left to
    learn from, and ``info(batch)``, a `ChunkInfo`.

    Attributes
    ----------
    names : tuple of str
        Arguments of `fit` that a chunk may have.
    unit : str
        The word for that which has a weight.

    Parameters
    ----------
    estimator : LearnerEstimator
    """

    names: tuple[str, ...] = ("X", "sample_weight")
    unit = "row"

    def __init__(self, estimator):
        self.kind, self._attributes = type(estimator), vars(without_data(estimator))

    @property
    def estimator(self):
        """A copy of the estimator, as it was before the data."""
        copy = self.kind.__new__(self.kind)
        vars(copy).update(self._attributes)
        return copy

    def __call__(self, arguments, name):
        """Batch of a chunk; None if it has no rows, or none of positive weight."""
        unknown = set(arguments).difference(self.names)
        if unknown or "X" not in arguments:
            raise ValueError(
                f"{name} was loaded as a dict of {sorted(map(str, arguments))}; it must hold 'X', and "
                f"may hold {', '.join(repr(n) for n in self.names[1:])}, as fit takes them."
            )
        if _n_rows(arguments["X"]) == 0:
            return None
        weight = arguments.get("sample_weight")
        vanishes = weight is not None and not np.any(weight)
        if vanishes:  # nothing is left of it, but it must be right
            ones = np.ones(np.shape(weight)) if np.ndim(weight) else 1.0
            arguments = {**arguments, "sample_weight": ones}
        try:
            batch = self.batch(self.estimator, **arguments)
            return None if vanishes else batch
        except (ValueError, TypeError) as error:
            raise type(error)(f"{name}: {error}") from error

    def rows_info(self, rows, n_units, weight):
        """`ChunkInfo` of rows (n, D), of units with these weights (n_units,) or None."""
        sparse = issparse(rows.x)
        return ChunkInfo(
            rows.x.shape[0], rows.total_weight, n_units, None if weight is None else weight.sum(),
            rows.x.nnz if sparse else None, largest_by_column(at_hand(rows.x)),
        )  # fmt: skip


def without_data(estimator):
    """A copy of an estimator that holds its parameters, and how it reads data."""
    copy = type(estimator).__new__(type(estimator))
    vars(copy).update(estimator.get_params(deep=False))
    vars(copy).update({k: v for k, v in vars(estimator).items() if k in _OF_READING})
    return copy


def _n_rows(x):
    """Number of rows, or of sequences in a list; None if X has no such number."""
    try:
        return _num_samples(x)
    except TypeError:
        return None


def _in_short(x):
    """The type of a value, and its shape if it has one."""
    shape = getattr(x, "shape", None)
    return f"a {type(x).__name__}" + ("" if shape is None else f" of shape {shape}")


class _Look(NamedTuple):
    """Columns of a chunk: their number and names (None if it has none), and witnesses of frames."""

    n_features: int
    names: object
    witnesses: list


def _look(arguments):
    """`_Look` at the arguments of one chunk."""
    if "X" not in arguments:
        raise ValueError(
            f"Chunk 0 was loaded as a dict of {sorted(map(str, arguments))}; it must hold 'X'."
        )
    x, columns = arguments["X"], BaseEstimator()
    parts = x if isinstance(x, (list, tuple)) and len(x) and np.ndim(x[0]) == 2 else [x]
    validate_data(columns, parts[0], reset=True, skip_check_array=True)
    if not hasattr(columns, "n_features_in_"):
        raise ValueError(
            f"Chunk 0 was loaded as {_in_short(parts[0])}, which is not a table; loaders must return rows, "
            "an array or a frame of two dimensions, or a dict that holds them as 'X'."
        )
    frames = all(is_frame(part) for part in parts)
    return _Look(
        columns.n_features_in_, getattr(columns, "feature_names_in_", None),
        [witness(part) for part in parts] if frames else [],
    )  # fmt: skip


@contextmanager
def chunked_data(estimator, x, given, *, reset, n_batches=None, leaves=False):
    """`ChunkedData` of arguments of `fit` in chunks; what holds them is gone afterwards.

    Parameters
    ----------
    estimator : LearnerEstimator
    x : dask collection or list
        See `are_chunks`.
    given : dict
        Other arguments of `fit` by name.
    reset : bool
        Whether columns, and how frames are read, are found anew and kept by the estimator.
    n_batches : int or None
        Batches that chunks make; one if None.
    leaves : bool
        Whether what only the next visit to a chunk needs stays beside it, and is gone in the end.
    """
    chunks = chunks_of(x, given)
    with place_of(chunks, n_batches, leaves) as place:
        check_groups_are_whole(chunks, place)
        if reset:
            _keep_columns(estimator, place)
        reader = estimator._chunk_reader(estimator)
        place.read_by(reader)
        infos = place.each(reader.info)
        source = ChunkSource(place, infos, estimator.n_features_in_)
        _check_all(source, reader)
        yield ChunkedData(source, getattr(estimator, "_reading", None))


def check_groups_are_whole(chunks, place):
    """Raise if a group of rows is in two chunks, by groups that were given beside them."""
    groups = groups_beside(chunks)
    if any(is_of_dask(own) for own in groups):
        groups = place.look(_groups, range(place.n_chunks))
    require_whole_groups(groups)


def groups_beside(chunks):
    """Groups that were given for each chunk; an empty list if none were given."""
    groups = [chunk.others.get("groups") for chunk in chunks]
    return [] if all(own is None for own in groups) else groups


def require_whole_groups(groups):
    """Raise if an id is in two of these arrays; they may be None."""
    ids = [np.unique(np.asarray(own)) for own in groups if own is not None]
    found, n = np.unique(np.concatenate(ids or [[]]), return_counts=True)
    twice = found[n > 1].tolist()
    if twice:
        raise ValueError(
            f"groups has rows of {twice[0]!r} in several chunks of X; each chunk must hold whole "
            "groups. If each chunk numbers its groups anew, make all ids differ, as by f'{chunk}-{id}'. "
            "Otherwise sort rows by group, and cut X at ends of groups, a dask array by "
            "X.rechunk((rows_of_chunks, -1))."
        )


def _groups(arguments):
    """Ids in the groups of a chunk; None if it has no groups."""
    return np.unique(np.asarray(arguments["groups"])) if "groups" in arguments else None


def _keep_columns(estimator, place):
    """Find columns, and how frames are read, and let the estimator keep them."""
    for name in ("_reading", "categories_", "feature_names_in_"):
        vars(estimator).pop(name, None)
    [first] = place.look(_look, [0])
    estimator.n_features_in_ = first.n_features
    if first.names is not None:
        estimator.feature_names_in_ = first.names
    if first.witnesses:
        others = place.look(_look, range(1, place.n_chunks))
        keep_reading(estimator, [w for look in (first, *others) for w in look.witnesses])


def _check_all(source, reader):
    """Checks of which no chunk knows enough."""
    if not source.known:
        raise ValueError(
            "X has no rows to learn from: all its chunks are empty, or have the weight 0 throughout."
        )
    if source.mean_weight is not None:
        check_total_weight(source.total_unit_weight, reader.unit)
    largest = [info.largest for info in source.known if info.largest is not None]
    if largest:
        check_not_tiny(np.max(largest, axis=0))


def check_suits_chunks(estimator, settings):
    """Raise if a parameter asks for what only data in memory can give."""
    name = type(estimator).__name__
    if settings.stochastic:
        raise ValueError(
            f"learning_method='stochastic' of {name} draws batches from all over the data, which lie in "
            "chunks: use 'memoized', or call partial_fit with one chunk after the other."
        )
    if settings.batch_size is not None:
        raise ValueError(
            f"batch_size={settings.batch_size} is not for data in chunks, which are never cut: leave it "
            "None, and rechunk X, or set n_batches, the number of batches into which chunks are gathered."
        )
    if getattr(estimator, "warm_start", False):
        raise ValueError(
            "warm_start=True is for data in memory: leave it False for data in chunks, or go on from a "
            "fit by partial_fit."
        )


def check_init_suits_chunks(estimator, settings):
    """Raise if first components are asked for that only data in memory can give."""
    if callable(settings.init_params) or (
        not settings.starts_by_name and np.ndim(settings.init_params) != 2
    ):
        raise ValueError(
            f"init_params of {type(estimator).__name__} holds or makes responsibilities of rows, which "
            "lie in chunks: use one of its names."
        )
