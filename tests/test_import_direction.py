"""Imports point down: slices -> estimator -> splits -> engine, hdp -> likelihood -> inputs -> kernels.

The rules, on the source text alone (nothing is imported, and imports inside functions count):

- a module imports from its own folder or from a lower one;
- the slices (one a model) know nothing of each other, except that memory-bounded topics may use topics;
- no source file and no page of the documentation is longer than 400 lines, docstrings not counted;
- the docstring of a folder says where each of its modules belongs.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "sklearn_bnp"

# Height of each folder; what is in none of these is the public face, at the top.
HEIGHTS = {
    "_version": 0, "_kernels": 0, "inputs": 1, "likelihood": 2, "engine": 3, "hdp": 3,
    "distributed": 4, "splits": 4,
    "estimator": 5, "mixture": 6, "topics": 6, "hmm": 6, "memory_bounded": 6,
    "inspection": 7,
}  # fmt: skip
PUBLIC = 8
SLICES = {folder for folder, height in HEIGHTS.items() if height == 6}
MAY_USE = {("memory_bounded", "topics")}

MAX_LINES = 400
SOURCES = sorted(
    path for ext in ("py", "pyx", "pxd", "h") for path in (ROOT / PACKAGE).rglob(f"*.{ext}")
)
PAGES = sorted((ROOT / "doc").glob("*.rst"))
MODULES = [path for path in SOURCES if path.suffix != ".h"]


def relative_name(path):
    """Path as a test's name."""
    return path.relative_to(ROOT).as_posix()


def module_name(path):
    """``sklearn_bnp/core/__init__.py`` is ``sklearn_bnp.core``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def as_python(source):
    """The import statements of a Cython file, as Python; a ``cimport`` counts as an import."""
    source = re.sub(r"\\\n", " ", re.sub(r"#.*", "", source))
    source = re.sub(r"\([^()]*\)", lambda group: group[0].replace("\n", " "), source)
    lines = (re.sub(r"\bcimport\b", "import", line.strip()) for line in source.splitlines())
    return "\n".join(line for line in lines if re.match(r"import\s|from\s.*\simport\b", line))


def imported_modules(source, package):
    """Names of what a Python source imports, its relative imports resolved in ``package``.

    ``from a import b`` gives ``a.b``, whether ``b`` is a module or a name in one.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                parents = parents[: len(parents) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def part_of(module):
    """The folder of the package in which a module is; None for the public face."""
    names = module.split(".")
    return names[1] if len(names) > 1 and names[1] in HEIGHTS else None


def violation(importer, imported):
    """Why a module may not import this one; None if it may."""
    if imported.split(".")[0] != PACKAGE:
        return None
    here, there = part_of(importer), part_of(imported)
    if HEIGHTS.get(there, PUBLIC) > HEIGHTS.get(here, PUBLIC):
        return f"{here} is below {there or 'the public face'}"
    if here != there and {here, there} <= SLICES and (here, there) not in MAY_USE:
        return f"{here} and {there} are slices, which know nothing of each other"
    if here != there and HEIGHTS.get(here, PUBLIC) == HEIGHTS.get(there, PUBLIC) == 3:
        return f"{here} and {there} stand side by side"
    return None


def violations(source, importer, package):
    """One line for each import that points up or sideways."""
    found = {name: violation(importer, name) for name in imported_modules(source, package)}
    return [f"{importer} imports {name}: {why}" for name, why in found.items() if why]


@pytest.mark.parametrize("path", MODULES, ids=relative_name)
def test_imports_point_down(path):
    source = path.read_text(encoding="utf-8")
    name = module_name(path)
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    assert not violations(source if path.suffix == ".py" else as_python(source), name, package)


@pytest.mark.parametrize("folder", sorted(HEIGHTS.keys() - {"_version", "_kernels"}))
def test_the_docstring_of_a_folder_names_its_modules(folder):
    """Somebody who is new finds each of them by its subject, and not by going through all of them."""
    path = ROOT / PACKAGE / folder
    doc = ast.get_docstring(ast.parse((path / "__init__.py").read_text(encoding="utf-8"))) or ""
    modules = {module.stem for module in path.glob("*.py")} - {"__init__"}
    named = set(re.findall(r"`(\w+)[`.]", doc))
    assert not modules - named, f"name these in the docstring of {folder}/__init__.py"


def n_docstring_lines(source):
    """Lines of the docstrings of a Python module, its classes and its functions."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    first = [node.body[0] for node in nodes if ast.get_docstring(node) is not None]
    return sum(statement.end_lineno - statement.lineno + 1 for statement in first)


@pytest.mark.parametrize("path", [*SOURCES, *PAGES], ids=relative_name)
def test_files_are_short(path):
    """Docstrings do not count: nobody should have to save on them."""
    source = path.read_text(encoding="utf-8")
    n_lines = len(source.splitlines())
    n_lines -= n_docstring_lines(source) if path.suffix == ".py" else 0
    assert n_lines <= MAX_LINES, f"{n_lines} lines: split {relative_name(path)}"


@pytest.mark.parametrize(
    ("importer", "source"),
    [
        ("likelihood.gaussian", "from sklearn_bnp.engine.learner import run_lap"),
        ("likelihood.gaussian", "from ..engine import learner"),
        ("likelihood.gaussian", "from sklearn_bnp import DPMixtureVB"),
        ("inputs.rows", "import sklearn_bnp.likelihood.gaussian"),
        ("engine.learner", "from ..hdp import sticks"),
        ("hdp.sticks", "def plan():\n    from ..engine.memo import Memo"),
        ("engine.learner", "from ..mixture.estimator import DPMixtureVB"),
        ("estimator.base", "from ..topics import counts"),
        ("mixture.birth", "from ..topics.birth import TopicBirth"),
        ("topics.model", "from ..memory_bounded import state"),
        ("_kernels._linalg", "from ..likelihood import base"),
    ],
)
def test_wrong_imports_are_found(importer, source):
    importer = f"{PACKAGE}.{importer}"
    assert len(violations(source, importer, importer.rpartition(".")[0])) == 1


@pytest.mark.parametrize(
    ("importer", "source"),
    [
        ("mixture.estimator", "from ..engine.learner import fit\nfrom ..likelihood import base"),
        ("engine.learner", "from ..likelihood.base import Likelihood\nfrom . import memo"),
        ("likelihood.gaussian", "from .base import ObservationModel\nimport numpy.linalg"),
        ("likelihood.gaussian", "from .._kernels import _linalg\nfrom ..inputs import rows"),
        ("memory_bounded.items", "from ..topics.documents import Documents"),
    ],
)
def test_right_imports_pass(importer, source):
    importer = f"{PACKAGE}.{importer}"
    assert violations(source, importer, importer.rpartition(".")[0]) == []


def test_cython_imports_are_read():
    source = '''
    """Imports of words in a docstring do not count."""
    from cython.parallel cimport prange  # a comment
    from sklearn_bnp.engine.memo cimport (Memo,
                                        Edit)
    cimport numpy
    cdef extern from "vector_math.h":
        pass
    '''
    assert list(imported_modules(as_python(source), f"{PACKAGE}._kernels")) == [
        "cython.parallel.prange",
        "sklearn_bnp.engine.memo.Memo",
        "sklearn_bnp.engine.memo.Edit",
        "numpy",
    ]
