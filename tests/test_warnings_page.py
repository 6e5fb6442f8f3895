"""``doc/warnings.rst`` has each warning of the package, and no other."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "doc" / "warnings.rst"


def template(message):
    """A literal text or an f-string, with dots in place of its values; None for anything else."""
    parts = message.values if isinstance(message, ast.JoinedStr) else [message]
    known = (ast.Constant, ast.FormattedValue)
    if not all(isinstance(part, known) for part in parts):
        return None
    return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in parts)


def messages(tree):
    """Templates of what is given to `warn_caller` and `warnings.warn`, and of warnings of our own."""
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        name = getattr(called, "id", getattr(called, "attr", None))
        if name in {"warn_caller", "warn"}:
            yield template(node.args[0])
        if isinstance(node, ast.ClassDef) and node.name.endswith("Warning"):
            returned = [each for each in ast.walk(node) if isinstance(each, ast.Return)]
            yield from (template(each.value) for each in returned)


def opening(message):
    """The first words, up to a full stop or a colon."""
    return re.match(r".*?(?:\.(?= |$)|(?=: )|$)", message)[0]


def test_the_page_has_all_warnings():
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "sklearn_bnp").rglob("*.py")]
    given = [text for source in sources for text in messages(ast.parse(source))]
    # in `warn_caller` itself, and where a warning of our own is given, whose class has the text
    assert given.count(None) == 2
    terms = re.findall(r"(?m)^``(.*)``\n   ", PAGE.read_text(encoding="utf-8"))
    assert sorted(terms) == sorted(opening(text) for text in given if text is not None)
