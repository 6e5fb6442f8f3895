"""Recipes for use with other packages run with the real packages, where these are installed."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import re
import warnings
from pathlib import Path

import pytest

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PAGE = Path(__file__).resolve().parents[1] / "doc" / "recipes.rst"
# What the tests of the package install, and what is imported in a moment.
QUICK = {"h5py", "numpy", "pandas", "polars", "sklearn", "sklearn_bnp"}
ALWAYS = {"numpy", "sklearn", "sklearn_bnp"}


def sections() -> dict[str, list[doctest.Example]]:
    """Examples of each section of the page that has some, by its title."""
    parts = re.split(r"^(.+)\n-{3,}\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = zip(parts[1::2], map(doctest.DocTestParser().get_examples, parts[2::2]), strict=True)
    return {title: examples for title, examples in found if examples}


SECTIONS = sections()


def packages(examples) -> set[str]:
    """Packages that the examples import."""
    nodes = [node for x in examples for node in ast.walk(ast.parse(x.source))]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def marked(title):
    """The title, marked as slow if the section imports what takes long."""
    marks = [] if packages(SECTIONS[title]) <= QUICK else [pytest.mark.slow]
    return pytest.param(title, id=title.partition(":")[0], marks=marks)


@pytest.mark.quarter
@pytest.mark.distinct
@pytest.mark.parametrize("title", [marked(title) for title in SECTIONS])
def test_recipe(title, tmp_path, monkeypatch):
    examples = SECTIONS[title]
    missing = [x for x in sorted(packages(examples)) if importlib.util.find_spec(x) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTest(examples, {}, title, str(PAGE), None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of other packages are none of ours
        result = doctest.DocTestRunner(optionflags=FLAGS).run(test)
    assert result.attempted > 0
    assert result.failed == 0


def test_each_recipe_stands_alone():
    """It imports what it uses, and names the releases with which it was tried."""
    text = PAGE.read_text(encoding="utf-8")
    assert len(SECTIONS) == text.count("\nTried with ") >= 7
    for title, examples in SECTIONS.items():
        assert packages(examples) - ALWAYS, title
        assert "sklearn_bnp" in packages(examples), title
