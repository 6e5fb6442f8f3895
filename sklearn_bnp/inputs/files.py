"""Data in files, as references to batches that are read when they are worked on.

Design note
-----------
A *reference* has a ``batch_id`` and a method ``load()``, which reads the rows and nothing else. It holds a
path and positions, no rows and no open file, so that it can be pickled and sent to wherever the file can
be read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .frames import is_frame

# Bytes of the rows of a batch where no size is given: reading them takes far longer than opening the file.
_BATCH_BYTES = 2**26


def open_batches(
    source: Any,
    *,
    batch_size: int | None = None,
    name: str | None = None,
    columns: Any = None,
    lengths: ArrayLike | None = None,
) -> list[Any]:
    """References to batches of data in files, which are read one at a time.

    Give the list to `fit`, which loads one batch after the other and never holds all rows. A reference has a
    ``batch_id`` and a method ``load()``, which returns what `fit` takes as X. It holds no rows and no open
    file, and can be pickled.

    Parameters
    ----------
    source : path, array, or list of paths
        One of these, or a list of paths of the same kind, one after the other:

        - a ``.npy`` file of rows, a `numpy.memmap` of rows that follow one another, or another array with
          ``shape``, ``dtype`` and slices of rows, such as an ``h5py.Dataset`` or a ``zarr.Array``;
        - an ``.h5`` or ``.hdf5`` file, with the ``name`` of a dataset in it;
        - a ``.zarr`` folder, with the ``name`` of an array in it if it is a group;
        - a ``.parquet`` file, of which ``load()`` gives frames; a batch is made of whole row groups;
        - an ``.npz`` file, which is one batch: a sparse matrix from `scipy.sparse.save_npz`, or arrays named
          as arguments of `fit`, such as ``X`` and ``sample_weight``.
    batch_size : int, default=None
        The greatest number of rows in a batch. Batches of a file are of nearly equal size. Storage chunks
        of a file stay whole, unless they have more rows than that. A row group of a parquet file, or a
        sequence, is never cut, however long it is. If None, a batch has 64 MiB of numbers, or is one row
        group.
    name : str, default=None
        Name of a dataset in an HDF5 file, or of an array in a zarr group.
    columns : list of str, default=None
        Columns of parquet files that are read; all if None. A column that pandas saved as an index is a
        column of the frames if it is named here.
    lengths : array-like of int, default=None
        Lengths of the sequences that the rows are, for `HDPHMMVB`. Batches are whole sequences, and
        ``load()`` gives a dict of ``X`` and ``lengths``.

    Returns
    -------
    references : list
        One for each batch, in the order of the rows. ``batch_id`` is its number, and ``n_rows`` its number of
        rows, or None of an ``.npz`` file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a file is of another kind, or ``name``, ``columns`` or ``lengths`` do not go with it.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn_bnp import DPMixtureVB, open_batches
    >>> with TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", np.random.default_rng(0).normal(size=(1000, 2)))
    ...     model = DPMixtureVB(random_state=0)
    ...     for batch in open_batches(f"{folder}/rows.npy", batch_size=400):
    ...         model = model.partial_fit(batch.load(), batch_id=batch.batch_id)
    >>> model.n_components_
    1
    """
    if batch_size is not None and not (isinstance(batch_size, Integral) and batch_size >= 1):
        raise ValueError(f"batch_size={batch_size!r} must be a whole number, 1 or more, or None.")
    if isinstance(columns, str):
        raise ValueError(f"columns={columns!r} must be a list of names: give [{columns!r}].")
    several = isinstance(source, (list, tuple))
    if several and lengths is not None:
        raise ValueError("lengths are for rows in one file: open each file with its own lengths.")
    parts = []
    for one in source if several else [source]:
        opened = _opened(one, name, columns)
        if columns is not None and not isinstance(opened, _Parquet):
            what = one if isinstance(one, (str, Path)) else f"this {type(one).__name__}"
            raise ValueError(
                f"columns={columns!r} is for parquet files, and {what} is not one: its columns are read "
                "together. Leave columns out, or save those that you want in a file of their own."
            )
        if isinstance(opened, _Arrays):
            parts += opened.cut(batch_size, lengths)
        elif lengths is not None:
            raise ValueError(f"lengths are for arrays of rows: leave lengths out for {one}.")
        else:
            parts += opened.cut(batch_size)
    if not parts:
        raise ValueError(f"source={source!r} holds no rows; give files or arrays that hold some.")
    return [part.named(i) for i, part in enumerate(parts)]


# ---------------------------------------------------------------------- references


@dataclass(frozen=True, eq=False)
class BatchReference:
    """A batch that is read from a file when it is loaded.

    Attributes
    ----------
    batch_id : int
        Number of the batch.
    n_rows : int or None
        Number of rows, if it is known before they are read.
    content : object
        Its ``read()`` gives the rows.
    """

    batch_id: int
    n_rows: int | None
    content: Any

    def load(self):
        """Read the rows.

        Returns
        -------
        rows : ndarray, sparse matrix, frame or dict
            What `fit` takes as X, or a dict of its arguments by name.
        """
        return self.content.read()


@dataclass(frozen=True, eq=False)
class _Slice:
    """Rows of an array; with ``lengths`` a dict."""

    array: Any
    first: int
    last: int
    lengths: Any = None

    def named(self, i):
        return BatchReference(i, self.last - self.first, self)

    def read(self):
        rows = self.array.rows(self.first, self.last)
        return rows if self.lengths is None else {"X": rows, "lengths": self.lengths}


@dataclass(frozen=True, eq=False)
class _RowGroups:
    """Row groups of a parquet file, as a frame."""

    path: str
    groups: tuple
    n_rows: int
    columns: tuple | None

    def named(self, i):
        return BatchReference(i, self.n_rows, self)

    def read(self):
        from pyarrow import parquet

        columns = None if self.columns is None else list(self.columns)
        with parquet.ParquetFile(self.path) as file:
            table = file.read_row_groups(list(self.groups), columns=columns)
        return (table if columns is None else _without_index(table)).to_pandas()


def _without_index(table):
    """An arrow table of which pandas makes no column an index."""
    metadata = dict(table.schema.metadata or {})
    if b"pandas" not in metadata:
        return table
    of_pandas = {**json.loads(metadata[b"pandas"]), "index_columns": []}
    return table.replace_schema_metadata({**metadata, b"pandas": json.dumps(of_pandas)})


@dataclass(frozen=True, eq=False)
class _Archive:
    """All arrays of an ``.npz`` file, or the sparse matrix in it."""

    path: str

    def named(self, i):
        return BatchReference(i, None, self)

    def cut(self, batch_size):
        return [self]

    def read(self):
        with np.load(self.path, allow_pickle=False) as arrays:
            if "format" not in arrays:
                return {key: arrays[key] for key in arrays.files}
        return sparse.csr_matrix(sparse.load_npz(self.path))


# ---------------------------------------------------------------------- files


def _opened(source, name, columns):
    """Open a path or an array, so that references to its parts can be made."""
    if not isinstance(source, (str, Path)):
        _refuse_collections(source)
        if not all(hasattr(source, key) for key in ("shape", "dtype", "__getitem__")):
            raise ValueError(
                f"source={source!r} is neither a path nor an array with shape, dtype and slices of rows. "
                "Give the path of a file, a memory map, a dataset of h5py or an array of zarr."
            )
        if name is not None:
            raise ValueError(
                f"name={name!r} is for paths of HDF5 files and zarr groups, and source is a "
                f"{type(source).__name__}, which is an array already: leave name out."
            )
        return _Arrays(_lasting(source), source.shape, source.dtype, _chunk_rows(source))
    path, ending = str(Path(source).resolve()), Path(source).suffix.lower()
    if not Path(path).exists():
        raise FileNotFoundError(f"There is no {path}, which source names: correct the path.")
    if name is not None and ending not in (".h5", ".hdf5", ".zarr"):
        raise ValueError(f"name={name!r} is for HDF5 files and zarr groups, and {path} is neither.")
    if ending == ".parquet":
        return _Parquet(path, None if columns is None else tuple(columns))
    if ending == ".npz":
        return _Archive(path)
    if ending == ".npy":
        array = _Npy(path)
    elif ending in (".h5", ".hdf5"):
        if name is None:
            raise ValueError(
                f"{path} is an HDF5 file: give the name of a dataset in it by name=..."
            )
        array = _HDF5(path, name)
    elif ending == ".zarr":
        array = _Zarr(path, name)
    else:
        raise ValueError(
            f"{path} ends with {ending!r}; give a .npy, .npz, .parquet, .h5, .hdf5 or .zarr file, or an "
            "array."
        )
    with array.opened() as rows:
        return _Arrays(array, rows.shape, rows.dtype, _chunk_rows(rows))


def _refuse_collections(source):
    """Raise if a source is of dask, or a sparse matrix or frame in memory, which `fit` takes as they are."""
    if hasattr(type(source), "__dask_graph__"):
        raise ValueError(
            "source is of dask, which has chunks already: give it to fit as it is; if it is delayed, in "
            "a list."
        )
    if sparse.issparse(source) or is_frame(source):
        remedy = "scipy.sparse.save_npz" if sparse.issparse(source) else "to_parquet"
        raise ValueError(
            f"source is a {type(source).__name__}, whose rows are in memory: give it to fit as it is, or "
            f"save it by {remedy} and give the path."
        )


def _chunk_rows(array):
    """Rows of a storage chunk of an HDF5 dataset or a zarr array; 1 if it has none."""
    chunks = getattr(array, "chunks", None)
    return chunks[0] if isinstance(chunks, tuple) and chunks else 1


@dataclass(frozen=True, eq=False)
class _Arrays:
    """An array of rows that can be read again, and the facts that say how to cut it."""

    array: Any
    shape: tuple
    dtype: np.dtype
    chunk_rows: int

    def cut(self, batch_size, lengths=None):
        """List of `_Slice`, of nearly equal size."""
        if len(self.shape) != 2:
            raise ValueError(
                f"source is an array of shape {self.shape}; it must have two axes, rows and columns. Save "
                "array.reshape(-1, 1) if it has a single column."
            )
        if batch_size is None:
            row_bytes = max(1, prod(self.shape[1:]) * self.dtype.itemsize)
            batch_size = max(1, _BATCH_BYTES // row_bytes)
        if lengths is not None:
            return self._whole_sequences(batch_size, np.asarray(lengths))
        n_rows, unit = self.shape[0], self.chunk_rows if self.chunk_rows <= batch_size else 1
        n_units = -(-n_rows // unit)
        n_batches = -(-n_units // (batch_size // unit))
        edges = np.minimum(np.arange(n_batches + 1) * n_units // max(n_batches, 1) * unit, n_rows)
        return [_Slice(self.array, a, b) for a, b in _pairs(edges)]

    def _whole_sequences(self, batch_size, lengths):
        """Slices of whole sequences of these ``lengths`` (n,)."""
        if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or lengths.min(initial=1) < 1:
            raise ValueError(f"lengths={lengths.tolist()!r:.200} must be whole numbers, 1 or more.")
        ends = np.cumsum(lengths)
        if (ends[-1] if len(ends) else 0) != self.shape[0]:
            raise ValueError(
                f"lengths add up to {lengths.sum()}, but there are {self.shape[0]} rows; give the length of "
                "each sequence."
            )
        out, first = [], 0
        while first < len(ends):
            start = ends[first] - lengths[first]
            last = max(first + 1, int(np.searchsorted(ends, start + batch_size, side="right")))
            out.append(_Slice(self.array, int(start), int(ends[last - 1]), lengths[first:last]))
            first = last
        return out


def _pairs(edges):
    """Pairs of successive numbers of an array, as Python's."""
    edges = edges.tolist()
    return [(a, b) for a, b in pairwise(edges) if a < b]


