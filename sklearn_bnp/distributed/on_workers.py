"""Functions and values that the tasks of workers are made of, all of which can be pickled."""

from __future__ import annotations

from copy import copy

import dask.sizeof
from distributed.protocol.pickle import dumps, loads
from scipy.sparse import issparse

from ..engine.task import partly_combined
from ..inputs.rows import arrays_of
from .chunks import with_others
from .places import Loaded, Through


def _arguments(spec, values):
    """Arguments of `fit` by name, of a chunk as `_Raw` has it and the values of its futures."""
    chunk, names = loads(spec)
    if chunk.x is None:
        x, *values = values
        return with_others(x, {**chunk.others, **dict(zip(names, values, strict=True))})
    return chunk._replace(
        others={**chunk.others, **dict(zip(names, values, strict=True))}
    ).arguments()


def looked(function, spec, *values):
    return loads(function)(_arguments(spec, values))


class Group:
    """Neighbouring chunks: their checked batches, or what gives these anew each time."""

    def __init__(self, reader, specs, keeps, *values):
        self._reader, self._items = loads(reader), []
        values = iter(values)
        for spec, n in specs:
            self._items.append((spec, [next(values) for _ in range(n)]))
        self._batches = [self._read(*item) for item in self._items] if keeps else None
        if keeps:
            self._items = [None] * len(specs)

    def _read(self, spec, values):
        return self._reader(_arguments(spec, values), loads(spec)[0].name)

    def through(self, function):
        """Return a copy whose batches go through a function."""
        new = copy(self)
        if self._batches is None:
            new._reader = Through(self._reader, function)
        else:
            new._batches = [None if batch is None else function(batch) for batch in self._batches]
        return new

    def __len__(self):
        return len(self._items)

    def __sizeof__(self):
        """Bytes, by which dask decides what to keep in memory, and where tasks go."""
        held = [value for item in self._items if item is not None for value in item[1]]
        return sum(map(dask.sizeof.sizeof, held)) + sum(map(_n_bytes, self._batches or ()))

    def load(self, i):
        """Batch of the i-th chunk; None if it has no rows."""
        return self._read(*self._items[i]) if self._batches is None else self._batches[i]


def _n_bytes(batch):
    """Bytes of the arrays of a batch, which may be None."""
    fields = [] if batch is None else [field for field in batch if hasattr(field, "shape")]
    arrays = (array for x in fields for array in (arrays_of(x) if issparse(x) else (x,)))
    return sum(array.nbytes for array in arrays)


def gone_through(function, group):
    return group.through(loads(function))


def each_of(function, args, group):
    """``function(batch)`` of the chunks of a group, in a list; None of chunks without rows."""
    function, batches = loads(function), (group.load(i) for i in range(len(group)))
    args = [()] * len(group) if args is None else [(arg,) for arg in loads(args)]
    return [None if b is None else function(b, *arg) for b, arg in zip(batches, args, strict=True)]


def run_group(order, items, first, n, group):
    """Results of tasks about the chunks of a group, as nodes of the tree over all ``n`` chunks of the batch.

    They are pickled: dask then knows how large they are. ``first`` is the place of the group's first chunk.
    """
    run, task = order
    nodes = {
        (0, first + i): run(
            task._replace(part=Loaded(group.load(i), batch_id), carry=carry, seed=seed)
        )
        for i, (batch_id, carry, seed) in enumerate(loads(items))
    }
    return dumps(joined(task.probes, [nodes], n))


def joined_nodes(order, n, *results):
    """Nodes of several groups, added as far as they can be; pickled as these are."""
    return dumps(joined(order[1].probes, [loads(result) for result in results], n))


def joined(probes, parts, n):
    """Nodes of several parts of the tree, added as far as they can be."""
    return partly_combined(probes, {k: v for part in parts for k, v in part.items()}, n)
