"""Values on their way between processes, whose large arrays are neither pickled nor copied.

Design note
-----------
(a) Bytes that hold a pickled value are copied by each process that they go through, and once more when the
    value is made of them. Arrays beside the pickled rest (protocol 5 of pickle, PEP 574) are written as they
    are, and the value that arrives consists of views of what was read.
(b) What goes down is pickled by the driver: only there can classes of a user's own be told from those that
    workers can import. Arrays are copied once, so that nothing that happens to them later changes a task
    that is run again. They arrive read-only, for all tasks of a wave share them.
(c) What comes up is a `Nodes`. It is pickled by dask, if another process asks for it, and not at all if
    the next task runs where it is.
(d) dask asks how large results are. Its own guess takes a tuple of more than ten items for a sample of ten,
    by their positions. It fails for named tuples whose length is not their number of fields, such as
    `Documents`. So results tell their size themselves: it is that of what would be sent.
"""

from __future__ import annotations

import pickle
from functools import cached_property
from typing import NamedTuple

import numpy as np
from distributed.protocol.pickle import dumps, loads

# Bytes of an array that goes beside what is pickled; smaller ones cost less in one piece.
_LARGE = 10_000


class Packed(NamedTuple):
    """A pickled value, and the large arrays of it.

    Attributes
    ----------
    head : bytes
    arrays : list of ndarray of uint8, shape (n_bytes,)
        Read-only, and owned by nobody else.
    """

    head: bytes
    arrays: list

    @classmethod
    def of(cls, value):
        """From a value; a later change of it changes nothing here."""
        buffers = []
        pickled = dumps(value, buffer_callback=buffers.append)
        raw = [buffer.raw() for buffer in buffers]
        small = [bytes(one) if one.nbytes < _LARGE else None for one in raw]
        arrays = [np.array(one) for one in raw if one.nbytes >= _LARGE]
        for array in arrays:
            array.setflags(write=False)
        return cls(pickle.dumps((pickled, small)), arrays)

    @property
    def n_bytes(self):
        return len(self.head) + sum(array.nbytes for array in self.arrays)


def unpacked(head, *arrays):
    """The value of a `Packed`; its arrays are read-only."""
    pickled, small = pickle.loads(head)
    large = iter(arrays)
    buffers = (memoryview(next(large) if one is None else one).toreadonly() for one in small)
    return loads(pickled, buffers=list(buffers))


def n_bytes_on_the_way(value):
    """Bytes of a value as it would be sent; large arrays are not copied for this."""
    buffers = []
    pickled = dumps(value, buffer_callback=buffers.append)
    return len(pickled) + sum(buffer.raw().nbytes for buffer in buffers)


class SharedTask:
    """All that the tasks of a wave have in common. It is the result of a task of its own, and stays as it is.

    Parameters
    ----------
    head, *arrays
        Those of a `Packed`, of a pair (run, task).
    """

    def __init__(self, head, *arrays):
        self._run, self._task = unpacked(head, *arrays)
        self.probes = self._task.probes

    def on(self, part, carry, seed):
        """Result of the task on one part."""
        return self._run(self._task._replace(part=part, carry=carry, seed=seed))

    def __sizeof__(self):
        """No bytes. All workers need it, so where it lies already should not say where tasks go."""
        return 0


class Nodes:
    """Nodes of a tree of sums, as the result of a task; nobody changes them."""

    def __init__(self, nodes):
        self.nodes = nodes

    @cached_property
    def n_bytes(self):
        """Bytes that would be sent. They are counted once: dask asks several times."""
        return n_bytes_on_the_way(self.nodes)

    def __sizeof__(self):
        """Bytes, by which dask decides what to keep in memory, and where tasks go."""
        return self.n_bytes