@dataclass(frozen=True, eq=False)
class _Parquet:
    """A parquet file."""

    path: str
    columns: tuple | None

    def cut(self, batch_size):
        """List of `_RowGroups`, as many groups together as ``batch_size`` rows have room for."""
        from pyarrow import parquet

        with parquet.ParquetFile(self.path) as file:
            known = file.schema_arrow.names
            sizes = [
                file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)
            ]
        unknown = sorted(set(self.columns or ()) - set(known))
        if unknown:
            raise ValueError(f"columns holds {unknown}; the columns of {self.path} are {known}.")
        out, groups, n_rows = [], [], 0
        for g, size in enumerate(sizes):
            if groups and (batch_size is None or n_rows + size > batch_size):
                out.append(_RowGroups(self.path, tuple(groups), n_rows, self.columns))
                groups, n_rows = [], 0
            if size:
                groups, n_rows = [*groups, g], n_rows + size
        if groups:
            out.append(_RowGroups(self.path, tuple(groups), n_rows, self.columns))
        return out


# ---------------------------------------------------------------------- arrays that can be read again


class _Opened:
    """A context that gives an array, and closes its file if there is one to close."""

    def __init__(self, array, file=None):
        self._array, self._file = array, file

    def __enter__(self):
        return self._array

    def __exit__(self, *error):
        if self._file is not None:
            self._file.close()


