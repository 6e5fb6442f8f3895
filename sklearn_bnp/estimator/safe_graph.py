"""Checks of a graph of objects from a file that anybody may have written, before any object is made.

Design note
-----------
(a) A file names classes, and nothing is imported because of such a name. It is looked up among the classes
    of sklearn_bnp that models are made of, a few others that only hold values, and those that the user
    hands over as trusted. Functions and classes of users are found in the last group alone.
(b) Objects of our classes are made by ``__new__`` and given attributes, and no code of them runs. An
    attribute must not stand in the way of a method, and classes must not stand for values: otherwise
    a file could replace the checks that follow (`estimator.soundness`).
(c) The same checks are made before a file is written, so that what was saved can be loaded.
"""

from __future__ import annotations

import datetime
import decimal
import json
import sys
from enum import Enum
from types import BuiltinFunctionType, FunctionType

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _metadata_requests as requests

from ..inputs.batches import Batch
from ..inputs.frames import Reading
from .object_graph import Graph

# Folders whose classes are values, or hold them. Classes in others open files or run fits.
_FOLDERS = ("_kernels", "engine", "hdp", "likelihood", "mixture", "topics", "hmm", "memory_bounded")
# Classes that are made by a call, with plain values as arguments: names of batches, and columns of blocks.
_MADE = (
    slice, complex, decimal.Decimal,
    datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone,
)  # fmt: skip
# The latest batches of a stream, how a frame is read, samples of sparse rows, and which metadata a user's
# pipeline hands on.
_OTHERS = (
    Batch, Reading,
    *{type(make((1, 1))) for make in (sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array)},
    requests.MetadataRequest, requests.MethodMetadataRequest,
)  # fmt: skip
# An object may be part of several others. Those that are part of too many are made to waste time: the
# hash of a tuple of twice the same tuple, and so on a hundred times, would take for ever.
_MOST_TIMES = 1000

_NODES = {
    "list": "values", "tuple": "values", "set": "values", "frozenset": "values", "dict": "values",
    "array": "array", "scalar": "array", "bytes": "bytes", "objects": "objects",
    "new": "new", "made": "made", "other": "other",
}  # fmt: skip


def name_of(known):
    """The name under which a class or a function stands in files."""
    return f"{known.__module__}.{known.__qualname__}"


class KnownNames:
    """Classes and functions that files may name.

    Parameters
    ----------
    trusted : iterable of type or function
        Those of the user.
    """

    def __init__(self, trusted=()):
        self._trusted = list(trusted)
        for each in self._trusted:
            if not isinstance(each, (type, FunctionType, BuiltinFunctionType)):
                raise ValueError(
                    f"trusted={each!r} must hold classes and functions themselves, not their names."
                )
        self._ours = {name_of(cls): cls for cls in (*_MADE, *_OTHERS, *_own_classes())}

    def find(self, name):
        """The class or function of this name; of the user's, one that has moved to another module, too."""
        if name in self._ours:
            return self._ours[name]
        for same in (name_of, lambda each: each.__qualname__):
            for each in self._trusted:
                if same(each) == (name if same is name_of else _last(name)):
                    return each
        return None

    def missing(self, others):
        """Select the classes and functions among ``others`` that files may not name."""
        return [
            other
            for other in others
            if hasattr(other, "__qualname__") and self.find(name_of(other)) is not other
        ]

    def is_trusted(self, known):
        """Whether a class or function is the user's, who answers for it."""
        return any(known is each for each in self._trusted)


def _last(name):
    """The name of a class without that of its module, if this is a plain one."""
    return name.rsplit(".", 1)[-1]


def _own_classes():
    """Classes of sklearn_bnp that are defined in the folders of values, and are no estimators."""
    package = __name__.split(".")[0]
    for name, module in list(sys.modules.items()):
        if not name.startswith(tuple(f"{package}.{folder}." for folder in _FOLDERS)):
            continue
        for value in list(vars(module).values()):
            own = isinstance(value, type) and value.__module__ == name
            if own and not issubclass(value, BaseException) and not hasattr(value, "fit"):
                yield value


# ---------------------------------------------------------------------- what is no graph


def names_of(others, estimator_name):
    """``others`` of a `Graph` as they stand in a file: names, and the states of random generators."""
    out = []
    for other in others:
        if type(other) is np.random.RandomState:
            state = other.get_state(legacy=False)
            key = state["state"]["key"].tolist()
            out.append([key, state["state"]["pos"], state["has_gauss"], state["gauss"]])
        elif isinstance(other, (type, FunctionType, BuiltinFunctionType)):
            out.append(name_of(other))
        else:
            raise ValueError(
                f"This {estimator_name} holds a {type(other).__name__}, {other!r:.60}, which is neither "
                "made of attributes nor known by name, so that a file of text and arrays cannot hold it. "
                "Take it out, or save the estimator by joblib or pickle."
            )
    return out


def others_of(names, known):
    """``others`` of a `Graph` from the names in a file."""
    found = [_generator(*name) if isinstance(name, list) else known.find(name) for name in names]
    missing = [name for name, each in zip(names, found, strict=True) if each is None]
    if missing:
        raise UnknownName(missing)
    return found


