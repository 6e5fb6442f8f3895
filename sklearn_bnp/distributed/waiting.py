"""Tasks of a cluster, and waiting for them that always ends, with results or with an error.

Design note
-----------
`Cluster.gathered` watches the tasks of a wave, the workers and the scheduler. To run tasks again is left to
dask (``retries``): here it would run anew whatever kills workers.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
import warnings
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress

import dask
from dask.utils import parse_timedelta
from distributed import default_client, get_worker, wait, worker_client

from .chunks import ATTEMPTS
from .errors import ChunkError, StalledError

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


class Cluster:
    """The workers of a client.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client):
        self.client = client
        self.silence, self.patience = (
            parse_timedelta(dask.config.get(*setting)) for setting in (_SILENCE, _PATIENCE)
        )

    def submit(self, function, *args, priority=0):
        """Future of a call."""
        try:
            with large_graphs():
                return self.client.submit(
                    function, *args, pure=False, retries=ATTEMPTS - 1, priority=priority
                )
        except Exception as error:
            if self.client.status == "running":
                raise
            raise self.lost(error) from error

    # ------------------------------------------------------------------ waiting

    def gathered(self, wanted, wave, error_of):
        """Results of the futures ``wanted``, once all of ``wave`` is done.

        Parameters
        ----------
        wanted : list of Future
        wave : dict
            Future -> first chunk, and the one after the last, that it is about.
        error_of : callable
            ``error_of(future, chunks)`` is the error to raise for a future that has failed.
        """
        clock, done = _Clock(self, list(wave)), False
        try:
            self._wait(wanted or list(wave), clock)
            for future, chunks in wave.items():
                if future.status in _FAILED:
                    raise error_of(future, chunks)
            found = self._on_loop(self.client.gather(wanted, asynchronous=True))
            results = self._result_of(found, clock)
            done = True
            return results
        except CancelledError as error:
            raise self.lost(error) from error
        finally:
            if not done:
                with suppress(Exception):
                    self._on_loop(self.client.cancel(list(wave), asynchronous=True))

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
        return asyncio.run_coroutine_threadsafe(_awaited(coroutine), self.client.loop.asyncio_loop)

    def workers(self):
        """Return the scheduler's records of its workers, a dict by address."""
        try:
            return self._answer("identity", n_workers=-1)["workers"]
        except (OSError, CancelledError) as error:  # TimeoutError is an OSError
            raise self.lost(error) from error

    def threads(self):
        """Return the number of threads of each worker, a dict by address; empty as in `who_has`."""
        return self._hint("ncores")

    def who_has(self, keys):
        """Return the addresses of the workers that hold results, a dict by key.

        It is a matter of speed alone, so it is empty if there is no answer. `gathered` will find out why.
        """
        return self._hint("who_has", keys=keys) if keys else {}

    def copy(self, futures):
        """Copy results to workers, for speed alone; ``futures`` is a dict of lists by address.

        What cannot be copied, or not in time, stays where it is.
        """
        replicate = self.client.replicate
        pending = [
            self._on_loop(replicate(some, n=1, workers=[address], asynchronous=True))
            for address, some in futures.items()
        ]
        for late in concurrent.futures.wait(pending, _ANSWER).not_done:
            late.cancel()

    def _hint(self, question, **about):
        try:
            return self._answer(question, **about)
        except (OSError, CancelledError):
            return {}

    def _answer(self, question, **about):
        """Return the scheduler's answer to a question; raise OSError if it does not come in time."""
        scheduler = self.client.scheduler
        if scheduler is None or self.client.status not in ("running", "connecting"):
            raise OSError(f"the client is {self.client.status}")
        return self._on_loop(getattr(scheduler, question)(**about)).result(_ANSWER)

    def n_threads(self):
        """Return the number of threads of all workers together."""
        return sum(worker["nthreads"] for worker in self.workers().values())

    def lost(self, why):
        """`ChunkError` or `StalledError` for tasks that are gone."""
        if self.client.status == "running":
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

    def __init__(self, cluster, futures):
        self._cluster, self._futures = cluster, futures
        self._n_done, self._since = -1, time.monotonic()
        self._seen = {}

    def look(self):
        """Raise StalledError if nothing ends for too long; see the names in dask's configuration."""
        now, cluster = time.monotonic(), self._cluster
        workers = cluster.workers()
        seen = {name: worker["last_seen"] for name, worker in workers.items()}
        self._seen = {
            name: self._seen[name] if self._seen.get(name, (None,))[0] == at else (at, now)
            for name, at in seen.items()
        }
        n_done = sum(future.done() for future in self._futures)
        if n_done != self._n_done:
            self._n_done, self._since = n_done, now
        still = now - self._since
        silent = [name for name, (_, at) in self._seen.items() if now - at > cluster.silence]
        if still > cluster.silence and (silent or not workers):
            who = f"nothing is heard of {', '.join(silent)}" if silent else "there are no workers"
            remedy = "Restart or remove such workers" if silent else "Start workers"
            raise StalledError(
                f"The cluster at {cluster.client.scheduler.address} stands still: no task has ended for "
                f"{still:.0f} s, and {who}. {remedy}, and fit again; or set 'sklearn-bnp.silence' in "
                f"dask.config, now {cluster.silence:g} s. With 'distributed.scheduler.worker-ttl' below "
                "it, dask gives the work of a silent worker to others. The estimator stays as it was "
                "before this call."
            )
        if still > cluster.patience:
            raise StalledError(
                f"No task has ended for {still:.0f} s, though {len(workers)} workers live. Look for a loader "
                "that waits for ever; or give smaller chunks, or set 'sklearn-bnp.patience' in dask.config, "
                f"now {cluster.patience:g} s. The estimator stays as it was before this call."
            )


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


@contextmanager
def large_graphs():
    """No warning that a graph is large: a wave is as large as the model, which the user knows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        yield
