"""Functions and values that the tasks of workers are made of, all of which can be pickled."""

from __future__ import annotations

import os
from copy import copy
from functools import cached_property
from typing import NamedTuple

import dask.sizeof
import numpy as np
from distributed.protocol.pickle import dumps, loads
from scipy.sparse import issparse

from ..engine.left_behind import parted
from ..engine.task import added_siblings, partly_combined
from .chunks import with_others
from .this_process import Loaded, Through
from .wire import Nodes, n_bytes_on_the_way


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
    arrays = (
        array for x in fields for array in ((x.indptr, x.indices, x.data) if issparse(x) else (x,))
    )
    return sum(array.nbytes for array in arrays)


def gone_through(function, group):
    return group.through(loads(function))


def each_of(function, args, group):
    """``function(batch)`` of the chunks of a group, in a list; None of chunks without rows."""
    function, batches = loads(function), (group.load(i) for i in range(len(group)))
    args = [()] * len(group) if args is None else [(arg,) for arg in loads(args)]
    return [None if b is None else function(b, *arg) for b, arg in zip(batches, args, strict=True)]


def run_group(shared, items, first, n, group):
    """Results of tasks about the chunks of a group: `Nodes` of the tree over all ``n`` chunks of the batch.

    ``first`` is the place of the group's first chunk.
    """
    nodes = {
        (0, first + i): shared.on(Loaded(group.load(i), part.batch_id), carry, seed)
        for i, (part, carry, seed) in enumerate(loads(items))
    }
    return Nodes(joined(shared.probes, [nodes], n))


class Visited(Nodes):
    """Results of tasks about the chunks of a group, and what they left behind.

    The results are those of `run_group`. What was left stays with this object, by position of the chunk. It
    is also written to ``path``, unless that is None. No other process should ask for all of this.
    """

    def __init__(self, shared, items, first, n, visit, path, group, *before):
        nodes, self.kept, visit = {}, {}, loads(visit)
        find = finder(before)
        for i, (part, carry, seed) in enumerate(loads(items)):
            carry = None if carry is None else carry.at_hand(find)
            result = shared.on(Loaded(group.load(i), part.batch_id), carry, seed)
            if result is not None:
                result, self.kept[part.position] = parted(result, visit, part.position)
            nodes[0, first + i] = result
        super().__init__(joined(shared.probes, [nodes], n))
        self.name = visit.name
        if path is not None:
            with open(f"{path}.part", "wb") as file:
                file.write(dumps(self.kept))
            os.replace(f"{path}.part", path)

    @cached_property
    def n_bytes(self):
        """Bytes that would be sent, and those of what was left behind."""
        return n_bytes_on_the_way((self.nodes, self.kept))


def nodes_of(visited):
    """`Nodes` of a `Visited`, without what was left."""
    return Nodes(visited.nodes)


class Stored(NamedTuple):
    """Names the file that holds what the tasks of a visit left behind.

    Attributes
    ----------
    name : str
        Of the visit.
    path : str
    """

    name: str
    path: str

    @property
    def kept(self):
        """As that of the `Visited`."""
        with open(self.path, "rb") as file:
            return loads(file.read())


def finder(visited):
    """A function that finds what a `Left` names in some `Visited`, or pickled `Stored`."""
    kept = {}
    for each in visited:
        each = loads(each) if isinstance(each, bytes) else each
        kept.setdefault(each.name, {}).update(each.kept)
    return lambda left: kept[left.visit.name][left.position][left.number]


def sums_of_left(function, away, n, *visited):
    """Nodes of the tree over ``n`` parts: ``function`` of what was left of some of them."""
    function, find = loads(function), finder(visited)
    nodes = {(0, i): function(part.at_hand(find)) for i, part in loads(away).items()}
    return dumps(added_siblings(np.add, nodes, n))


def brought(away, *visited):
    find = finder(visited)
    return dumps({i: part.at_hand(find) for i, part in loads(away).items()})


def joined_nodes(shared, n, *results):
    """`Nodes` of several groups, added as far as they can be."""
    return Nodes(joined(shared.probes, [result.nodes for result in results], n))


def joined(probes, parts, n):
    """Nodes of several parts of the tree, added as far as they can be."""
    return partly_combined(probes, {k: v for part in parts for k, v in part.items()}, n)
