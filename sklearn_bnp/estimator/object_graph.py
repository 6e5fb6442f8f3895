"""Objects as a flat graph of plain values, in which an estimator is saved.

Design note
-----------
(a) Formats for saving models differ in what they can hold. Skops, for example, takes no tuples as keys of a
    dictionary and turns other keys into text, so that 1 and "1" become the same. Therefore we hand over
    only text, arrays and objects that are known by name; everything else is described in the text.
(b) The text (JSON) lists nodes: containers, and objects as `copyreg` takes them apart. A number, a string,
    a truth value or None stands for itself; any other value is a list of one number, the position of its
    node. An object that several others refer to is one node, and is shared again after loading.
(c) The checksum is a hash of the text and of the arrays' bytes. It does not depend on the format of the file,
    on the machine or on the order of a set's items, and it is verified before any object is made.
"""

from __future__ import annotations

import copyreg
import json
from hashlib import blake2b
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import NamedTuple

import numpy as np

_PLAIN = (type(None), bool, int, float, str)


class Graph(NamedTuple):
    """Objects in a form that any format for saving models can hold.

    Attributes
    ----------
    text : str
        JSON: the root value, and the list of nodes.
    arrays : list of ndarray
        Arrays of numbers, text and dates; not of objects.
    others : list
        Classes and functions, which are known by name, and objects that only their own library can take
        apart.
    """

    text: str
    arrays: list
    others: list

    def checksum(self, heading=""):
        """Hash of a heading and the content; of ``others``, only names and states of generators count.

        A class that was defined inside a function may lose where: ``cloudpickle`` makes it anew by its name.
        """
        out = blake2b(f"{heading} {self.text}".encode(), digest_size=16)
        for array in self.arrays:
            out.update(f"{array.dtype.str} {array.shape}".encode())
            if array.size and array.dtype.itemsize:
                out.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        for other in self.others:
            named = other if hasattr(other, "__qualname__") else type(other)
            out.update(named.__name__.encode())
            if type(other) is np.random.RandomState:
                out.update(graph_of(other.get_state(legacy=False)).checksum().encode())
        return out.hexdigest()


def graph_of(value, owner=None):
    """`Graph` of a value and of all objects it refers to, except their ``owner``."""
    writer = _Writer(owner)
    root = writer.value(value)
    text = json.dumps([root, writer.nodes], separators=(",", ":"))
    return Graph(text, writer.arrays, writer.others)


def value_of(graph, owner=None):
    """The objects of a graph, made anew. A damaged graph may raise any exception."""
    root, nodes = json.loads(graph.text)
    return _Reader(nodes, graph.arrays, graph.others, owner).value(root)


class _Writer:
    """Nodes of the objects met so far."""

    def __init__(self, owner):
        self.nodes, self.arrays, self.others = [["owner"]], [], []
        self._where = {id(owner): 0}
        self._alive = []  # keeps objects made on the way, so that no other gets the same id

    def value(self, x):
        if type(x) in _PLAIN:
            return x
        if id(x) not in self._where:
            self._where[id(x)] = len(self.nodes)
            self._alive.append(x)
            self.nodes.append(None)
            self.nodes[self._where[id(x)]] = _WRITERS.get(type(x), _Writer.object)(self, x)
        return [self._where[id(x)]]

    def values(self, items):
        return [self.value(item) for item in items]

    def dict(self, x):
        return ["dict", *self.values(item for pair in x.items() for item in pair)]

    def array(self, x):
        if x.dtype == object:
            return ["objects", list(x.shape), *self.values(x.flat)]
        # a slice is saved as an array of its own, in the same order of memory: sums depend on that order
        whole = x.flags.c_contiguous or x.flags.f_contiguous
        self.arrays.append(np.asarray(x) if whole else x.copy(order="K"))
        return ["array", len(self.arrays) - 1]

    def method(self, x):
        return ["method", self.value(x.__self__), x.__name__]

    def other(self, x):
        self.others.append(x)
        return ["other", len(self.others) - 1]

    def object(self, x):
        """Node of an object that is given by its class, the arguments it is made of and its attributes."""
        if isinstance(x, np.generic):
            return ["scalar", self.array(np.asarray(x))[1]]
        if isinstance(x, (type, FunctionType, BuiltinFunctionType)):
            return self.other(x)
        known = copyreg.dispatch_table.get(type(x))
        try:
            reduced = x.__reduce_ex__(2) if known is None else known(x)
        except TypeError:  # cloudpickle may know how to take it apart
            return self.other(x)
        if isinstance(reduced, str):
            return self.other(x)
        make, args, state, *items = (*reduced, None, None, None)[:5]
        if any(item is not None for item in items):
            return self.other(x)
        if make is type(x) and state is None:
            return ["made", self.value(make), *self.values(args)]
        if make is not copyreg.__newobj__ or not _are_attributes(state):
            return self.other(x)
        own = [item for pair in (state or {}).items() for item in pair]
        return ["new", self.values(args), self.values(own)]


