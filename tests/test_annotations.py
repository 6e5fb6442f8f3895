"""What is public has annotations: type checkers of users read them, since the package has ``py.typed``.

That they fit together is checked by mypy, in ``.ci/run``.
"""

import importlib
import inspect
from pathlib import Path
from typing import get_type_hints

import pytest

import sklearn_bnp

MODULES = ("sklearn_bnp", "sklearn_bnp.inspection", "sklearn_bnp.mixture")


def is_ours(function):
    return function.__module__.partition(".")[0] == "sklearn_bnp"


def functions_of(cls):
    """The constructor, public methods and properties that a class has from this package."""
    for name in dir(cls):
        if name.startswith("_") and name != "__init__":
            continue
        value = inspect.getattr_static(cls, name)
        value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if inspect.isfunction(value) and is_ours(inspect.unwrap(value)):
            yield f"{cls.__name__}.{name}", inspect.unwrap(value)


def public_functions():
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            yield from functions_of(value) if inspect.isclass(value) else [(name, value)]


FUNCTIONS = dict(public_functions())


def test_the_package_says_that_it_has_types():
    assert (Path(sklearn_bnp.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_have_annotations(name):
    function = FUNCTIONS[name]
    hints = get_type_hints(function)  # raises if a name in them is not imported
    assert {"return", *inspect.signature(function).parameters} - {"self", "cls"} <= hints.keys()
