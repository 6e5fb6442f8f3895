"""Fingerprints of fits, by which a `Checkpoint` and ``warm_start`` know a fit again.

Design note
-----------
(a) A fingerprint is a hash of all that the result of a fit depends on. Two fits of which any of it differs
    must not share one, since the second would silently get the result of the first. That two equal fits have
    different ones does less harm: the second is made anew.
(b) Functions and classes of the user are hashed by their code and by what this code uses: defaults, contents
    of closures, and the global values that it names, among them other functions. Those of installed packages
    are hashed by name.
(c) What has no hash that another process would find again, such as an open file, is an error.
"""

from __future__ import annotations

import dis
import os
import sys
from functools import lru_cache
from hashlib import blake2b
from types import CodeType, FunctionType, ModuleType

from joblib.hashing import NumpyHasher
from scipy.sparse import issparse
from sklearn.base import clone

from ..distributed.source import ChunkBatch

# Parameters on which the result of a fit does not depend.
_OF_NO_ACCOUNT = ("n_jobs", "verbose")
_OF_CODE = (
    "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags", "co_argcount",
    "co_posonlyargcount", "co_kwonlyargcount", "co_exceptiontable", "co_consts",
)  # fmt: skip
_OF_GLOBALS = {"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"}
_PACKAGE = __name__.split(".")[0]
# The type of functions that keep their results.
_CACHED = type(lru_cache(len))
# Folders of installed packages.
_INSTALLED = {"site-packages", "dist-packages"}


def fingerprint(estimator, data, *others, but=()):
    """Hash of an estimator's class, parameters and checked data, which is the same in all processes.

    Parameters
    ----------
    estimator : estimator
    data : object
        With a ``batch`` of all data, and a `Reading` or None.
    *others : object
        More of which the result depends.
    but : tuple of str
        Parameters that are left out, beside those on which no result depends.

    Raises
    ------
    ValueError
        If a parameter cannot be recognised, such as a function that uses an open file.
    """
    cls, of_data = type(estimator), _of_data(estimator, data)
    left_out = (*_OF_NO_ACCOUNT, *but)
    try:
        params = clone(estimator).get_params()
        params = {name: value for name, value in params.items() if name not in left_out}
        return _hash([cls, params, of_data, *others], {})
    except Exception as error:  # what cannot be pickled may raise anything
        why = error.args[0] if error.args else type(error).__name__
        raise ValueError(
            f"A parameter of this {cls.__name__} cannot be recognised by another process: {why}. Functions "
            "and classes of your own are recognised by their code and by the values that it uses: let it use "
            "none that cannot be pickled, such as locks and open files."
        ) from error


def _of_data(estimator, data):
    """The parts of checked data that a fit depends on: numbers, their type, and how a frame was read."""
    batch = data.batch
    forms = batch.each(_form) if isinstance(batch, ChunkBatch) else [_form(batch)]
    return [estimator.n_features_in_, batch.content_hash(), forms, data.reading]


def _form(batch):
    """Type of the numbers of rows, and whether they are sparse; None if there are no rows."""
    x = batch.x
    return None if x is None else f"{x.dtype.str}{' sparse' if issparse(x) else ''}"


def _hash(value, known):
    """Hash of a value; ``known`` holds the functions and classes met so far."""
    return _Hasher(known).hash(value)


class _Hasher(NumpyHasher):
    """Hasher of joblib that knows functions and classes of the user by more than their names.

    Parameters
    ----------
    known : dict
        From the identity of each function or class met so far to itself and its hash. Those under way are in
        it with a number, since functions may call each other.
    """

    def __init__(self, known):
        super().__init__()
        self._known = known

    def save(self, obj):
        """Pickle an object, or what stands for it."""
        super().save(self._stand_in(obj))

    def _stand_in(self, x):
        """What is hashed for ``x``: a hash of their code for the user's functions and classes, else ``x``."""
        if isinstance(x, (FunctionType, type)):
            parts_of = _parts_of_class if isinstance(x, type) else _parts_of_function
            return x if _is_installed(x) else self._once(x, parts_of)
        if isinstance(x, CodeType):
            return self._once(x, _parts_of_code)
        if isinstance(x, ModuleType):
            return "module", x.__name__, _text_of(x) if _is_own(x.__name__) else None
        if isinstance(x, _CACHED):
            return "cached", _hash(x.__wrapped__, self._known)
        if isinstance(x, (set, frozenset)):  # in an order that is the same in every process
            return type(x).__name__, sorted(_hash(item, self._known) for item in x)
        return x

    def _once(self, x, parts_of):
        """Hash of the parts of an object, which are taken apart once."""
        if id(x) not in self._known:
            self._known[id(x)] = x, f"under way: {len(self._known)}"
            try:
                self._known[id(x)] = x, _hash(parts_of(x), self._known)
            except BaseException:
                del self._known[id(x)]  # joblib tries again to hash the dict that it is in
                raise
        return self._known[id(x)][1]


def _parts_of_function(x):
    """A function's name and code, and the values that it uses beside its arguments."""
    used = {name: x.__globals__[name] for name in _global_names(x.__code__) & set(x.__globals__)}
    return [
        x.__module__, x.__qualname__, x.__code__, x.__defaults__, _sorted(x.__kwdefaults__ or {}),
        [_content(cell) for cell in x.__closure__ or ()], _sorted(vars(x)), _sorted(used),
    ]  # fmt: skip


def _parts_of_code(x):
    return [getattr(x, name, None) for name in _OF_CODE]


def _parts_of_class(x):
    """A class's name, its methods and values, and the classes that it derives from."""
    own = {name: _plain(value) for name, value in vars(x).items() if not name.startswith("_abc_")}
    used = {
        name: value
        for name, value in own.items()
        if isinstance(value, (FunctionType, tuple)) or not name.startswith("__")
    }
    return [x.__module__, x.__qualname__, x.__bases__, _sorted(used)]


def _plain(value):
    """The functions that a class holds as a method or a property; the value itself if it is none."""
    if isinstance(value, (staticmethod, classmethod)):
        return type(value).__name__, value.__func__
    if isinstance(value, property):
        return "property", value.fget, value.fset, value.fdel
    return value


def _global_names(code):
    """Names of the global values that some code uses, that of functions inside of it included."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname in _OF_GLOBALS}
    inside = (each for each in code.co_consts if isinstance(each, CodeType))
    return own.union(*map(_global_names, inside))


def _content(cell):
    """A list with the value of a variable of a closure; empty if the variable has no value yet."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _sorted(named):
    """Pairs of a dict with names for keys, in their order."""
    return [(name, named[name]) for name in sorted(named)]


def _is_installed(x):
    """Whether a function or class is found by its name in an installed package, or in Python itself."""
    found = sys.modules.get(x.__module__)
    for name in x.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is x and not _is_own(x.__module__)


def _is_own(name):
    """Whether a module of this name is the user's: of no installed package, nor of Python."""
    if name == "__main__":  # whose file may be that of an installed program, as in notebooks
        return True
    if name.split(".")[0] in (_PACKAGE, *sys.builtin_module_names, *sys.stdlib_module_names):
        return False
    path = getattr(sys.modules.get(name), "__file__", None)
    return path is None or not _INSTALLED.intersection(os.path.abspath(path).split(os.sep))


def _text_of(module):
    """Hash of the file of a module; its name if it has none."""
    path = getattr(module, "__file__", None)
    if path is None:
        return module.__name__
    with open(path, "rb") as file:
        return blake2b(file.read()).hexdigest()
