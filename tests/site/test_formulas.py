"""Formulas of the documentation become MathML of which no LaTeX is left over."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

EXTENSIONS = Path(__file__).resolve().parents[2] / "doc" / "_ext"


@pytest.fixture
def renderer(monkeypatch):
    """The extension of Sphinx that writes formulas."""
    pytest.importorskip("latex2mathml")
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    import mathml

    yield mathml
    sys.modules.pop("mathml", None)


def rows(maths):
    return maths.count("<mtr>")


MATRIX = r"\begin{pmatrix} V & 0 \\ 0 & 1 \end{pmatrix}"


@pytest.mark.parametrize(
    ("text", "n_rows", "n_formulas"),
    [
        ("a = b", 0, 1),
        ("a = b\n\nc = d", 0, 2),
        (r"a &= b \\ c &= d \\ e &= f", 3, 1),
        (rf"a = {MATRIX}", 2, 1),
        (rf"a &= {MATRIX} \\ c &= d", 4, 1),
    ],
)
def test_lines_of_a_formula_stand_below_each_other(renderer, text, n_rows, n_formulas):
    maths = renderer.block(text)
    assert (rows(maths), maths.count("<math ")) == (n_rows, n_formulas)
    assert renderer.left_over(maths) == []


def test_braces_of_a_given_size(renderer):
    maths = renderer.mathml(r"\bigl\{ a \bigr\} + \{ b \}")
    shown = re.findall(r"<mo[^>]*>(.*?)</mo>", maths)
    assert shown == ["{", "}", "&#x0002B;", "&#x0007B;", "&#x0007D;"]


@pytest.mark.parametrize("text", [r"\nocommand x", r"\arg x", "a & b"])
def test_latex_that_is_not_known_is_found(renderer, text):
    assert renderer.left_over(renderer.mathml(text))
