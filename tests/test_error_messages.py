"""Messages of errors are whole sentences, which a reader takes for what they say."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KINDS = {"AttributeError", "FileNotFoundError", "ImportError", "TypeError", "ValueError"}


def template(message):
    """A literal text or an f-string, with dots in place of its values; None for anything else."""
    parts = message.values if isinstance(message, ast.JoinedStr) else [message]
    if not all(isinstance(part, (ast.Constant, ast.FormattedValue)) for part in parts):
        return None
    return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in parts)


def messages(source):
    """Templates of the messages that a module raises."""
    for node in ast.walk(ast.parse(source)):
        call = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in KINDS and call.args:
            text = template(call.args[0])
            if text is not None:
                yield text


SOURCES = sorted((ROOT / "sklearn_bnp").rglob("*.py"))
ALL = [(path, text) for path in SOURCES for text in messages(path.read_text(encoding="utf-8"))]


def test_messages_are_found():
    assert len(ALL) > 200


@pytest.mark.parametrize("text", [text for _, text in ALL])
def test_nothing_is_said_to_be_none_or_no_thing(text):
    """ "X is none" reads as if X were None, and "X is no frame" is no English: X is not a frame."""
    assert not re.search(
        r"(?<!here )\b(is|are) (none\b(?! of)|no (?!longer|more|less|greater))", text
    )


@pytest.mark.parametrize("text", [text for _, text in ALL if text[0].isupper()])
def test_sentences_end(text):
    """What begins with a capital is shown as it is; what does not is a part of another message."""
    assert text.endswith((".", "…"))
