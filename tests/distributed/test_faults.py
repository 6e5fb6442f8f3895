"""What a fit on a cluster survives, with the same bits, and the clear errors of what it cannot survive.

All are slow: they go by the clock, and would fail where other tests keep the machine busy. ``.ci/run`` runs
them by themselves.
"""

from __future__ import annotations

import contextvars
import os
import signal
import threading
import time
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from sklearn_bnp import DPMixtureVB, HDPTopicVB
from sklearn_bnp.distributed.errors import ChunkError, StalledError
from sklearn_bnp.engine.learner import Learner
from tests.estimators import assert_same_state, blobs, documents, public_state

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
from sklearn_bnp.distributed.cluster import OnClient  # noqa: E402

pytestmark = pytest.mark.slow

ROWS, _ = blobs(400, seed=5)
PARTS = np.split(ROWS, 8)
# Seconds that a fit in these tests may take: much longer than any should, but no hang.
MOST = 120


class Loader:
    """A batch reference that counts its attempts in a file, and does something in some of them.

    A class of this module is sent by value, so that workers need not import the tests.
    """

    def __init__(self, i, folder, on=(), what=None):
        self.batch_id, self._rows = f"part {i}", PARTS[i]
        self._file, self._on, self._what = os.path.join(folder, f"attempts of {i}"), on, what

    def load(self):
        with open(self._file, "a") as f:
            f.write("x")
        n = os.path.getsize(self._file)
        if self._what is not None and (not self._on or n in self._on):
            self._what()
        return self._rows


def fails():
    raise OSError("the disk has a hiccup")


def dies():
    os.kill(os.getpid(), signal.SIGKILL)


def freezes():
    os.kill(os.getpid(), signal.SIGSTOP)


def sleeps():
    time.sleep(3600)


def parts(folder, **what):
    """References to all chunks, of which one does what ``what`` says."""
    odd = what.pop("i", None)
    return [Loader(i, folder, **(what if i == odd else {})) for i in range(len(PARTS))]


