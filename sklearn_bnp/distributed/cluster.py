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
(c) A wave ends with its results or with an error, never with waiting for ever: `_gathered` watches the
    tasks, the workers and the scheduler. To run tasks again is left to dask (``retries``): here it would run
    anew whatever kills workers.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import shutil
import time
import warnings
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

import dask
from dask.utils import parse_timedelta
from distributed import default_client, get_worker, wait, worker_client
from distributed.protocol.pickle import dumps, loads
from distributed.scheduler import KilledWorker

from ..engine.left import Visit
from .chunks import ATTEMPTS, not_loaded
from .errors import ChunkError, StalledError
from .left import kept, shared_folder, take_from_files
from .on_workers import (
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
from .places import evenly, leaves_behind
from .recognition import is_of_dask

# Tasks of a wave for each thread of a worker, at most: each costs the scheduler about 2 ms.
_TASKS_A_THREAD = 4
# Results of tasks that another task adds up. As many may come to the driver, but only their sum where the
# parameters, and so the results, have more bytes than this: they would come one after the other.
_FAN_IN, _LARGE = 8, 1_000_000
# Visits to a batch of which one is written to files: a chain of so many tasks is made anew at most.
_LAPS_A_FILE = 10
# Seconds between two looks at the cluster, and that the scheduler may take to answer.
_LOOK, _ANSWER = 1.0, 30.0
# States of futures that have come to nothing. "lost" is not one of them: these are computed anew.
_FAILED = ("error", "cancelled")
# Names in dask's configuration, and values where they are not set. A worker that lives tells the scheduler so
# every half second or so, even while it works. A task may take long, but hardly for ever.
_SILENCE, _PATIENCE = ("sklearn-bnp.silence", "60s"), ("sklearn-bnp.patience", "30m")


@contextmanager
def current_client():
    """The client that is current, or None; in a task, the worker's own, and its thread is free for others."""
    try:
        get_worker()
    except ValueError:
        try:
            client = default_client()
        except ValueError:
            client = None
        yield client
        return
    with worker_client() as client:
        yield client


class OnClient:
    """The workers of a client.

    Parameters
    ----------
    client : distributed.Client
    chunks : list of Chunk
    groups : list of pairs of int
        Positions of the chunks of each batch.
    leaves : bool
        Whether what only the next visit to a chunk needs stays on the workers; see `engine.left`.
    """

    def __init__(self, client, chunks, groups, leaves=False):
        self._client, self._chunks, self.groups, self.leaves = client, chunks, groups, leaves
        self._silence, self._patience = (
            parse_timedelta(dask.config.get(*setting)) for setting in (_SILENCE, _PATIENCE)
        )
        n_threads = sum(worker["nthreads"] for worker in self._workers().values())
        most = _TASKS_A_THREAD * max(1, n_threads)
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
        for future in [*(self._held or ()), *(f for raw in self._raw for f in raw.futures)]:
            future.release()
        self._held, self._raw = None, []
        if self._owns_folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    # ------------------------------------------------------------------ chunks

    def _sent(self, chunks):
        """`_Raw` of each chunk. What dask computes is asked for in one call: chunks may share tasks."""
        forms = [_Form.of(chunk) for chunk in chunks]
        with _large_graphs():
            futures = iter(
                self._client.compute([v for form in forms for v in form.lazy], retries=ATTEMPTS - 1)
            )
        return [_Raw(form.spec, [next(futures) for _ in form.lazy]) for form in forms]

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
            for future in (future for raw in self._raw for future in raw.futures):
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
        first = tasks[0].part.position
        wave, order = {}, dumps((run, tasks[0]._replace(part=None, carry=None, seed=())))
        down = self._submit(loads, order)
        wave[down] = (first, first + len(tasks))
        visit = Visit(self) if leaves_behind(tasks[0], self.leaves) else None
        folder = None if visit is None else self._folder_of_visit(first)
        level, n = [], len(tasks)
        for group, (lo, hi) in zip(self._held, self._ranges, strict=True):
            own = tasks[max(0, lo - first) : max(0, hi - first)]
            if own:
                items = dumps([(task.part, task.carry, task.seed) for task in own])
                about = down, items, lo - first, n
                if visit is None:
                    level.append(self._submit(run_group, *about, group))
                else:
                    path = None if folder is None else os.path.join(folder, f"{visit.name}-{lo}")
                    carries = [task.carry for task in own if task.carry is not None]
                    visited = self._submit(
                        Visited, *about, dumps(visit), path, group, *kept(carries)
                    )
                    visit.files |= {
                        file for c in carries for left in c.needed for file in left.visit.files
                    }
                    wave[visited] = (lo, hi)
                    visit.kept.update(dict.fromkeys(range(lo, hi), visited))
                    level.append(self._submit(nodes_of, visited))
                wave[level[-1]] = (lo, hi)
        priority = 0
        while len(level) > (1 if len(order) > _LARGE else _FAN_IN):
            priority += 1  # sums before further local steps, so that few results are held
            parts = [level[i : i + _FAN_IN] for i in range(0, len(level), _FAN_IN)]
            level = []
            for some in parts:
                level.append(self._submit(joined_nodes, down, n, *some, priority=priority))
                wave[level[-1]] = (wave[some[0]][0], wave[some[-1]][1])
        nodes = [loads(result) for result in self._gathered(level, wave)]
        if visit is not None and folder is not None:
            take_from_files(visit, folder)
        return joined(tasks[0].probes, nodes, n).values()

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
                tasks[submit(dumps(own), *args, *kept(own.values()))] = (lo, hi)
        return [loads(result) for result in self._gathered(list(tasks), tasks)]

    def _submit(self, function, *args, priority=0):
        try:
            with _large_graphs():
                return self._client.submit(
                    function, *args, pure=False, retries=ATTEMPTS - 1, priority=priority
                )
        except Exception as error:
            if self._client.status == "running":
                raise
            raise self._lost(error) from error

    # ------------------------------------------------------------------ waiting

    def _gathered(self, wanted, wave):
        """Results of the futures ``wanted``, once all of ``wave`` is done.

        Parameters
        ----------
        wanted : list of Future
        wave : dict
            Future -> first chunk, and the one after the last, that it is about.
        """
        clock, done = _Clock(self, list(wave)), False
        try:
            self._wait(wanted or list(wave), clock)
            for future, chunks in wave.items():
                if future.status in _FAILED:
                    raise self._error_of(future, chunks)
            found = self._on_loop(self._client.gather(wanted, asynchronous=True))
            results = self._result_of(found, clock)
            done = True
            return results
        except CancelledError as error:
            raise self._lost(error) from error
        finally:
            if not done:
                with suppress(Exception):
                    self._on_loop(self._client.cancel(list(wave), asynchronous=True))

    def _wait(self, futures, clock):
        """Wait until all futures are done, or one has failed."""
        pending = None
        try:
            while any(future.status != "finished" for future in futures):  # lost ones come again
                if any(future.status in _FAILED for future in futures):
                    return
                if pending is None or pending.done():
                    pending = self._on_loop(_all_done(futures))
                if _ends(pending, _LOOK):
                    pending.result()
                else:
                    clock.look()
        finally:
            if pending is not None:
                pending.cancel()

    def _result_of(self, pending, clock):
        """Result of a coroutine on the client's loop; StalledError if the cluster does not get on."""
        while not _ends(pending, _LOOK):
            clock.look()
        return pending.result()

    def _on_loop(self, coroutine):
        return asyncio.run_coroutine_threadsafe(_awaited(coroutine), self._client.loop.asyncio_loop)

    def _workers(self):
        """Return the scheduler's records of its workers, a dict by address."""
        try:
            scheduler = self._client.scheduler
            if scheduler is None or self._client.status not in ("running", "connecting"):
                raise OSError(f"the client is {self._client.status}")
            return self._on_loop(scheduler.identity(n_workers=-1)).result(_ANSWER)["workers"]
        except (OSError, CancelledError) as error:  # TimeoutError is an OSError
            raise self._lost(error) from error

    def _error_of(self, future, chunks):
        """The error to raise for a future that has failed; it is about chunks from ``first`` to ``last``."""
        for i, raw in enumerate(self._raw):
            for own in raw.futures:
                if own.status == "error" and not isinstance(own.exception(), KilledWorker):
                    return _caused(
                        ChunkError(not_loaded(self._chunks[i].name, own.exception())), own
                    )
        if future.status != "error":
            return self._lost(future.status)
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

    def _lost(self, why):
        """`ChunkError` or `StalledError` for tasks that are gone."""
        if self._client.status == "running":
            return ChunkError(
                "Chunks, or results about them, were lost with a worker and cannot be computed anew "
                f"({why}). Data that were scattered (client.scatter) cannot: let tasks load them, by "
                "dask.delayed, dask.array.from_delayed or batch references. The estimator stays as it "
                "was before this call."
            )
        return StalledError(
            f"The connection to the scheduler is lost ({why}). Start a cluster, connect a client to it, and "
            "fit again. The estimator stays as it was before this call."
        )


class _Clock:
    """Watches whether the cluster gets on with the futures of a wave."""

    def __init__(self, place, futures):
        self._place, self._futures = place, futures
        self._n_done, self._since = -1, time.monotonic()
        self._seen = {}

    def look(self):
        """Raise StalledError if nothing ends for too long; see the names in dask's configuration."""
        now, place = time.monotonic(), self._place
        workers = place._workers()
        seen = {name: worker["last_seen"] for name, worker in workers.items()}
        self._seen = {
            name: self._seen[name] if self._seen.get(name, (None,))[0] == at else (at, now)
            for name, at in seen.items()
        }
        n_done = sum(future.done() for future in self._futures)
        if n_done != self._n_done:
            self._n_done, self._since = n_done, now
        still = now - self._since
        silent = [name for name, (_, at) in self._seen.items() if now - at > place._silence]
        if still > place._silence and (silent or not workers):
            who = f"nothing is heard of {', '.join(silent)}" if silent else "there are no workers"
            remedy = "Restart or remove such workers" if silent else "Start workers"
            raise StalledError(
                f"The cluster at {place._client.scheduler.address} stands still: no task has ended for "
                f"{still:.0f} s, and {who}. {remedy}, and fit again; or set 'sklearn-bnp.silence' in "
                f"dask.config, now {place._silence:g} s. With 'distributed.scheduler.worker-ttl' below "
                "it, dask gives the work of a silent worker to others. The estimator stays as it was "
                "before this call."
            )
        if still > place._patience:
            raise StalledError(
                f"No task has ended for {still:.0f} s, though {len(workers)} workers live. Look for a loader "
                "that waits for ever; or give smaller chunks, or set 'sklearn-bnp.patience' in dask.config, "
                f"now {place._patience:g} s. The estimator stays as it was before this call."
            )


def _caused(error, future):
    error.__cause__ = future.exception()
    return error


async def _awaited(awaitable):
    return await awaitable


async def _all_done(futures):
    await wait(futures)  # on the loop of the client, where it can be awaited


def _ends(pending, seconds):
    """Whether a call on the client's loop ends within so many seconds.

    It raises nothing. The TimeoutError of `distributed.wait` would stay in a cycle of references with the
    frames that it came through. All that they name, also on the workers, is held until Python next looks
    for cycles.
    """
    return bool(concurrent.futures.wait([pending], seconds).done)


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


class _Raw(NamedTuple):
    """A chunk as tasks take it, with futures of what dask computes."""

    spec: bytes
    futures: list


@contextmanager
def _large_graphs():
    """No warning that a graph is large: a wave is as large as the model, which the user knows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        yield
