"""Names for what tasks leave where they ran, beside the chunk, for its next visit.

Design note
-----------
(a) Statistics and findings add up over chunks, and come back to the driver. What a model wants of every
    single document would be as large as the data: it stays where the documents are. On the driver a `Left`
    stands for it.
(b) A `Visit` is one visit of tasks to chunks, and holds what these have left; or on a cluster, futures of
    it. When no statistics refer to a visit any more, it is forgotten, and so is what was left. Laps that are
    taken back need no care: the statistics from before the lap refer to the visits from before it.
(c) A `Left` may be sent to the tasks and back. A visit is then its name, and the driver knows it again.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import uuid4
from weakref import WeakValueDictionary

from .statistics import StatBag
from .task import LocalResult

# Visits by name, as long as somebody refers to them.
_visits = WeakValueDictionary()


class Visit:
    """One visit of tasks to chunks.

    Parameters
    ----------
    place : object
        Where the chunks are worked on, on the driver; None elsewhere.
    name : str or None
        A new one if None.

    Attributes
    ----------
    kept : dict
        Position of a chunk -> the list of what its task left, or a future of a dict with that list.
    files : set
        Owners of the files from which what was left can be computed anew.
    """

    def __init__(self, place=None, name=None):
        self.place, self.name, self.kept = place, name or uuid4().hex, {}
        self.files = set()
        _visits[self.name] = self

    def __reduce__(self):
        return _visit, (self.name,)


def _visit(name):
    """The visit of this name."""
    known = _visits.get(name)
    return Visit(name=name) if known is None else known


class Left(NamedTuple):
    """Names a thing that a task left behind.

    Attributes
    ----------
    visit : Visit
    position : int
        Of the chunk.
    number : int
        Of the thing, among those of the task.
    """

    visit: Any
    position: int
    number: int


def parted(result, visit, position):
    """`LocalResult` of a task without what stays behind, and the list of that."""
    kept = []

    def leave(value):
        kept.append(value)
        return Left(visit, position, len(kept) - 1)

    def light(finding):
        if not isinstance(finding, StatBag):
            return finding
        return finding._replace(extra=finding.extra.left(leave))

    return LocalResult(light(result.statistics), tuple(map(light, result.findings))), kept