def _are_attributes(state):
    return state is None or (type(state) is dict and all(type(name) is str for name in state))


_WRITERS = {
    list: lambda writer, x: ["list", *writer.values(x)],
    tuple: lambda writer, x: ["tuple", *writer.values(x)],
    # sorted, so that the order is the same in every process
    set: lambda writer, x: ["set", *writer.values(sorted(x, key=repr))],
    frozenset: lambda writer, x: ["frozenset", *writer.values(sorted(x, key=repr))],
    dict: _Writer.dict,
    bytes: lambda writer, x: ["bytes", x.hex()],
    np.ndarray: _Writer.array,
    np.memmap: _Writer.array,
    MethodType: _Writer.method,
}


class _Reader:
    """Objects of the nodes, made when they are first asked for."""

    def __init__(self, nodes, arrays, others, owner):
        self.nodes, self.arrays, self.others = nodes, arrays, others
        self._made = {0: owner}

    def value(self, x):
        if type(x) in _PLAIN:
            return x
        [where] = x
        if where not in self._made:
            kind, *content = self.nodes[where]
            made = _READERS[kind](self, where, *content)
            self._made.setdefault(where, made)
        return self._made[where]

    def values(self, items):
        return [self.value(item) for item in items]

    def pairs(self, items):
        values = self.values(items)
        return zip(values[::2], values[1::2], strict=True)

    # a container may refer to itself, and so is registered before its content is made

    def list(self, where, *items):
        out = self._made[where] = []
        out.extend(self.values(items))
        return out

    def set(self, where, *items):
        out = self._made[where] = set()
        out.update(self.values(items))
        return out

    def dict(self, where, *items):
        out = self._made[where] = {}
        out.update(self.pairs(items))
        return out

    def new(self, where, args, own):
        made_of = self.values(args)
        out = self._made[where] = made_of[0].__new__(*made_of)
        attributes = dict(self.pairs(own))
        if hasattr(out, "__setstate__"):
            out.__setstate__(attributes)
        elif attributes:
            vars(out).update(attributes)
        return out

    def objects(self, where, shape, *items):
        out = self._made[where] = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            out[i] = self.value(item)
        self._made[where] = out.reshape(shape)
        return self._made[where]

    def made(self, where, make, *args):
        return self.value(make)(*self.values(args))

    def method(self, where, owner, name):
        return getattr(self.value(owner), name)


_READERS = {
    "list": _Reader.list,
    "tuple": lambda reader, where, *items: tuple(reader.values(items)),
    "set": _Reader.set,
    "frozenset": lambda reader, where, *items: frozenset(reader.values(items)),
    "dict": _Reader.dict,
    "array": lambda reader, where, i: reader.arrays[i],
    "scalar": lambda reader, where, i: reader.arrays[i][()],
    "bytes": lambda reader, where, text: bytes.fromhex(text),
    "objects": _Reader.objects,
    "method": _Reader.method,
    "made": _Reader.made,
    "new": _Reader.new,
    "other": lambda reader, where, i: reader.others[i],
}
