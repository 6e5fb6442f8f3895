"""What goes between processes, and which worker works on what."""

from __future__ import annotations

import pickle
from typing import NamedTuple

import numpy as np
import pytest

from sklearn_bnp.distributed.places import place_of

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
from sklearn_bnp.distributed.chunks import chunks_of  # noqa: E402
from sklearn_bnp.distributed.homes import homes_of, neighbours  # noqa: E402
from sklearn_bnp.distributed.wire import Nodes, Packed, unpacked  # noqa: E402

LARGE, SMALL = 5_000, 3


class Value(NamedTuple):
    table: np.ndarray
    turned: np.ndarray
    few: np.ndarray
    name: str


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


@pytest.mark.parametrize("n", [1, 2, 7, 8, 40])
@pytest.mark.parametrize("threads", [{"a": 1}, {"a": 1, "b": 1}, {"a": 4, "b": 1, "c": 2}])
def test_homes_are_shared_out_by_threads(n, threads):
    homes = homes_of([{}] * n, threads)
    assert len(homes) == n
    assert list(dict.fromkeys(homes)) == [home for home in threads if home in homes]
    for home, own in threads.items():
        assert homes == sorted(homes)  # neighbours together
        assert abs(homes.count(home) - n * own / sum(threads.values())) < 1.0


def test_homes_are_where_chunks_lie():
    lies = [{"b": 2}, {"b": 1, "a": 1}, {"a": 2}, {}]
    assert homes_of(lies, {"a": 1, "b": 1}) == ["b", "b", "a", "a"]
    assert homes_of([{"b": 2}] * 4, {"a": 1, "b": 1}) == ["b", "b", "a", "a"]


def test_neighbours():
    level = list(zip(range(6), "aaabbc", strict=True))
    at_home = [([0, 1], "a"), ([2], "a"), ([3, 4], "b"), ([5], "c")]
    assert neighbours(level, 2, True) == at_home
    assert neighbours(level, 4, False) == [([0, 1, 2, 3], None), ([4, 5], None)]


@pytest.mark.parametrize("n_batches", [1, 2])
def test_workers_share_the_groups_of_each_batch(clusters, n_batches):
    chunks = [dask.delayed(np.ones, pure=False)(2) for _ in range(16)]
    with (
        clusters[1].as_current(),
        place_of(chunks_of(chunks, {}), n_batches) as place,
    ):
        place.read_by(_read)
        assert place.each(np.sum) == [2.0] * 16
        homes = np.array_split([home for _, home, _ in place._groups()], n_batches)
        for own in homes:
            assert sorted(np.unique(own, return_counts=True)[1]) == [len(own) // 2] * 2


def _read(arguments, name):
    return _Rows(arguments["X"])


class _Rows(NamedTuple):
    x: np.ndarray

    def __array__(self, dtype=None, copy=None):
        return self.x
