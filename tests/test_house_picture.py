"""The page about the engine draws the folders of the package, and pages name files that exist."""

import re

import pytest

from .test_import_direction import HEIGHTS, PACKAGE, PAGES, ROOT, relative_name

FOLDERS = {path.parent.name for path in (ROOT / PACKAGE).glob("*/__init__.py")}
FILE = re.compile(rf"``((?:{'|'.join(sorted(FOLDERS))})/\w+\.\w+)``")


def picture():
    """Folders in the literal block of the section "Where the code is", from the top down."""
    page = (ROOT / "doc" / "memoized.rst").read_text(encoding="utf-8")
    section = page.split("Where the code is\n-----------------\n")[1].split(
        ".. code-block:: text\n"
    )[1]
    block = re.match(r"(?:\n|    .*\n)+", section)[0]
    return re.findall(r"^    (\w+)/ ", block, flags=re.MULTILINE)


def test_the_picture_has_every_folder_once():
    assert sorted(picture()) == sorted(FOLDERS)


def test_the_picture_points_down():
    heights = [HEIGHTS[folder] for folder in picture()]
    assert heights == sorted(heights, reverse=True)


@pytest.mark.parametrize("page", PAGES, ids=relative_name)
def test_files_that_pages_name_exist(page):
    named = FILE.findall(page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / PACKAGE / name).exists()] == []


def test_pages_name_files():
    """The pattern finds some: else the test above could not fail."""
    assert any(FILE.search(page.read_text(encoding="utf-8")) for page in PAGES)
