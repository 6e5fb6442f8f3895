"""Imports point down: estimators -> core -> observation, allocation, proposals -> kernels.

The rules, on the source text alone (nothing is imported, and imports inside functions count):

- a module imports from its own layer or from a lower one;
- observation, allocation and proposals know each other by their ``base`` alone, so that a
  likelihood, an allocation or a proposal can be added or removed without touching the others;
- a leaf module may be imported by everybody, and itself imports nothing of ours;
- no source file and no page of the documentation is longer than 400 lines.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "sklearn_bnp"

# Height of each part; what is in none of these folders is the public face, at the top.
HEIGHTS = {"_kernels": 0, "observation": 1, "allocation": 1, "proposals": 1, "core": 2, "clumps": 2}
PUBLIC = 3
SEPARATE = {"observation", "allocation", "proposals"}
LEAVES = {
    f"sklearn_bnp.core.{name}"
    for name in ("corpus", "document_counts", "rows", "stats", "transitions")
}

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


def is_leaf(module):
    """True for a leaf, and for the names in one."""
    return any(f"{module}.".startswith(f"{leaf}.") for leaf in LEAVES)


def violation(importer, imported):
    """Why a module may not import this one; None if it may."""
    if imported.split(".")[0] != PACKAGE or is_leaf(imported):
        return None
    if importer in LEAVES:
        return "a leaf imports nothing of ours"
    here, there = part_of(importer), part_of(imported)
    if HEIGHTS.get(there, PUBLIC) > HEIGHTS.get(here, PUBLIC):
        return f"{here} is below {there or 'the public face'}"
    siblings = here != there and {here, there} <= SEPARATE
    if siblings and imported.split(".")[2:3] != ["base"]:
        return f"{here} may import of {there} only its base"
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


@pytest.mark.parametrize("leaf", sorted(LEAVES))
def test_package_of_a_leaf_imports_nothing(leaf):
    # Importing a leaf runs the package that holds it: whatever that imports, everybody would.
    path = ROOT.joinpath(*leaf.split(".")[:-1], "__init__.py")
    imported = imported_modules(path.read_text(encoding="utf-8"), leaf.rpartition(".")[0])
    assert [name for name in imported if name.startswith(PACKAGE)] == []


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
        ("observation.gaussian", "from sklearn_bnp.core.learner import run_lap"),
        ("observation.gaussian", "from ..core import learner"),
        ("observation.gaussian", "from sklearn_bnp import DPMixtureVB"),
        ("observation.gaussian", "from ..allocation.mixture import MixtureAllocation"),
        ("allocation.mixture", "import sklearn_bnp.observation.gaussian"),
        ("proposals.birth", "from ..observation import GaussianObservation"),
        ("proposals.birth", "def plan():\n    from ..core.memo import Memo"),
        ("core.learner", "from .._mixture import DPMixtureVB"),
        ("core.stats", "from ..core import memo"),
        ("_kernels._linalg", "from ..observation import base"),
    ],
)
def test_wrong_imports_are_found(importer, source):
    importer = f"{PACKAGE}.{importer}"
    assert len(violations(source, importer, importer.rpartition(".")[0])) == 1


@pytest.mark.parametrize(
    ("importer", "source"),
    [
        ("_mixture", "from .core.learner import fit\nfrom .observation import GaussianObservation"),
        ("core.learner", "from ..proposals.base import Edit\nfrom . import memo"),
        ("observation.gaussian", "from .base import ObservationModel\nimport numpy.linalg"),
        ("observation.gaussian", "from .._kernels import _linalg\nfrom ..core import stats"),
        ("proposals.birth", "from ..observation.base import ObservationModel"),
    ],
)
def test_right_imports_pass(importer, source):
    importer = f"{PACKAGE}.{importer}"
    assert violations(source, importer, importer.rpartition(".")[0]) == []


def test_cython_imports_are_read():
    source = '''
    """Imports of words in a docstring do not count."""
    from cython.parallel cimport prange  # a comment
    from sklearn_bnp.core.memo cimport (Memo,
                                        Edit)
    cimport numpy
    cdef extern from "vector_math.h":
        pass
    '''
    assert list(imported_modules(as_python(source), f"{PACKAGE}._kernels")) == [
        "cython.parallel.prange",
        "sklearn_bnp.core.memo.Memo",
        "sklearn_bnp.core.memo.Edit",
        "numpy",
    ]
