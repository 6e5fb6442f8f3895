"""Chunks that are worked on in this process, and what all places need."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from ..engine.left_behind import Visit, parted
from ..engine.task import combined

# Results that are held at a time before they are added up; a power of two, so that they are a node of the
# tree.
_HELD = 16


def evenly(n, n_parts):
    """Pairs (first, last) of positions that cut ``n`` into so many parts of nearly equal size, or into n."""
    n_parts = max(1, min(n, n_parts))
    return list(pairwise(i * n // n_parts for i in range(n_parts + 1)))


class Here:
    """This process, which loads one chunk after the other and forgets it at once.

    Chunks that dask has are computed by dask's own scheduler.

    Parameters
    ----------
    chunks : list of Chunk
    groups : list of pairs of int
        Positions of the chunks of each batch.
    leaves : bool
        Whether results come without what only the next visit to a chunk needs; see `engine.left_behind`.
    """

    def __init__(self, chunks, groups, leaves=False):
        self._chunks, self.groups, self._reader, self.leaves = chunks, groups, None, leaves

    @property
    def n_chunks(self):
        return len(self._chunks)

    def look(self, function, positions):
        """``function(arguments)`` of some chunks as they come, before they are checked."""
        return [function(self._chunks[i].arguments()) for i in positions]

    def read_by(self, reader):
        """From now on, let ``reader(arguments, name)`` make batches of chunks."""
        self._reader = reader

    def go_through(self, function):
        """From now on, let the batch of a chunk be what ``function(batch)`` returns."""
        self._reader = Through(self._reader, function)

    def load(self, i):
        """Batch of chunk i; None if it has no rows."""
        chunk = self._chunks[i]
        return self._reader(chunk.arguments(), chunk.name)

    def each(self, function, args=None):
        """``function(batch)``, or ``function(batch, arg)``, of each chunk; None of one without rows."""
        args = [()] * len(self._chunks) if args is None else [(arg,) for arg in args]
        return [self._of(function, i, arg) for i, arg in enumerate(args)]

    def _of(self, function, i, args):
        batch = self.load(i)
        return None if batch is None else function(batch, *args)

    def run_tasks(self, run, tasks):
        """Results of the tasks, those of neighbours added up."""
        tasks = list(tasks)
        visit = Visit(self) if leaves_behind(tasks[0], self.leaves) else None
        for lo in range(0, len(tasks), _HELD):
            done = [self._run(run, task, visit) for task in tasks[lo : lo + _HELD]]
            yield combined(tasks[0].probes, done)

    def _run(self, run, task, visit):
        i = task.part.position
        part, carry = Loaded(self.load(i), task.part.batch_id), task.carry
        if carry is not None:
            carry = carry.at_hand(_found)
        result = run(task._replace(part=part, carry=carry))
        if visit is None or result is None:
            return result
        result, visit.kept[i] = parted(result, visit, i)
        return result

    def sums_of_left(self, function, away, n):
        """Nodes of the tree over ``n`` parts: ``function`` of what was left of those ``away``."""
        return {(0, i): function(part.at_hand(_found)) for i, part in away.items()}

    def brought(self, away):
        """List what was left of some parts."""
        return [part.at_hand(_found) for part in away]


def _found(left):
    return left.visit.kept[left.position][left.number]


def leaves_behind(task, leaves):
    """Whether such a task leaves something beside its chunk, at a place that ``leaves`` it there."""
    return leaves and task.model.leaves_behind


class Through(NamedTuple):
    """A reader whose batches go through a function; it can be pickled."""

    reader: Callable
    function: Callable

    def __call__(self, arguments, name):
        batch = self.reader(arguments, name)
        return None if batch is None else self.function(batch)


class Loaded:
    """A part whose batch, or None if it has no rows, is here; the part has a name of its own."""

    def __init__(self, batch, batch_id):
        self._batch, self.batch_id = batch, batch_id

    def load(self):
        """The batch under the name of the part."""
        return None if self._batch is None else self._batch._replace(batch_id=self.batch_id)
