"""From dask collections and lists to chunks: the arguments of `fit`, one set for each chunk."""

from __future__ import annotations

import time
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from ..inputs.masked_arrays import refuse_masked
from ..inputs.tables import holds_arguments
from .errors import ChunkError
from .recognition import is_of_dask, is_reference

# Attempts at loading a chunk, and seconds between the first two; the pause doubles.
ATTEMPTS, _PAUSE = 3, 0.1


class Chunk(NamedTuple):
    """One chunk of the data, whose rows are not here.

    Attributes
    ----------
    name : str
        Name in errors.
    x : object
        What gives the rows: a dask collection, a future, or a reference with a method ``load``. Its value is
        what `fit` takes as X, or a dict of arguments of `fit` by name.
    others : dict
        Other arguments of `fit` by name, for this chunk alone; their values may be of dask as well.
    """

    name: str
    x: Any
    others: dict

    @property
    def is_lazy(self):
        """Whether dask has the rows, and not a loader of the user's own."""
        return is_of_dask(self.x)

    def arguments(self):
        """Arguments of `fit` by name, loaded in this process."""
        return with_others(_tried(self._value, self.name), self._others())

    def _value(self):
        return _computed(self.x) if self.is_lazy else self.x.load()

    def _others(self):
        if not any(is_of_dask(value) for value in self.others.values()):
            return self.others
        return _tried(
            lambda: {name: _computed(value) for name, value in self.others.items()}, self.name
        )


def with_others(value, others):
    """Arguments of `fit` by name: what a chunk's loader gave, with those that came beside it."""
    others = {name: v for name, v in others.items() if v is not None}
    return {**others, **value} if holds_arguments(value) else {**others, "X": value}


def _computed(value):
    """A value that may be a dask collection or a future, computed by dask's own scheduler."""
    if not is_of_dask(value):
        return value
    return value.compute() if hasattr(value, "compute") else value.result()


def _tried(load, name):
    """Return the result of ``load()``, in up to three attempts: files and networks have hiccups."""
    for attempt in range(ATTEMPTS):
        try:
            return load()
        except Exception as error:
            if attempt + 1 == ATTEMPTS:
                raise ChunkError(not_loaded(name, error)) from error
        time.sleep(_PAUSE * 2**attempt)


def not_loaded(name, error):
    """Message of a `ChunkError`."""
    return (
        f"{name} could not be loaded, in {ATTEMPTS} attempts: {type(error).__name__}: {error}. Mend what "
        "loads it, or leave it out. The estimator stays as it was before this call."
    )


def chunks_of(x, given):
    """List of `Chunk` of a dask collection or a list of chunks.

    Parameters
    ----------
    x : dask collection, or list
        See `are_chunks`.
    given : dict
        Other arguments of `fit` by name: for rows of a dask array arrays, dask arrays or a number; for a list
        a list with one entry for each chunk. Beside ``lengths``, weights may be of sequences.
    """
    if isinstance(x, (list, tuple)):
        parts, names, sizes = list(x), [_name(item, i) for i, item in enumerate(x)], None
    else:
        parts, sizes = _parts(x)
        names = [f"Chunk {i}" for i in range(len(parts))]
    cut, n = {}, len(parts)
    if sizes is not None and given.get("lengths") is not None:
        given = {**given, **_of_sequences_at_hand(given, sizes)}
    for name in sorted(given, key=lambda name: name != "lengths"):
        per_sequence = name == "sample_weight" and _are_of_sequences(given, sizes)
        of_units = [len(lengths) for lengths in cut["lengths"]] if per_sequence else sizes
        cut[name] = _cut(given[name], name, n, of_units)
    return [
        Chunk(name, part, {key: values[i] for key, values in cut.items()})
        for i, (name, part) in enumerate(zip(names, parts, strict=True))
    ]


def _of_sequences_at_hand(given, sizes):
    """Lengths, and weights if they are of sequences, computed: their chunks are not those of rows."""
    out = {"lengths": _tried(lambda: _computed(given["lengths"]), "lengths")}
    weight = given.get("sample_weight")
    if _is_vector(weight) and weight.shape[0] == len(out["lengths"]) != sizes.sum():
        out["sample_weight"] = _tried(lambda: _computed(weight), "sample_weight")
    return out


