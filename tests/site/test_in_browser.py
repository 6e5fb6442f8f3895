"""Every page of the built documentation, in a browser, on a desk and on a telephone, light and dark.

Needs SKLEARN_BNP_SITE, as `test_pages` does, the package playwright, and a Chromium that is installed:
``-m slow`` runs these tests. The site is served on this machine, and the browser reaches nothing else.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from pathlib import Path

import pytest

SITE = os.environ.get("SKLEARN_BNP_SITE")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PAGES = (
    sorted(path.relative_to(SITE).as_posix() for path in Path(SITE).rglob("*.html")) if SITE else []
)
PAGES = [name for name in PAGES if not name.startswith("_static/")]
DESK, TELEPHONE = 1300, 400

pytestmark = pytest.mark.slow

# What is too wide, with the first words of it: a page that scrolls sideways because something on it sticks
# out, and a part of a page that does. Only code, tables and formulas may, and these only on a telephone.
TOO_WIDE = """(desk) => {
  const root = document.documentElement, found = [], width = root.clientWidth;
  const words = (e) => `${e.tagName.toLowerCase()} "${e.textContent.trim().slice(0, 60)}"`;
  const scrolls = (e) => { for (let up = e.parentElement; up && up !== document.body; up = up.parentElement)
    if (getComputedStyle(up).overflowX !== "visible") return true; return false; };
  if (root.scrollWidth > width) {
    const out = [...document.querySelectorAll("main *")].filter(
      (e) => e.getBoundingClientRect().right > width + 1 && !scrolls(e));
    found.push(`the page is ${root.scrollWidth} wide: ${out.slice(0, 3).map(words).join(", ")}`);
  }
  const may = desk ? ":not(*)" : "pre, table, .math, .pst-scrollable-table-container";
  for (const e of document.querySelectorAll("main *")) {
    if (e.scrollWidth <= e.clientWidth + 1 || !e.clientWidth || e.matches(may)) continue;
    const style = getComputedStyle(e);
    if (style.overflowX !== "visible" && style.textOverflow !== "ellipsis")
      found.push(`${words(e)} is ${e.scrollWidth} wide, and ${e.clientWidth} are seen`);
  }
  return found;
}"""

# Text with too little contrast to what is behind it. WCAG wants 4.5, and 3 of large letters: less is a fault.
TOO_PALE = """() => {
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (e) => {
    for (let up = e; up; up = up.parentElement) {
      const c = rgba(getComputedStyle(up).backgroundColor);
      if (c[3] > 250) return c;
    }
    return [255, 255, 255];
  };
  const found = new Set(), text = "p, li, td, th, h1, h2, h3, dt, mi, mo, a, code";
  for (const e of document.querySelectorAll(`article :is(${text}), pre span`)) {
    if (!e.textContent.trim() || !e.offsetParent) continue;
    const [a, b] = [light(rgba(getComputedStyle(e).color)), light(behind(e))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 3) found.add(`${e.tagName.toLowerCase()}.${e.className}: contrast ${contrast.toFixed(1)}`);
  }
  return [...found].slice(0, 5);
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that writes no line for each request."""

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def address():
    if SITE is None:
        pytest.skip("SKLEARN_BNP_SITE names no built site")
    handler = functools.partial(Quiet, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    with playwright.sync_playwright() as driver:
        # No sandbox: it refuses to work for root, and the pages are our own.
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def tab(browser, address):
    """A tab that notes, in `tab.faults`, errors of scripts, and what is not there or is elsewhere."""
    tab = browser.new_page(viewport={"width": DESK, "height": 900})
    tab.faults = []

    def reach(route):
        if not route.request.url.startswith((address, "data:", "blob:")):
            tab.faults.append(f"{route.request.url} is loaded from elsewhere")
            return route.abort()
        return route.continue_()

    def note_message(message):
        if message.type == "error":
            tab.faults.append(f"the console says: {message.text}")

    def note_answer(answer):
        if answer.status >= 400:
            tab.faults.append(f"{answer.url} gives {answer.status}")

    tab.route("**/*", reach)
    tab.on("console", note_message)
    tab.on("pageerror", lambda error: tab.faults.append(f"a script fails: {error}"))
    tab.on("response", note_answer)
    yield tab
    tab.close()


def look(tab, url):
    """Faults of a page in both widths and both colours."""
    tab.goto(url, wait_until="load")
    for width in (DESK, TELEPHONE):
        tab.set_viewport_size({"width": width, "height": 900})
        tab.faults += [f"{width} px: {fault}" for fault in tab.evaluate(TOO_WIDE, width == DESK)]
    for colours in ("light", "dark"):
        tab.emulate_media(color_scheme=colours)
        tab.wait_for_function(
            f"[undefined, '{colours}'].includes(document.documentElement.dataset.theme)"
        )
        tab.faults += [f"{colours}: {fault}" for fault in tab.evaluate(TOO_PALE)]
    return tab.faults


@pytest.mark.parametrize("name", PAGES)
def test_page(tab, address, name):
    assert look(tab, address + name) == []


WRONG = {
    "<script>nowhere()</script>": "a script fails",
    "<script>console.error('no')</script>": "the console says: no",
    '<img src="none.png">': "none.png gives 404",
    '<img src="http://a.invalid/b.png">': "http://a.invalid/b.png is loaded from elsewhere",
    '<div style="width: 2000px">wide</div>': "the page is",
    f'<pre style="overflow: auto">{"long " * 300}</pre>': "1300 px: pre",
    '<div style="overflow: auto"><p style="width: 700px">text</p></div>': "400 px: div",
    '<article><p style="color: #aaa; background: #bbb">pale</p></article>': "contrast",
}


@pytest.mark.parametrize("more", ["", *WRONG], ids=["none", *WRONG.values()])
def test_faults_are_found(tab, address, more):
    page = f"<!DOCTYPE html><html><body><main>{more}</main></body></html>"
    tab.route("**/made-up.html", lambda route: route.fulfill(body=page, content_type="text/html"))
    found = look(tab, address + "made-up.html")
    if more:
        assert any(WRONG[more] in fault for fault in found), found
    else:
        assert found == []
