"""Formulas as MathML: browsers draw it themselves, so that pages need no script and no network."""

import re
import unicodedata

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.util import logging

# Names of functions are followed by a narrow space, unless a script or a parenthesis comes next, and follow
# one if a factor stands before them.
_NAME = r"<mi>(?:log|ln|exp|min|max|arg)</mi>"
_SPACE = '<mspace width="0.17em"/>'
_FUNCTION = re.compile(rf"({_NAME})(?!</m|<mo[^>]*>(?:&#x00028;|\())")
_FACTOR = re.compile(rf"(</(?:mi|mn|msub|msup|msubsup|mfrac)>)({_NAME})(?!</m)")
# The converter leaves braces of a given size, \bigl\{, as they are written.
_BRACE = re.compile(r"(?<=>)\\([{}])(?=</mo>)")
# Browsers know no "mathvariant" but "normal": script capitals have letters of their own in Unicode.
_SCRIPT = re.compile(r'<mi mathvariant="script">([A-Z])</mi>')
_ENVIRONMENT = re.compile(r"\\begin\{(\w+\*?)\}.*?\\end\{\1\}", re.DOTALL)
# LaTeX that the converter did not know: it stands in the formula as text.
_LEFT_OVER = re.compile(r">([^<>&]*\\[^<>]*|&)</")
_LOGGER = logging.getLogger(__name__)


def script(found):
    """The script capital for a match of `_SCRIPT`; eight are older than the alphabet of the others."""
    try:
        letter = unicodedata.lookup(f"SCRIPT CAPITAL {found[1]}")
    except KeyError:
        letter = unicodedata.lookup(f"MATHEMATICAL SCRIPT CAPITAL {found[1]}")
    return f"<mi>{letter}</mi>"


def mathml(text, display="inline"):
    """MathML of a formula in LaTeX."""
    maths = _FACTOR.sub(rf"\1{_SPACE}\2", convert(text, display=display))
    maths = _FUNCTION.sub(rf"\1{_SPACE}", maths)
    return _SCRIPT.sub(script, _BRACE.sub(r"\1", maths))


def left_over(maths):
    """List the LaTeX commands that were not translated, and that a reader of the page would see."""
    return _LEFT_OVER.findall(maths)


def block(text):
    """MathML of the formulas of a block, which empty lines divide.

    Lines of a formula that end in a double backslash stand below each other, as in LaTeX's "split".
    """
    parts = [part.strip() for part in text.split("\n\n") if part.strip()]
    lines = [r"\\" in _ENVIRONMENT.sub("", part) for part in parts]
    split = r"\begin{{split}} {} \end{{split}}"
    return "".join(
        mathml(split.format(part) if several else part, "block")
        for part, several in zip(parts, lines, strict=True)
    )


def checked(maths, node):
    """MathML of a node; a warning if it has LaTeX in it."""
    if found := left_over(maths):
        _LOGGER.warning("formula with LaTeX that is not known: %s", found, location=node)
    return maths


def visit_inline(self, node):
    self.body.append(checked(mathml(node.astext()), node))
    raise SkipNode


def visit_block(self, node):
    number = ""
    if node.get("number"):
        number = f'<span class="eqno">({node["number"]})</span>'
    anchor = f' id="{node["ids"][0]}"' if node.get("ids") else ""
    maths = checked(block(node.astext()), node)
    self.body.append(f'<div class="math"{anchor}>{number}{maths}</div>')
    raise SkipNode


def setup(app):
    """Register the renderer: ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
