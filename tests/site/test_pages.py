"""Links and anchors of the built documentation lead somewhere, and no page needs the network.

The environment variable SKLEARN_BNP_SITE names the folder that ``sphinx-build`` wrote. Without it the pages
are not tested, but the tests of the tests are run.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from .pages import faults, is_elsewhere, read_site

SITE = os.environ.get("SKLEARN_BNP_SITE")
STYLE_ADDRESS = re.compile(r"""(?:url\(|@import)\s*["']?([^"')\s;]+)""")


@pytest.fixture(scope="module")
def root():
    if SITE is None:
        pytest.skip("SKLEARN_BNP_SITE names no built site")
    return Path(SITE)


@pytest.fixture(scope="module")
def site(root):
    return read_site(root)


def test_no_page_has_a_broken_link_or_needs_the_network(root, site):
    assert root / "index.html" in site
    found = {path.relative_to(root).as_posix(): faults(path, site, root) for path in site}
    assert {name: what for name, what in found.items() if what} == {}


def test_no_style_needs_the_network(root):
    styles = list(root.rglob("*.css"))
    assert styles
    found = {
        f"{path.relative_to(root)}: {address}"
        for path in styles
        for address in STYLE_ADDRESS.findall(path.read_text(encoding="utf-8"))
        if is_elsewhere(address)
    }
    assert found == set()


def test_every_page_can_be_reached(root, site):
    reached, found = set(), [root / "index.html"]
    while found:
        at = found.pop()
        if at in reached or at not in site:
            continue
        reached.add(at)
        inside = (link.partition("#")[0] for link in site[at].links if not is_elsewhere(link))
        found += [Path(os.path.normpath(at.parent / link)) for link in inside if link]
    assert {path.relative_to(root).as_posix() for path in site.keys() - reached} == set()


GOOD = '<html><body id="top"><a href="#top">t</a><a href="b.html#here">b</a><img src="b.png"></body></html>'
WRONG = {
    '<a href="c.html">': "c.html is no file",
    '<a href="b.html#there">': "b.html#there is no anchor",
    '<a href="#there">': "#there is no anchor",
    '<a href="../../elsewhere.html">': "../../elsewhere.html leaves the site",
    '<img src="c.png">': "c.png is no file",
    '<script src="https://a.net/b.js"></script>': "https://a.net/b.js is loaded from elsewhere",
    '<link rel="stylesheet" href="//a.net/b.css">': "//a.net/b.css is loaded from elsewhere",
    '<img srcset="b.png 1x, https://a.net/b.png 2x">': "https://a.net/b.png is loaded from elsewhere",
}
RIGHT = (
    '<a href="https://a.net">',
    '<link rel="canonical" href="https://a.net">',
    '<a href="mailto:a@b">',
)


@pytest.mark.parametrize("more", [*WRONG, *RIGHT])
def test_faults_are_found(tmp_path, more):
    (tmp_path / "a.html").write_text(GOOD.replace("</body>", more + "</body>"))
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1>')
    (tmp_path / "b.png").write_bytes(b"")
    found = faults(tmp_path / "a.html", read_site(tmp_path), tmp_path)
    assert found == ([WRONG[more]] if more in WRONG else [])
