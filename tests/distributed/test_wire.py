"""What goes between processes."""

from __future__ import annotations

import pickle
from typing import NamedTuple

import numpy as np
import pytest

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
from dask.sizeof import sizeof  # noqa: E402

from sklearn_bnp.distributed.wire import Nodes, Packed, SharedTask, unpacked  # noqa: E402
from sklearn_bnp.distributed.worker_tasks import Visited  # noqa: E402
from sklearn_bnp.topics.counts import BatchCounts  # noqa: E402
from sklearn_bnp.topics.documents import Documents  # noqa: E402

LARGE, SMALL = 5_000, 3


class Value(NamedTuple):
    table: np.ndarray
    turned: np.ndarray
    few: np.ndarray
    name: str
    probes: tuple = ()  # as a task has


def value():
    table = np.arange(float(LARGE)).reshape(50, -1)
    return Value(table, table[:, :SMALL].T, np.arange(SMALL), "a")


def test_packed_values_arrive_and_nothing_changes_them():
    """A task that is run again gets the same bits, whatever became of the arrays it was sent with."""
    sent = value()
    packed = Packed.of(sent)
    sent.table[:], sent.turned[:], sent.few[:] = -1.0, -1.0, -1
    packed = pickle.loads(pickle.dumps(packed))  # as the scheduler does
    for _ in range(2):
        arrived = unpacked(packed.head, *packed.arrays)
        for one, other in zip(arrived, value(), strict=True):
            np.testing.assert_array_equal(one, other)
        for array in (arrived.table, arrived.few):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 7.0


def test_large_arrays_are_not_pickled():
    packed = Packed.of(value())
    assert [array.nbytes for array in packed.arrays] == [8 * LARGE]
    assert len(packed.head) < 2_000
    beside = []
    pickle.dumps(Nodes({(0, 0): value()}), 5, buffer_callback=beside.append)
    assert 8 * LARGE in {buffer.raw().nbytes for buffer in beside}


def test_classes_of_functions_are_sent_by_value():
    class Own(NamedTuple):
        x: np.ndarray

        def doubled(self):
            return 2.0 * self.x

    arrived = unpacked(*_flat(Packed.of(Own(np.ones(LARGE)))))
    assert arrived.doubled().sum() == 2.0 * LARGE


def _flat(packed):
    return packed.head, *packed.arrays


def many_documents(n=2_000, per_document=5):
    """A named tuple whose length is not its number of fields: dask's own guess of its size fails."""
    counts = np.ones(n * per_document)
    return Documents(np.arange(n + 1) * per_document, counts, np.zeros(len(counts), np.int32))


def test_results_tell_their_size():
    """About that of their arrays. dask calls an error a warning, and takes them for a megabyte."""
    docs = many_documents()
    with pytest.raises(IndexError):
        sizeof(docs)
    n_bytes = sum(array.nbytes for array in docs[:3])
    assert sizeof(Nodes({(0, 0): (docs, 1.0), (1, 3): None})) == pytest.approx(n_bytes, rel=0.05)
    part = BatchCounts.of(np.ones((2_000, 10)), np.full(2_000, 10.0), list(range(10)))
    visited = Visited.__new__(Visited)  # without the tasks that it is made of
    visited.nodes, visited.kept, visited.name = {(0, 0): docs}, {0: (part,)}, "visit"
    n_bytes += part.lengths.nbytes
    n_bytes += sum(array.nbytes for column in part.columns.values() for array in column)
    assert sizeof(visited) == pytest.approx(n_bytes, rel=0.05)


@pytest.mark.extended
def test_parameters_weigh_nothing():
    """All workers need them, so they should not say where tasks go."""
    packed = Packed.of((len, value()))
    assert sizeof(SharedTask(packed.head, *packed.arrays)) < 100