class _Readable:
    """An array of rows that is opened for each reading."""

    def rows(self, first, last):
        """A copy of the rows from ``first`` to before ``last``."""
        with self.opened() as array:
            return np.array(array[first:last])


@dataclass(frozen=True, eq=False)
class _Npy(_Readable):
    """The array of a ``.npy`` file."""

    path: str

    def opened(self):
        return _Opened(np.load(self.path, mmap_mode="r", allow_pickle=False))


@dataclass(frozen=True, eq=False)
class _Raw(_Readable):
    """The array of a file without a header, as `numpy.memmap` has it."""

    path: str
    dtype: np.dtype
    offset: int
    shape: tuple
    order: str

    def opened(self):
        return _Opened(
            np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order=self.order)
        )


@dataclass(frozen=True, eq=False)
class _HDF5(_Readable):
    """A dataset of an HDF5 file."""

    path: str
    name: str

    def opened(self):
        import h5py

        file = h5py.File(self.path, "r")
        if not isinstance(file.get(self.name), h5py.Dataset):
            names = []
            file.visititems(
                lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None
            )
            file.close()
            raise ValueError(
                f"name={self.name!r} is not a dataset in {self.path}; give the name of one, among {names}."
            )
        return _Opened(file[self.name], file)


@dataclass(frozen=True, eq=False)
class _Zarr(_Readable):
    """An array of a zarr store in a folder."""

    path: str
    name: str | None

    def opened(self):
        import zarr

        found = zarr.open(self.path, mode="r")
        if self.name is not None and not isinstance(found, zarr.Array):
            if self.name not in found:
                raise ValueError(
                    f"name={self.name!r} is not in {self.path}; give the name of an array, among "
                    f"{sorted(found.keys())}."
                )
            found = found[self.name]
        if not isinstance(found, zarr.Array):
            raise ValueError(f"{self.path} is a zarr group: give the name of an array in it.")
        return _Opened(found)


