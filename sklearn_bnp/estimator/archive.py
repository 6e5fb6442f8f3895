"""Archives: files of text and arrays, in which models and checkpoints are kept.

Design note
-----------
(a) An archive is a zip file without compression. It holds ``header.json``, ``nodes.json`` and the arrays
    ``arrays/0.npy``, ``arrays/1.npy``, and so on. Any zip program can unpack it, and `numpy.load` reads the
    arrays. Nothing in it can be executed.
(b) A file is written under another name in the same folder, forced to the disk, and then renamed. At any
    moment there is the old file or the new one, and never a part of one, even if the machine loses power.
(c) Whoever made a file, reading it takes no more memory than a small multiple of its length. Sizes that the
    file claims for its parts are compared with the bytes that are there before anything is allocated.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import stat
import time
import zipfile
from contextlib import contextmanager, suppress
from typing import NamedTuple

import numpy as np

# Kinds of numbers, text and dates; no objects and no structures.
_KINDS = "biufcUSMm"
# Bytes that are read at a time.
_CHUNK = 1 << 20
# Seconds: no file takes as long to be written.
_HOUR = 3600.0
# The first date that zip files can hold: the same content gives the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


class Archive(NamedTuple):
    """The content of an archive.

    Attributes
    ----------
    header : dict
        Of text, numbers and lists of these.
    text : str
        JSON.
    arrays : list of ndarray
        Arrays of numbers, text and dates; not of objects.
    """

    header: dict
    text: str
    arrays: list


def write_archive(path, archive):
    """Write an `Archive` in place of the file ``path``, all of it or nothing."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"path={path!r:.200} must be the name of a file, such as 'model.bnp'.")
    path = os.path.expanduser(path)
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            f"path={os.fspath(path)!r} lies in a folder that is not there: make it, by "
            f"os.makedirs({folder!r})."
        )
    _refuse_folder(path)
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as whole:
        whole.writestr(_named("header.json"), json.dumps(archive.header))
        whole.writestr(_named("nodes.json"), archive.text)
        for i, array in enumerate(archive.arrays):
            with whole.open(_named(_array_name(i)), "w", force_zip64=True) as part:
                np.lib.format.write_array(part, np.asarray(array), (1, 0), allow_pickle=False)


def _refuse_folder(path):
    if os.path.isdir(path):
        raise IsADirectoryError(
            f"path={os.fspath(path)!r} is a folder: give the name of a file, such as "
            f"{os.path.join(os.fspath(path), 'model.bnp')!r}."
        )


@contextmanager
def replacing(path):
    """A new binary file that takes the place of ``path`` when the block ends without an error.

    It has the permissions of the old file, if there is one, before anything is written to it.
    """
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    other = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.part")
    try:
        with open(other, "xb") as file:
            with suppress(OSError):  # there is no old file, or the disk knows no permissions
                os.chmod(other, stat.S_IMODE(os.stat(path).st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(other, path)
    except BaseException:
        with suppress(OSError):
            os.remove(other)
        raise
    _sync_folder(folder)


def remove_leftovers(path):
    """Delete what processes that were killed have left of this file, an hour ago or more."""
    folder, name = os.path.split(os.path.realpath(path))
    for other in os.listdir(folder):
        if other.startswith(f".{name}.") and other.endswith(".part"):
            other = os.path.join(folder, other)
            with suppress(OSError):  # another process may have been faster
                if time.time() - os.path.getmtime(other) > _HOUR:
                    os.remove(other)


def _sync_folder(folder):
    """Force the new name of a file to the disk, where folders can be opened."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _named(name):
    return zipfile.ZipInfo(name, _DATE)


def _array_name(i):
    return f"arrays/{i}.npy"


# ---------------------------------------------------------------------- reading


def read_archive(path):
    """The `Archive` of a file; ValueError if it is no archive, or damaged."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(
            f"path={path!r:.200} must be the name of a file that the method save of an estimator wrote."
        )
    path = os.path.expanduser(path)
    _refuse_folder(path)
    with open(path, "rb") as file:
        try:
            return content_of(file)
        except Exception as error:
            raise ValueError(
                f"The file {os.fspath(path)!r} is damaged, or was not written by sklearn_bnp: "
                f"{error or type(error).__name__}. Copy it again from where it was saved, or save the "
                "model again."
            ) from error


def content_of(file):
    """The `Archive` in an open file; any exception if it is no archive, or damaged."""
    with zipfile.ZipFile(file) as whole:
        return _content(whole, os.fstat(file.fileno()).st_size)


def _content(whole, size):
    parts = {info.filename: info for info in whole.infolist()}
    wanted = ["header.json", "nodes.json", *(_array_name(i) for i in range(len(parts) - 2))]
    if sorted(wanted) != sorted(info.filename for info in whole.infolist()):
        raise ValueError("it has other parts than a header, nodes and arrays")
    for info in parts.values():
        plain = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
        if not plain or info.file_size > size:
            raise ValueError(f"{info.filename} is compressed, or longer than the file")
    if sum(info.file_size for info in parts.values()) > size:
        raise ValueError("its parts overlap")
    header = json.loads(whole.read(parts["header.json"]).decode())
    if not isinstance(header, dict):
        raise ValueError("its header is not an object of JSON")
    text = whole.read(parts["nodes.json"]).decode()
    return Archive(header, text, [_array(whole, parts[name], size) for name in wanted[2:]])


def _array(whole, info, size):
    """The array of one part of a file of ``size`` bytes."""
    with whole.open(info) as part:
        if np.lib.format.read_magic(part) != (1, 0):
            raise ValueError(f"{info.filename} is not an array of version 1.0")
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(part)
        if dtype.kind not in _KINDS or dtype.hasobject or dtype.names or dtype.subdtype:
            raise ValueError(f"{info.filename} holds values of type {dtype}")
        if len(shape) > 32 or any(not 0 <= n <= size for n in shape):
            raise ValueError(f"{info.filename} has shape {shape}")
        if math.prod(shape) * dtype.itemsize != info.file_size - part.tell():
            raise ValueError(f"{info.filename} has other bytes than an array of shape {shape}")
        array = np.empty(shape, dtype, order="F" if by_columns else "C")
        if array.size and dtype.itemsize:
            _fill((array.T if by_columns else array).reshape(-1).view(np.uint8), part)
        elif part.read(1):
            raise ValueError(f"{info.filename} is longer than its array")
    if dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise ValueError(f"{info.filename} holds truth values other than 0 and 1")
    return array


def _fill(out, part):
    """Fill an array of bytes from a part of a file, in chunks."""
    for start in range(0, len(out), _CHUNK):
        chunk = part.read(min(_CHUNK, len(out) - start))
        out[start : start + _CHUNK] = np.frombuffer(chunk, np.uint8)
