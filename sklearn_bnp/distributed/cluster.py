"""Work on chunks by the workers of a `distributed.Client`.

Design note
-----------
(a) *Groups* of neighbouring chunks lie on the workers, as checked batches, for as long as a call lasts.
    There are few of them, so that there are few tasks. Chunks with loaders of the user's own are loaded in
    each task.
(b) All that a wave of tasks has in common goes down once, as the result of a task. Whatever is lost with a
    worker is therefore computed anew by the scheduler, from tasks that it knows, and the same task gives the
    same bits. Nothing is scattered.
    What tasks leave behind goes on from what the visit before has left, which goes on from the one before
    it. Files cut these chains now and then, where there is a folder that all can see. Otherwise the
    scheduler has to know the tasks, and the parameters, of all laps.
(c) A wave ends with its results or with an error, never with waiting for ever: see `waiting`.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from typing import NamedTuple

from distributed.protocol.pickle import dumps, loads
from distributed.scheduler import KilledWorker

from ..engine.left_behind import Visit
from .chunks import ATTEMPTS, not_loaded
from .errors import ChunkError
from .left_on_workers import futures_of_left, shared_folder, take_from_files
from .order_of_tasks import copies, holders_of, in_turns
from .recognition import is_of_dask
from .this_process import evenly, leaves_behind
from .waiting import Cluster, large_graphs
from .wire import Packed, SharedTask
from .worker_tasks import (
    Group,
    Visited,
    brought,
    each_of,
    gone_through,
    joined,
    joined_nodes,
    looked,
    nodes_of,
    run_group,
    sums_of_left,
)

# Tasks of a wave for each thread of a worker, at most: each costs the scheduler about 2 ms.
_TASKS_A_THREAD = 4
# Results of tasks that another task adds up. As many may come to the driver, but only their sum where the
# parameters, and so the results, have more bytes than this: they would come one after the other.
_FAN_IN, _LARGE = 8, 1_000_000
# Visits to a batch of which one is written to files: a chain of so many tasks is made anew at most.
_LAPS_A_FILE = 10


class OnClient:
    """The workers of a client.

    Parameters
    ----------
    client : distributed.Client
    chunks : list of Chunk
    groups : list of pairs of int
        Positions of the chunks of each batch.
    leaves : bool
        Whether what only the next visit to a chunk needs stays on the workers; see `engine.left_behind`.
    """

    def __init__(self, client, chunks, groups, leaves=False):
        self._client, self._chunks, self.groups, self.leaves = client, chunks, groups, leaves
        self._cluster = Cluster(client)
        most = _TASKS_A_THREAD * max(1, self._cluster.n_threads())
        self._ranges = [
            (first + lo, first + hi)
            for first, last in groups
            for lo, hi in evenly(last - first, most)
        ]
        self._raw, self._held = self._sent(chunks), None
        self._folder, self._owns_folder = shared_folder(client) if leaves else (None, False)
        self._n_visits = {}

    def close(self):
        """Let go of what lies on the workers."""
        for future in [*(self._held or ()), *(f for raw in self._raw for f in raw.made)]:
            future.release()
        self._held, self._raw = None, []
        if self._owns_folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    # ------------------------------------------------------------------ chunks

    def _sent(self, chunks):
        """`_Raw` of each chunk. What dask computes is asked for in one call: chunks may share tasks."""
        forms = [_Form.of(chunk) for chunk in chunks]
        with large_graphs():
            found = iter(
                self._client.compute([v for form in forms for v in form.lazy], retries=ATTEMPTS - 1)
            )
        raw = []
        for form in forms:
            futures = [next(found) for _ in form.lazy]
            pairs = zip(form.lazy, futures, strict=True)
            raw.append(_Raw(form.spec, futures, [f for given, f in pairs if f is not given]))
        return raw

    @property
    def n_chunks(self):
        return len(self._chunks)

    def look(self, function, positions):
        """``function(arguments)`` of some chunks as they come, before they are checked."""
        payload = dumps(function)
        tasks = {
            self._submit(looked, payload, self._raw[i].spec, *self._raw[i].futures): (i, i + 1)
            for i in positions
        }
        return self._gathered(list(tasks), tasks)

    def read_by(self, reader):
        """From now on, let ``reader(arguments, name)`` make batches of chunks."""
        keeps = all(chunk.is_lazy for chunk in self._chunks)
        reader, self._held = dumps(reader), []
        for first, last in self._ranges:
            raw = self._raw[first:last]
            specs = [(r.spec, len(r.futures)) for r in raw]
            futures = [future for r in raw for future in r.futures]
            self._held.append(self._submit(Group, reader, specs, keeps, *futures))
        self._gathered([], dict(zip(self._held, self._ranges, strict=True)))
        if keeps:  # what they were made from is not needed, unless it has to be loaded again
            for future in (future for raw in self._raw for future in raw.made):
                future.release()
            self._raw = []

    def go_through(self, function):
        """From now on, let the batch of a chunk be what ``function(batch)`` returns."""
        payload = dumps(function)
        self._held = [self._submit(gone_through, payload, group) for group in self._held]
        self._gathered([], dict(zip(self._held, self._ranges, strict=True)))

    def each(self, function, args=None):
        """``function(batch)``, or ``function(batch, arg)``, of each chunk; None of one without rows."""
        payload, tasks = dumps(function), {}
        for group, (first, last) in zip(self._held, self._ranges, strict=True):
            own = None if args is None else dumps(args[first:last])
            tasks[self._submit(each_of, payload, own, group)] = (first, last)
        return [value for values in self._gathered(list(tasks), tasks) for value in values]

    # ------------------------------------------------------------------ tasks of local steps

    def run_tasks(self, run, tasks):
        """Results of the tasks of a batch, those of neighbours added up; they are few."""
        tasks = list(tasks)
        first, n = tasks[0].part.position, len(tasks)
        shared = Packed.of((run, tasks[0]._replace(part=None, carry=None, seed=())))
        visit = Visit(self) if leaves_behind(tasks[0], self.leaves) else None
        folder = None if visit is None else self._folder_of_visit(first)
        shares = self._shares(tasks)
        turns = self._turns(shares)
        down = self._submit(SharedTask, shared.head, *shared.arrays)
        wave, level = {down: (first, first + n)}, [None] * len(shares)
        for turn, i in enumerate(turns):
            share, how = shares[i], {"priority": -turn / len(turns)}
            about = down, share.items, share.lo - first, n
            if visit is None:
                done = self._submit(run_group, *about, share.group, **how)
            else:
                path = None if folder is None else os.path.join(folder, f"{visit.name}-{share.lo}")
                about = (*about, dumps(visit), path, share.group)
                visited = self._submit(Visited, *about, *share.before, **how)
                visit.files |= share.files
                visit.kept.update(dict.fromkeys(range(share.lo, share.hi), visited))
                wave[visited] = (share.lo, share.hi)
                done = self._submit(nodes_of, visited)
            wave[done] = (share.lo, share.hi)
            level[i] = done
        nodes = [result.nodes for result in self._summed(level, wave, down, shared.n_bytes, n)]
        if visit is not None and folder is not None:
            take_from_files(visit, folder)
        return joined(tasks[0].probes, nodes, n).values()

    def _shares(self, tasks):
        """List the `_Share` of each group of chunks in the tasks of a batch."""
        first, shares = tasks[0].part.position, []
        for group, (lo, hi) in zip(self._held, self._ranges, strict=True):
            own = tasks[max(0, lo - first) : max(0, hi - first)]
            if own:
                carries = [task.carry for task in own if task.carry is not None]
                shares.append(_Share(group, lo, hi, own, futures_of_left(carries)))
        return shares

    def _turns(self, shares):
        """Positions of the shares in the order in which to hand them out, each worker having as many."""
        needed = [[getattr(x, "key", None) for x in (s.group, *s.before)] for s in shares]
        who_has = self._cluster.who_has([key for keys in needed for key in keys if key is not None])
        holders, to_copy = holders_of(needed, who_has), {}
        for i, worker in copies(holders, self._cluster.threads()).items():
            to_copy.setdefault(worker, []).append(shares[i].group)
            holders[i] = [*holders[i], worker]
        if to_copy:
            self._cluster.copy(to_copy)
        return in_turns(holders)

    def _summed(self, level, wave, down, n_bytes, n):
        """Results of neighbouring tasks ``level``, of which so many are added up that few come here."""
        priority = 0
        while len(level) > (1 if n_bytes > _LARGE else _FAN_IN):
            priority += 1  # sums before further local steps, so that few results are held
            parts = [level[i : i + _FAN_IN] for i in range(0, len(level), _FAN_IN)]
            level = []
            for some in parts:
                level.append(self._submit(joined_nodes, down, n, *some, priority=priority))
                wave[level[-1]] = (wave[some[0]][0], wave[some[-1]][1])
        return self._gathered(level, wave)

    # ------------------------------------------------------------------ what tasks have left behind

    def _folder_of_visit(self, first):
        """The folder to which a visit to the batch that begins with this chunk is written; mostly None."""
        n = self._n_visits[first] = self._n_visits.get(first, 0) + 1
        return None if n % _LAPS_A_FILE else self._folder

    def sums_of_left(self, function, away, n):
        """Nodes of the tree over ``n`` parts: ``function`` of what was left of those ``away``, a dict."""
        found = self._of_left(partial(self._submit, sums_of_left, dumps(function)), away, n)
        return {node: value for nodes in found for node, value in nodes.items()}

    def brought(self, away):
        """List what was left of some parts."""
        found = self._of_left(partial(self._submit, brought), dict(enumerate(away)))
        values = {i: value for some in found for i, value in some.items()}
        return [values[i] for i in range(len(values))]

    def _of_left(self, submit, away, *args):
        """Results of a task for each group of chunks, about what was left there."""
        tasks = {}
        for lo, hi in self._ranges:
            own = {i: part for i, part in away.items() if lo <= part.left.position < hi}
            if own:
                tasks[submit(dumps(own), *args, *futures_of_left(own.values()))] = (lo, hi)
        return [loads(result) for result in self._gathered(list(tasks), tasks)]

    # ------------------------------------------------------------------ waiting

    def _submit(self, function, *args, **how):
        return self._cluster.submit(function, *args, **how)

    def _gathered(self, wanted, wave):
        return self._cluster.gathered(wanted, wave, self._error_of)

    def _error_of(self, future, chunks):
        """The error to raise for a future that has failed, about the ``chunks`` of a pair of positions."""
        for i, raw in enumerate(self._raw):
            for own in raw.futures:
                if own.status == "error" and not isinstance(own.exception(), KilledWorker):
                    return _caused(
                        ChunkError(not_loaded(self._chunks[i].name, own.exception())), own
                    )
        if future.status != "error":
            return self._cluster.lost(future.status)
        error = future.exception()
        if isinstance(error, KilledWorker):
            return _caused(
                ChunkError(
                    f"{self._name(chunks)}: workers died while they worked on it, "
                    f"{error.allowed_failures + 1} one after the other, {error.last_worker.address} the "
                    "last. Look into the log of that worker. It may have run out of memory: give "
                    "smaller chunks, or workers with more memory."
                ),
                future,
            )
        return error

    def _name(self, chunks):
        first, last = chunks
        names = [chunk.name for chunk in self._chunks[first:last]]
        return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def _caused(error, future):
    error.__cause__ = future.exception()
    return error


# ---------------------------------------------------------------------- on the driver: chunks as tasks take
# them


class _Form(NamedTuple):
    """A chunk as it is sent: what dask computes, and all else pickled."""

    spec: bytes
    lazy: list

    @classmethod
    def of(cls, chunk):
        lazy = {name: value for name, value in chunk.others.items() if is_of_dask(value)}
        own = {name: value for name, value in chunk.others.items() if name not in lazy}
        rest = chunk._replace(x=None if chunk.is_lazy else chunk.x, others=own)
        first = [chunk.x] if chunk.is_lazy else []
        return cls(dumps((rest, tuple(lazy))), [*first, *lazy.values()])


class _Share(NamedTuple):
    """The part of a wave that one group of chunks does.

    It holds the group's future, its range of chunks and their tasks. ``before`` are the results that these
    tasks go on from: futures, or pickled names of files.
    """

    group: object
    lo: int
    hi: int
    tasks: list
    before: list

    @property
    def items(self):
        """In which the tasks differ, pickled."""
        return dumps([(task.part, task.carry, task.seed) for task in self.tasks])

    @property
    def files(self):
        """Owners of the files that the tasks go on from."""
        carries = (task.carry for task in self.tasks if task.carry is not None)
        return {file for c in carries for left in c.needed for file in left.visit.files}


class _Raw(NamedTuple):
    """A chunk as tasks take it, with futures of what dask computes.

    ``made`` are those that were made here, and not given by the user: only these may be released.
    """

    spec: bytes
    futures: list
    made: list