@dataclass(frozen=True, eq=False)
class _Held(_Readable):
    """An array that can be pickled as it is, without its rows, as one of zarr."""

    array: Any

    def opened(self):
        return _Opened(self.array)


def _lasting(array):
    """The array in a form that can be pickled without its rows."""
    if isinstance(array, np.ndarray):
        whole = array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        if getattr(whole, "filename", None) is None:
            raise ValueError(
                "source holds rows in memory: give them to fit as they are, or save them in a file."
            )
        if whole.mode == "c":
            raise ValueError(
                "source is a memory map of mode 'c': what is changed in it is in memory alone, and not in "
                "the file that batches are read from. Give the path, or a memory map of mode 'r', if nothing "
                "is changed; otherwise save the rows by np.save and give that path."
            )
        if array.flags.c_contiguous or array.flags.f_contiguous:
            offset = whole.offset + array.ctypes.data - whole.ctypes.data
            order = "C" if array.flags.c_contiguous else "F"
            return _Raw(str(whole.filename), array.dtype, offset, array.shape, order)
        raise ValueError(
            "source is a view of a memory map whose rows do not follow one another: give the memory map "
            "itself."
        )
    if type(array).__module__.startswith("h5py"):
        return _HDF5(str(Path(array.file.filename).resolve()), array.name)
    return _Held(array)