def _has_parts(value):
    """Whether a dask collection has parts, as arrays do; delayed objects only seem to have any method."""
    return hasattr(type(value), "to_delayed")


def _is_vector(value):
    """Whether a value is a dask array of one dimension."""
    return is_of_dask(value) and hasattr(type(value), "rechunk") and value.ndim == 1


def _are_of_sequences(given, sizes):
    """Whether the weights among arguments are of the sequences that ``lengths`` tells, and not of rows."""
    weight, lengths = given["sample_weight"], given.get("lengths")
    if sizes is None or any(
        x is None or is_of_dask(x) or np.ndim(x) == 0 for x in (weight, lengths)
    ):
        return False
    return len(weight) == len(lengths) != np.sum(sizes)


def _name(item, i):
    return f"Chunk {item.batch_id!r}" if is_reference(item) else f"Chunk {i}"


def _parts(x):
    """Delayed parts of a dask collection, and their numbers of rows; None for these if they are not known."""
    if not _has_parts(x):
        if hasattr(x, "compute"):
            raise ValueError(
                "X is a single delayed object of dask: give it in a list, [X], which may hold one such "
                "object for each chunk."
            )
        return [x], None
    if hasattr(x, "chunks"):
        if x.ndim != 2:
            raise ValueError(
                f"X is a dask array of {x.ndim} dimension(s); it must have two, (n_samples, n_features). "
                "Give X.reshape(-1, 1) if there is a single feature."
            )
        if len(x.chunks[1]) > 1:
            x = x.rechunk({1: -1})
        sizes = np.asarray(x.chunks[0], dtype=float)
        return x.to_delayed().ravel().tolist(), None if np.isnan(sizes).any() else sizes.astype(int)
    return list(x.to_delayed()), None


def _cut(value, name, n, sizes):
    """One value for each of ``n`` chunks of these sizes (n,), or of unknown ones."""
    if value is None or isinstance(value, Real):
        return [value] * n
    if is_of_dask(value):
        return _cut_lazy(value, name, n, sizes)
    if sizes is None:
        if isinstance(value, (list, tuple)) and len(value) == n:
            return list(value)
        raise ValueError(
            f"{name} cannot be divided among the {n} chunks of X, whose numbers of rows are not known. Give "
            "a list with one entry for each chunk, or a dask array in the same chunks; or call "
            "X.compute_chunk_sizes() before, if X is a dask array."
        )
    refuse_masked(value, name)
    value, edges = np.asarray(value), np.cumsum(sizes)
    if name == "lengths":
        ends = np.concatenate([[0], np.cumsum(value)])  # the first chunks may be empty
        cuts = np.searchsorted(ends, edges)
        whole = np.array_equal(ends[np.minimum(cuts, len(value))], edges)
        if not whole:
            raise ValueError(
                "lengths does not fit the chunks of X: each chunk must hold whole sequences. Rechunk X "
                "at ends of sequences, as by X.rechunk((rows_of_chunks, -1))."
            )
        return np.split(value, cuts[:-1])
    if len(value) != edges[-1]:
        raise ValueError(_other_number(name, len(value), edges[-1]))
    return np.split(value, edges[:-1])


def _other_number(name, n, n_rows):
    return f"{name} has {n} entries, but X has {n_rows} rows; give one entry for each row."


def _cut_lazy(value, name, n, sizes):
    """Delayed parts of a dask array or series of one dimension, which go with those of X."""
    if sizes is not None and _is_vector(value):
        if value.shape[0] == sizes.sum():
            value = value.rechunk((tuple(sizes.tolist()),))
        elif not np.isnan(value.shape[0]):
            raise ValueError(_other_number(name, value.shape[0], sizes.sum()))
    parts = np.ravel(value.to_delayed()).tolist() if _has_parts(value) else [value]
    if len(parts) != n:
        raise ValueError(
            f"{name} has {len(parts)} chunks, but X has {n}: give it in the same chunks as X."
        )
    return parts