@contextmanager
def cluster(n_workers=2, **config):
    """A client of a cluster with workers that are processes, current for dask."""
    config = {"distributed.scheduler.allowed-failures": 2, **config}
    with (
        dask.config.set(config),
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=60
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


def pids(client):
    return list(client.run(os.getpid).values())


def kill(pids):
    """Kill processes, if they live."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def expected():
    """The state of a fit in this process, and the model for it."""
    chunks = [dask.delayed(part, pure=False) for part in PARTS]
    return public_state(model().fit(chunks))


def model(**params):
    return DPMixtureVB(random_state=0, **params)


def in_time(function):
    """Result of a call that must not hang."""
    out = []

    def call():
        try:
            out.append((function(), None))
        except Exception as error:
            out.append((None, error))

    context = contextvars.copy_context()  # which client is current
    thread = threading.Thread(target=context.run, args=(call,), daemon=True)
    thread.start()
    thread.join(MOST)
    assert out, "it hangs"
    [(result, error)] = out
    if error is not None:
        raise error
    return result


def unchanged(fitted, x, error, match):
    """The error of a fit, which leaves a fitted estimator as it was."""
    before = vars(fitted).copy()
    with pytest.raises(error, match=match):
        in_time(lambda: fitted.fit(x))
    assert vars(fitted) == before


# ---------------------------------------------------------------------- what is survived


@pytest.mark.parametrize("attempt", [1, 2, 4, 9])
def test_a_worker_is_killed(expected, tmp_path, attempt):
    """While chunks are read, while units are found, and in laps."""
    with cluster():
        found = in_time(lambda: model().fit(parts(tmp_path, i=5, on=(attempt,), what=dies)))
    assert os.path.getsize(tmp_path / "attempts of 5") > attempt
    assert_same_state(public_state(found), expected)


@pytest.fixture
def before_laps(monkeypatch):
    """``before_laps(function)`` lets a fit call a function once its chunks lie on workers."""

    def arrange(function):
        def begun(self, *args, _begun=DPMixtureVB._begun_learner):
            function()
            return _begun(self, *args)

        monkeypatch.setattr(DPMixtureVB, "_begun_learner", begun)

    return arrange


def test_a_worker_with_chunks_is_killed(expected, before_laps):
    """What lay on it is computed anew, from delayed loaders."""
    chunks = [dask.delayed(np.array, pure=False)(part) for part in PARTS]
    with cluster() as client:
        victims = pids(client)[:1]
        before_laps(lambda: kill(victims))
        found = in_time(lambda: model().fit(chunks))
    assert_same_state(public_state(found), expected)


@pytest.mark.parametrize("lap", [3, 7])
def test_a_worker_with_counts_of_documents_is_killed(monkeypatch, lap):
    """What documents have left is computed anew, from the beginning or from files."""
    monkeypatch.setattr("sklearn_bnp.distributed.cluster._LAPS_A_FILE", 4)
    X, _ = documents(60)
    chunks = [dask.delayed(np.array, pure=False)(X[i : i + 10]) for i in range(0, 60, 10)]
    topics = HDPTopicVB(6, random_state=0)
    expected, run_lap = public_state(topics.fit(chunks)), Learner.run_lap
    assert topics.n_iter_ > lap
    with cluster() as client:
        victims = pids(client)[:1]

        def watched(self, *args, **kwargs):
            if self.n_laps == lap:
                kill(victims)
            return run_lap(self, *args, **kwargs)

        monkeypatch.setattr(Learner, "run_lap", watched)
        found = in_time(lambda: HDPTopicVB(6, random_state=0).fit(chunks))
    assert_same_state(public_state(found), expected)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_a_worker_is_added_or_removed(expected, before_laps, n_workers):
    chunks = [dask.delayed(np.array, pure=False)(part) for part in PARTS]
    with cluster() as client:
        before_laps(lambda: client.cluster.scale(n_workers))
        found = in_time(lambda: model().fit(chunks))
    assert_same_state(public_state(found), expected)


def all_are_killed(client):
    kill(pids(client))  # each has a nanny that starts another one, under another address


def all_go_and_others_come(client):
    client.cluster.scale(0)
    client.cluster.scale(2)


def one_is_retired(client):
    client.retire_workers([next(iter(client.run(os.getpid)))])


@pytest.mark.parametrize("change", [all_are_killed, all_go_and_others_come, one_is_retired])
@pytest.mark.parametrize("laps", [(1,), (2, 4)])
def test_no_worker_stays(monkeypatch, change, laps):
    """Tasks of a lap that are out, and those that come, find workers that were not there before."""
    X, _ = documents(60)
    chunks = [dask.delayed(np.array, pure=False)(X[i : i + 10]) for i in range(0, 60, 10)]
    topics = HDPTopicVB(6, random_state=0)
    expected, run_tasks = public_state(topics.fit(chunks)), OnClient.run_tasks
    with cluster() as client:
        n_waves, changes = [0], []

        def watched(self, run, tasks):
            n_waves[0] += 1
            if n_waves[0] in laps:
                changes.append(threading.Timer(0.02, change, [client]))
                changes[-1].start()
            return run_tasks(self, run, tasks)

        monkeypatch.setattr(OnClient, "run_tasks", watched)
        found = in_time(lambda: HDPTopicVB(6, random_state=0).fit(chunks))
        for timer in changes:
            timer.join()
    assert len(changes) == len(laps)
    assert_same_state(public_state(found), expected)


@pytest.mark.parametrize("n_workers", [0, 1])
def test_a_loader_fails_twice(expected, clusters, tmp_path, n_workers):
    chunks = parts(tmp_path, i=3, on=(1, 2), what=fails)
    found = on(clusters, n_workers, lambda: model().fit(chunks))
    assert_same_state(public_state(found), expected)


def test_a_delayed_loader_fails_twice(expected, clusters, tmp_path):
    loaders = parts(tmp_path, i=3, on=(1, 2), what=fails)
    chunks = [dask.delayed(lambda loader: loader.load(), pure=False)(one) for one in loaders]
    found = on(clusters, 1, lambda: model().fit(chunks))
    assert_same_state(public_state(found), expected)


def on(clusters, n_workers, function):
    """A call on a cluster with so many workers, or in this process."""
    if n_workers == 0:
        return function()
    with clusters[n_workers - 1].as_current():
        return function()


def test_a_fit_inside_a_task(expected, clusters):
    """Its task gives way to the tasks of the fit, even where there is a single thread."""

    def task():
        chunks = [dask.delayed(np.array, pure=False)(part) for part in PARTS]
        return DPMixtureVB(random_state=0).fit(chunks)

    client = clusters[0]  # may have to start first
    found = in_time(lambda: client.submit(task, pure=False).result())
    assert_same_state(public_state(found), expected)


def test_two_fits_at_once(expected, clusters):
    chunks = [dask.delayed(np.array, pure=False)(part) for part in PARTS]
    found = []

    def fit():
        found.append(model().fit(chunks))

    # once: it is not made for threads that enter and leave it at once
    with clusters[1].as_current():
        contexts = [contextvars.copy_context() for _ in range(2)]
    threads = [threading.Thread(target=context.run, args=(fit,)) for context in contexts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(MOST)
    assert len(found) == 2
    for one in found:
        assert_same_state(public_state(one), expected)


# ---------------------------------------------------------------------- what is not


@pytest.mark.parametrize("n_workers", [0, 1])
def test_a_loader_that_always_fails(clusters, tmp_path, n_workers):
    fitted, match = model().fit(ROWS), "part 3.*could not be loaded.*hiccup"
    chunks = parts(tmp_path, i=3, what=fails)
    on(clusters, n_workers, lambda: unchanged(fitted, chunks, ChunkError, match))
    delayed = [dask.delayed(lambda one: one.load(), pure=False)(chunk) for chunk in chunks]
    match = "Chunk 3 could not be loaded.*hiccup"
    on(clusters, n_workers, lambda: unchanged(fitted, delayed, ChunkError, match))


def test_a_task_that_always_kills_its_worker(tmp_path):
    with cluster():
        unchanged(
            model().fit(ROWS), parts(tmp_path, i=2, what=dies), ChunkError, "part 2.*workers died"
        )


@pytest.mark.parametrize(
    ("what", "silence", "patience", "match"),
    [(freezes, "4s", "60s", "nothing is heard of"), (sleeps, "60s", "4s", "waits for ever")],
)
def test_a_worker_that_stands_still(tmp_path, what, silence, patience, match):
    """It is silent, or lives and ends no task; either way there is an error after the time that was set."""
    times = {"sklearn-bnp.silence": silence, "sklearn-bnp.patience": patience}
    with cluster() as client, dask.config.set(times):
        victims = pids(client)
        chunks = parts(tmp_path, i=2, on=(3,), what=what)
        try:
            unchanged(model().fit(ROWS), chunks, StalledError, match)
        finally:
            kill(victims)


def test_a_frozen_worker_is_left_behind(expected, tmp_path):
    """With a short ``worker-ttl``, dask gives its work to others, and the fit ends with the same bits."""
    with cluster(**{"distributed.scheduler.worker-ttl": "2s"}) as client:
        victims = pids(client)
        chunks = parts(tmp_path, i=2, on=(3,), what=freezes)
        try:
            found = in_time(lambda: model().fit(chunks))
        finally:
            kill(victims)
    assert_same_state(public_state(found), expected)


def test_all_workers_are_gone(before_laps):
    fitted = model().fit(ROWS)
    chunks = [dask.delayed(np.array, pure=False)(part) for part in PARTS]
    with cluster() as client, dask.config.set({"sklearn-bnp.silence": "5s"}):
        before_laps(lambda: client.cluster.scale(0))
        # a worker that is about to go may still be listed
        unchanged(fitted, chunks, StalledError, "there are no workers|nothing is heard of")


def test_the_scheduler_is_gone(before_laps):
    fitted = model().fit(ROWS)
    chunks = [dask.delayed(np.array, pure=False)(part) for part in PARTS]
    with cluster() as client:
        before_laps(client.cluster.close)
        unchanged(fitted, chunks, StalledError, "connection to the scheduler is lost")


def test_scattered_chunks_are_lost(before_laps):
    fitted = model().fit(ROWS)
    with cluster(1) as client:
        victims = pids(client)
        before_laps(lambda: kill(victims))
        unchanged(fitted, client.scatter(PARTS), ChunkError, "client.scatter")
