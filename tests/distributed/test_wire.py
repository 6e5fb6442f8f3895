"""What goes between processes."""

from __future__ import annotations

import pickle
from typing import NamedTuple

import numpy as np
import pytest

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
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