class UnknownName(ValueError):
    """A file names classes or functions that are neither ours nor trusted."""

    def __init__(self, names):
        listed = ", ".join(f"{name!r:.80}" for name in names)
        super().__init__(
            f"it names {listed}, unknown to this version of sklearn_bnp. Classes and functions of your own "
            "that the model uses are not imported: if you trust the file, hand them over as trusted=[...]"
        )


def _generator(key, pos, has_gauss, gauss):
    """A `RandomState`; its position must be within its key, beyond which it would read."""
    array = np.array(key)
    if array.shape != (624,) or array.dtype.kind not in "iu" or not array.min() >= 0:
        raise ValueError("the key of a random generator is not valid")
    if array.max() >= 2**32 or type(pos) is not int or not 0 <= pos <= 624:
        raise ValueError("the position of a random generator is not valid")
    rng = np.random.RandomState()
    rng.set_state(("MT19937", array.astype(np.uint32), pos, int(has_gauss), float(gauss)))
    return rng


# ---------------------------------------------------------------------- graphs


def check_graph(graph, owner_type, known):
    """Raise ValueError unless a `Graph` is made of known parts, and its objects can be made safely.

    Parameters
    ----------
    graph : Graph
    owner_type : type or None
        Class of the object whose attributes the graph holds, a dict by name; None if it is any value.
    known : KnownNames
    """
    root, nodes = json.loads(graph.text)
    checks = _Checks(nodes, graph, known)
    checks.value(root)
    if owner_type is not None:
        kind, *items = nodes[root[0]]
        if kind != "dict" or not all(type(name) is str for name in items[::2]):
            raise ValueError("it does not hold the attributes of an estimator")
        if not known.is_trusted(owner_type):
            checks.attributes(owner_type, items[::2])


class _Checks:
    """Checks of nodes; `value` gives the number of values that a value is made of."""

    def __init__(self, nodes, graph: Graph, known):
        if type(nodes) is not list or nodes[:1] != [["owner"]]:
            raise ValueError("its nodes are not a list")
        self._nodes, self._graph, self._known = nodes, graph, known
        self._sizes = {0: 1}
        self._most = _MOST_TIMES * (len(nodes) + len(graph.text))

    def value(self, x, *, head=False):
        """Size of a plain value, or of the node of which x holds the position."""
        if x is None or type(x) in (bool, int, float, str):
            return 1
        [where] = x
        if type(where) is not int or not 0 <= where < len(self._nodes):
            raise ValueError(f"there is no node {where!r:.40}")
        if where not in self._sizes:
            self._sizes[where] = None
            kind, *content = self._nodes[where]
            if type(kind) is not str or kind not in _NODES:
                raise ValueError(f"it holds a {kind!r:.40}, which files cannot hold")
            size = 1 + getattr(self, f"_{_NODES[kind]}")(*content)
            if size > self._most:
                raise ValueError("its objects are nested in each other too often")
            self._sizes[where] = size
        if self._sizes[where] is None:
            raise ValueError("an object is part of itself")
        if not head and self._nodes[where][0] == "other":
            other = self._graph.others[self._nodes[where][1]]
            if type(other) is not np.random.RandomState and not self._known.is_trusted(other):
                raise ValueError(f"{name_of(other)} stands for a value")
        return self._sizes[where]

    def _values(self, *items):
        return sum(self.value(item) for item in items)

    def _array(self, i):
        self._position(i, self._graph.arrays)
        return 1

    @staticmethod
    def _bytes(text):
        return len(bytes.fromhex(text))

    def _objects(self, shape, *items):
        for n in shape:
            self._position(n, range(len(items) + 1))
        return self._values(*items)

    def _other(self, i):
        self._position(i, self._graph.others)
        return 1

    def _new(self, args, own):
        cls = self._class_of(args[0])
        names = own[::2]
        if not all(type(name) is str for name in names):
            raise ValueError(f"attributes of a {cls.__name__} have no names")
        if not self._known.is_trusted(cls):
            if issubclass(cls, (*_MADE, Enum)):
                raise ValueError(f"a {cls.__name__} is not made of attributes")
            self.attributes(cls, names)
        return self._values(*args[1:], *own[1::2])

    def _made(self, make, *args):
        cls = self._class_of(make)
        if not self._known.is_trusted(cls) and not issubclass(cls, (*_MADE, Enum)):
            raise ValueError(f"a {cls.__name__} is made of attributes")
        return self._values(*args)

    def _class_of(self, x):
        self.value(x, head=True)
        kind, *content = self._nodes[x[0]]
        found = self._graph.others[content[0]] if kind == "other" else None
        if not isinstance(found, type):
            raise ValueError("an object has no class")
        return found

    @staticmethod
    def attributes(cls, names):
        """Raise if an attribute of these names would hide a method of a class."""
        for name in names:
            if name.startswith("__") or callable(getattr(cls, name, None)):
                raise ValueError(f"an attribute {name!r:.60} would hide that of {cls.__name__}")

    @staticmethod
    def _position(i, items):
        if type(i) is not int or not 0 <= i < len(items):
            raise ValueError(f"there is no part {i!r:.40}")
