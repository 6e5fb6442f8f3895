"""The examples of the gallery run without a warning, and have the form that the gallery needs."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples" / "gallery"
FILES = sorted(FOLDER.rglob("plot_*.py"))
QUICK = {"plot_getting_started.py"}
# Folders of scikit-learn's photographs, and other things that third parties import late, may warn at import.
RUN = "import runpy, sys, warnings; import matplotlib.pyplot, sklearn_bnp; warnings.simplefilter('error'); "
RUN += "runpy.run_path(sys.argv[1], run_name='__main__')"


def marked(path):
    """The file, marked as slow if it is not one of the quick ones."""
    marks = [] if path.name in QUICK else [pytest.mark.slow]
    return pytest.param(path, id=path.stem, marks=marks)


def said_in_prose(source):
    """Decimals, and numbers of components, in the first and the last words of an example.

    Paragraphs that name a benchmark have its numbers, and not those of the example.
    """
    conclusion = "\n".join(
        line.removeprefix("#")
        for line in source.split("# %%\n")[-1].splitlines()
        if line[:1] == "#"
    )
    paragraphs = [*ast.get_docstring(ast.parse(source)).split("\n\n"), *conclusion.split("\n\n")]
    text = " ".join(part for part in paragraphs if "tests/benchmarks" not in part)
    text = re.sub(r"\bSec\. [\d.]+", "", text)
    counts = re.findall(r"\b(\d+)\s+(?:components|clusters|states|topics)\b", text)
    return set(re.findall(r"(?<![\w.])\d+\.\d+", text)) | set(counts)


def printed(output):
    """Numbers that were printed, and what is left of them if they are rounded."""
    for number in re.findall(r"\d+(?:\.\d+)?", output):
        yield number
        for digits in range(1, len(number.partition(".")[2])):
            yield f"{float(number):.{digits}f}"


@pytest.mark.extended
@pytest.mark.parametrize("path", [marked(path) for path in FILES])
def test_example_runs_without_warnings(path, tmp_path):
    pytest.importorskip("matplotlib")
    if "import pandas" in path.read_text(encoding="utf-8"):
        pytest.importorskip("pandas")
    python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(path)],
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": python_path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    unsaid = said_in_prose(path.read_text(encoding="utf-8")) - set(printed(run.stdout))
    assert not unsaid, f"the example says these numbers and does not print them: {sorted(unsaid)}"
    assert not list(tmp_path.iterdir()), "an example leaves no file behind"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_form_of_an_example(path):
    source = path.read_text(encoding="utf-8")
    module = ast.parse(source)
    lines = ast.get_docstring(module).splitlines()
    assert lines[0] and set(lines[1]) == {"="} and len(lines[1]) >= len(lines[0])
    assert lines[2] == "" and len(lines) > 4, "a paragraph after the title"
    assert len(source.splitlines()) < 130
    last_block = source.split("# %%\n")[-1]
    assert last_block.startswith("# "), "the last block begins with the conclusion"


def test_examples_import_public_names_only():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("sklearn_bnp"):
                assert node.module in {"sklearn_bnp", "sklearn_bnp.inspection"}, path.name


def test_the_gallery_has_a_heading():
    lines = (FOLDER / "README.rst").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["Examples", "========"] and len(FILES) >= 20


def test_scripts_beside_the_gallery_are_named_on_a_page():
    pages = [*(ROOT / "doc").glob("*.rst"), ROOT / "README.rst"]
    text = "".join(path.read_text(encoding="utf-8") for path in pages)
    scripts = {f"examples/{path.name}" for path in (ROOT / "examples").glob("*.py")}
    assert scripts == set(re.findall(r"examples/\w+\.py", text))


def test_each_section_names_its_examples_in_order():
    sections = runpy.run_path(str(ROOT / "doc" / "_ext" / "gallery_order.py"))["SECTIONS"]
    found = {}
    for path in FILES:
        found.setdefault(path.parent.name, []).append(path.stem.removeprefix("plot_"))
    assert {name: sorted(files) for name, files in sections.items()} == found
    for name in sections:
        title, line, *_ = (FOLDER / name / "README.rst").read_text(encoding="utf-8").splitlines()
        assert title and set(line) == {"-"} and len(line) == len(title)
