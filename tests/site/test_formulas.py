"""Formulas of the documentation become MathML of which no LaTeX is left over."""

from __future__ import annotations

import html
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


@pytest.mark.parametrize(
    ("text", "n_spaces"),
    [
        (r"\log x", 1),
        (r"\alpha \log x", 2),
        (r"\frac12 \log(x)", 1),
        (r"- \log x", 1),
        (r"x_\log", 0),
    ],
)
def test_spaces_about_names_of_functions(renderer, text, n_spaces):
    assert renderer.mathml(text).count("<mspace") == n_spaces


def test_script_capitals_need_no_variant(renderer):
    """Browsers ignore "mathvariant", and the bound would look like a matrix L."""
    maths = renderer.mathml(r"\mathcal L = \mathcal{T} - L")
    assert re.findall(r"<mi>(.)</mi>", html.unescape(maths)) == ["\u2112", "\U0001d4af", "L"]
    assert "script" not in maths


@pytest.mark.parametrize("text", [r"\nocommand x", r"\arg x", "a & b"])
def test_latex_that_is_not_known_is_found(renderer, text):
    assert renderer.left_over(renderer.mathml(text))
