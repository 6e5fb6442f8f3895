"""The driver's hold on what tasks left on workers: futures of it, or files that all workers can read."""

from __future__ import annotations

import os
import tempfile
import weakref
from contextlib import suppress

import dask
from distributed import LocalCluster
from distributed.protocol.pickle import dumps

from .worker_tasks import Stored


def shared_folder(client):
    """A folder that all workers see, and whether it is a new one; None if none is known."""
    folder = dask.config.get("sklearn-bnp.folder", None)
    if folder is not None:
        return os.fspath(folder), False
    if isinstance(client.cluster, LocalCluster):  # all on this machine
        return tempfile.mkdtemp(prefix="sklearn_bnp-"), True
    return None, False


def take_from_files(visit, folder):
    """Let what was left be what the files hold, so that no task needs to be known any more."""
    first, paths = {}, set()
    for position, future in sorted(visit.kept.items()):  # the name has the group's first chunk
        path = os.path.join(folder, f"{visit.name}-{first.setdefault(future, position)}")
        paths.add(path)
        visit.kept[position] = dumps(Stored(visit.name, path))
    visit.files = {_Files(paths)}


class _Files:
    """Files that are there as long as a visit needs them: they are its own, or its tasks begin with them."""

    def __init__(self, paths):
        weakref.finalize(self, _remove, paths)


def _remove(paths):
    for path in paths:
        with suppress(OSError):
            os.remove(path)


def futures_of_left(away):
    """A list of futures, or pickled `Stored`, of what some parts need of what was left."""
    lefts = (left for part in away for left in part.needed)
    return list(dict.fromkeys(left.visit.kept[left.position] for left in lefts))
