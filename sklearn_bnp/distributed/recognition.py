"""Data that are worked on where they lie, told from ordinary data without a look at their rows."""

from __future__ import annotations

import sys


def are_chunks(x):
    """Whether X is a dask collection, or a list of chunks, and not rows of data.

    A chunk of a list is a dask collection such as a `dask.delayed` object, a `distributed.Future`, or a
    reference: an object with a ``batch_id`` and a method ``load``.
    """
    if isinstance(x, (list, tuple)):
        return len(x) > 0 and all(is_of_dask(item) or is_reference(item) for item in x)
    return is_of_dask(x)


def is_of_dask(x):
    """Whether an object is a dask collection or a future; dask is imported if one exists."""
    dask, distributed = sys.modules.get("dask"), sys.modules.get("distributed")
    if dask is not None and dask.is_dask_collection(x):
        return True
    return distributed is not None and isinstance(x, distributed.Future)


def is_reference(x):
    """Whether an object has a ``batch_id`` and a method ``load``; delayed objects seem to have anything."""
    return not is_of_dask(x) and hasattr(x, "batch_id") and callable(getattr(x, "load", None))
