"""What is public is documented: numpydoc's checks, and examples that run.

The checks, and the few that are left out with the reason of each, are in pyproject.toml under
``tool.numpydoc_validation``.
"""

import ast
import doctest
import inspect
import re
import tomllib
from enum import Enum
from pathlib import Path

import pytest
from numpydoc.validate import ERROR_MSGS, validate

import sklearn_bnp
import sklearn_bnp.engine
import sklearn_bnp.inspection
import sklearn_bnp.mixture
from sklearn_bnp.engine.state import Lap
from sklearn_bnp.memory_bounded.estimator import EpochRecord

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = sklearn_bnp.__name__
MODULES = [sklearn_bnp, sklearn_bnp.engine, sklearn_bnp.inspection, sklearn_bnp.mixture]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
LONG_PAGES = {
    "columns",
    "migration",
    "missing_values",
    "mixtures",
    "persistence",
    "streams",
    "units",
}
SLOW_PAGES = {"combining", "distributed", "hmm", "recipes_results", "topics"}


def checks():
    """Codes of the checks that count; ``all`` means every one that is not named after it."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        listed = set(tomllib.load(file)["tool"]["numpydoc_validation"]["checks"])
    return set(ERROR_MSGS) - listed if "all" in listed else listed


def is_ours(value):
    """True for what is defined in this package, and not inherited from scikit-learn."""
    return getattr(value, "__module__", "").partition(".")[0] == PACKAGE


def public_members(cls):
    """Names of the public methods and properties that a class has from this package."""
    for name, value in inspect.getmembers(cls):
        function = value.fget if isinstance(value, property) else value
        # scikit-learn adds the set_..._request methods to each class, and documents them.
        if not name.startswith("_") and callable(function) and is_ours(function):
            yield name


def where_promised(cls, member):
    """Full name of a member in the most basic of our classes that has it, other than as data.

    What it takes and returns is said there; an override says only what is particular to it.
    """
    ours = [base for base in cls.__mro__ if is_ours(base)]
    basic = [base for base in ours if hasattr(vars(base).get(member), "__get__")][-1]
    return f"{basic.__module__}.{basic.__qualname__}.{member}"


def exported(module):
    """What a module exports, by its full name; of the modules among it, what they export."""
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            yield from exported(value)
        elif callable(value):
            yield f"{module.__name__}.{name}", value


def public_names():
    """Full names of all public classes, functions, methods and properties."""
    for module in MODULES:
        for name, value in exported(module):
            if not (inspect.isclass(value) and issubclass(value, Enum)):  # nobody calls these
                yield name
            if inspect.isclass(value):
                yield from (where_promised(value, member) for member in public_members(value))


@pytest.mark.parametrize(("name", "cls"), list(exported(sklearn_bnp)))
def test_shared_text_is_in_its_place(name, cls):
    """No placeholder such as ``$random_state`` is left for `help` and the pages to show."""
    calls = [getattr(cls, name) for name in ("fit", "partial_fit") if hasattr(cls, name)]
    for documented in (cls, *calls):
        assert not re.findall(r"\$\w+", inspect.getdoc(documented) or "")


@pytest.mark.parametrize("name", sorted(set(public_names())))
def test_docstring_follows_numpydoc(name):
    errors = validate(name)["errors"]
    assert [f"{code}: {message}" for code, message in errors if code in checks()] == []


@pytest.mark.quarter
@pytest.mark.distinct
@pytest.mark.parametrize(("name", "value"), list(exported(sklearn_bnp)))
def test_examples_run(name, value):
    # No globals: what a user would have to import, the example has to import.
    found = doctest.DocTestFinder().find(value, name, globs={})
    tests = [test for test in found if test.examples]
    assert tests, f"{name} has no example"
    results = [doctest.DocTestRunner(optionflags=FLAGS).run(test) for test in tests]
    assert sum(result.failed for result in results) == 0


def pages_with_examples():
    """README and the pages with examples; those that take long are marked as extended, or as slow."""
    for path in [ROOT / "README.rst", *sorted((ROOT / "doc").glob("*.rst"))]:
        # recipes need other packages, and are run by tests of their own
        if path.stem != "recipes" and ">>> " in path.read_text(encoding="utf-8"):
            marks = [pytest.mark.slow] if path.stem in SLOW_PAGES else []
            marks += [pytest.mark.extended] if path.stem in LONG_PAGES else []
            yield pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.distinct
@pytest.mark.parametrize("path", list(pages_with_examples()))
def test_examples_of_pages_run(path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for package in ("dask", "matplotlib", "pandas"):
        if re.search(rf"(?m)^ *>>> .*\b{package}\b", path.read_text(encoding="utf-8")):
            pytest.importorskip(package)
    result = doctest.testfile(str(path), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert result.attempted > 0
    assert result.failed == 0


def test_code_of_pages_fits_the_screen():
    """Longer lines are cut off where pages are 1300 pixels wide."""
    for path in (ROOT / "doc").glob("*.rst"):
        lines = path.read_text(encoding="utf-8").splitlines()
        code = [line.strip() for line in lines if re.match(r" *(>>>|\.\.\.) ", line)]
        assert [line for line in code if len(line) > 100] == [], path.name


def rows_of_simple_tables(lines):
    """Lines between the rulers of simple tables, with the place where the first column ends."""
    ends = None
    for line in lines:
        ruler = re.fullmatch(r" *(=+)( +=+)+", line)
        if ruler:
            ends = ruler.end(1)
        elif not line.strip():
            ends = None
        elif ends is not None:
            yield line, ends


def test_rows_of_tables_go_on_in_other_columns():
    """A line with text in the first column begins a row; with nothing else, it was meant to go on."""
    rows = list(rows_of_simple_tables(["==  ==", "a   b", "c", "==  ==", "", "d"]))
    assert rows == [("a   b", 2), ("c", 2)]
    for path in (ROOT / "doc").glob("*.rst"):
        lines = path.read_text(encoding="utf-8").splitlines()
        cut = [
            x for x, end in rows_of_simple_tables(lines) if x[:end].strip() and not x[end:].strip()
        ]
        assert cut == [], path.name


@pytest.mark.parametrize(("name", "value"), list(exported(sklearn_bnp)))
def test_documented_defaults(name, value):
    """Of numbers, strings and the like; ``default=10`` may stand for 10.0."""
    documented = dict(re.findall(r"(?m)^ {4}(\w+) : .*, default=(.+)$", value.__doc__))
    actual = {
        name: parameter.default
        for name, parameter in inspect.signature(value).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    assert {name: ast.literal_eval(text) for name, text in documented.items()} == actual


@pytest.mark.parametrize("module", MODULES)
def test_reference_lists_all(module):
    page = (ROOT / "doc" / "api.rst").read_text(encoding="utf-8")
    tables = re.findall(r"\.\. autosummary::\n(?:   :.*\n)*\n((?:   \w+\n)+)", page)
    listed = {name for table in tables for name in table.split()}
    assert set(module.__all__) <= listed


@pytest.mark.parametrize(
    ("cls", "record"),
    [
        (sklearn_bnp.DPMixtureVB, Lap),
        (sklearn_bnp.HDPTopicVB, Lap),
        (sklearn_bnp.HDPHMMVB, Lap),
        (sklearn_bnp.MemoryBoundedTopicVB, EpochRecord),
    ],
    ids=lambda value: value.__name__,
)
def test_records_of_the_history_are_described_in_full(cls, record):
    entry = re.search(r"(?m)^history_ : .*\n((?:    .*\n)+)", inspect.getdoc(cls))[1]
    listed = re.match(r"[^:]*: ([^.]*)\.", " ".join(entry.split()))[1]
    assert listed.split(", ") == list(record._fields)


def test_a_bad_docstring_is_found():
    codes = {code for code, _ in validate(f"{__name__}.undocumented")["errors"]}
    assert codes & checks() == {"GL08"}


def undocumented(): ...
