"""Each worker gets as many tasks of a wave, where their data lie, and none is bound to it."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest

from sklearn_bnp import DPMixtureVB, HDPTopicVB

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
from distributed.diagnostics.plugin import SchedulerPlugin  # noqa: E402

from sklearn_bnp.distributed.cluster import OnClient  # noqa: E402
from sklearn_bnp.distributed.order_of_tasks import copies, holders_of, in_turns  # noqa: E402
from sklearn_bnp.distributed.wire import SharedTask  # noqa: E402


@pytest.mark.parametrize("n", [0, 1, 5, 8, 40])
@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_workers_take_turns(n, n_workers):
    """Whatever lies where: none has two turns before another one has had one, if it still holds something."""
    rng = np.random.default_rng(n)
    holders = [[int(rng.integers(n_workers))] for _ in range(n)]
    turns = in_turns(holders)
    assert sorted(turns) == list(range(n))
    seen, total = Counter(), Counter(worker for [worker] in holders)
    for i in turns:
        [worker] = holders[i]
        assert all(seen[other] >= min(seen[worker], total[other]) for other in total)
        seen[worker] += 1


def test_what_lies_with_several_or_none():
    assert in_turns([["a"], ["a", "b"], ["a", "b"], []]) == [0, 1, 3, 2]
    assert in_turns([[], [], []]) == [0, 1, 2]


def test_those_with_more_than_their_share_give_some_away():
    one = {"a": 1, "b": 1}
    assert copies([["a"]] * 8, one) == dict.fromkeys(range(4, 8), "b")
    assert copies([["a"]] * 3 + [["b"]] * 5, one) == {7: "a"}
    assert copies([["a"]] * 2 + [["a", "b"]] * 6, one) == {}
    assert copies([["a"]] * 5 + [["b"]] * 4, one) == {}
    assert Counter(copies([["a"]] * 12, {"a": 1, "b": 4, "c": 1}).values()) == {"b": 8, "c": 2}
    assert copies([["a"], [], ["gone"], ["a"]], {**one, "c": 1}) == {3: "b"}
    assert copies([["a"]], {"a": 1, "b": 1}) == copies([], one) == copies([["a"]], {}) == {}


def test_most_of_what_a_task_needs():
    who_has = {"x": ["a", "b"], "y": ["b"], "z": ["c"]}
    needed = [["x", "y"], ["x"], ["y", "z"], ["lost"], []]
    assert holders_of(needed, who_has) == [["b"], ["a", "b"], ["b", "c"], [], []]


def held(name, *args):
    """A `SharedTask`, once all tasks of its wave are known."""
    distributed.Event(name).wait()
    return SharedTask(*args)


class Watched(SchedulerPlugin):
    """Holds parameters back until the scheduler knows all tasks of their wave, and notes who gets these."""

    name = "watched"

    def __init__(self, client, monkeypatch):
        self._client, self._tasks = client, client.cluster.scheduler.tasks
        self.waves = []
        submit, gathered = OnClient._submit, OnClient._gathered

        def _submit(place, function, *args, **how):
            if function is not SharedTask:
                return submit(place, function, *args, **how)
            self.waves.append({})
            return submit(place, held, self._event(), *args, **how)

        def _gathered(place, wanted, wave):
            for future in wave:
                if future.key.startswith("held"):
                    while len(getattr(self._tasks.get(future.key), "dependents", ())) < 8:
                        time.sleep(0.002)
                    distributed.Event(self._event(), client).set()
            return gathered(place, wanted, wave)

        monkeypatch.setattr(OnClient, "_submit", _submit)
        monkeypatch.setattr(OnClient, "_gathered", _gathered)

    def _event(self):
        return f"{id(self)}, wave {len(self.waves)}"  # of no other test on this cluster

    def transition(self, key, start, finish, *args, **kwargs):
        if (start, finish) == ("waiting", "processing") and key.startswith(("run_g", "Visited")):
            task = self._tasks[key]
            assert not task.worker_restrictions
            self.waves[-1].setdefault(key, task.processing_on.address)


def rows(i):
    return np.random.default_rng(i).normal(size=(300, 3)) + 5.0 * (i % 3)


def counts(i):
    return np.random.default_rng(i).poisson(0.2, size=(10, 400))


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize(
    ("model", "chunk"), [(DPMixtureVB(3), rows), (HDPTopicVB(3), counts)], ids=["rows", "words"]
)
def test_each_of_two_workers_does_half_of_each_lap(clusters, monkeypatch, model, chunk):
    """A wave is eight groups of two chunks: four groups for each worker, and none is bound to it."""
    client = clusters[1]
    watched = Watched(client, monkeypatch)
    model.set_params(proposals=None, max_iter=4, tol=0.0, random_state=0)
    chunks = [dask.delayed(chunk, pure=False)(i) for i in range(16)]
    client.cluster.scheduler.add_plugin(watched)
    try:
        with client.as_current():
            model.fit(chunks)
    finally:
        client.cluster.scheduler.remove_plugin(watched.name)
    shares = [sorted(Counter(wave.values()).values()) for wave in watched.waves]
    assert len(shares) >= 3 and shares == [[4, 4]] * len(shares)
