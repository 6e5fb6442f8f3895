"""Formulas as MathML: browsers draw it themselves, so that pages need no script and no network."""

import re

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

# Names of functions are followed by a narrow space, unless a script or a parenthesis comes next.
_FUNCTION = re.compile(r"(<mi>(?:log|ln|exp|min|max|arg)</mi>)(?!</m|<mo[^>]*>(?:&#x00028;|\())")


def mathml(text, display="inline"):
    """MathML of a formula in LaTeX."""
    return _FUNCTION.sub(r'\1<mspace width="0.17em"/>', convert(text, display=display))


def visit_inline(self, node):
    self.body.append(mathml(node.astext()))
    raise SkipNode


def visit_block(self, node):
    number = ""
    if node.get("number"):
        number = f'<span class="eqno">({node["number"]})</span>'
    anchor = f' id="{node["ids"][0]}"' if node.get("ids") else ""
    # Lines of one block stand below each other, as in LaTeX's "split" or one by one.
    text = node.astext().strip()
    if r"\\" in text and r"\begin" not in text:
        text = rf"\begin{{aligned}} {text} \end{{aligned}}"
    parts = [part for part in text.split("\n\n") if part.strip()]
    maths = "".join(mathml(part, "block") for part in parts)
    self.body.append(f'<div class="math"{anchor}>{number}{maths}</div>')
    raise SkipNode


def setup(app):
    """Register the renderer: ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
