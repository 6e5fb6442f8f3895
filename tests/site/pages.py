"""Built pages as links, anchors and loaded files; no browser is needed for these."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes of a tag by which a page loads a file, rather than offers a link to it.
LOADED = {
    "audio": ("src",), "embed": ("src",), "iframe": ("src",), "img": ("src", "srcset"), "link": ("href",),
    "object": ("data",), "script": ("src",), "source": ("src", "srcset"), "video": ("src", "poster"),
}  # fmt: skip
# Kinds of <link> that a browser does not load with the page.
NOT_LOADED = {"author", "canonical", "index", "license", "next", "prev", "search"}


@dataclass
class Page(HTMLParser):
    """What a page offers and needs.

    Attributes
    ----------
    anchors : set of str
        What ``#...`` may name.
    links, loads : list of str
        Addresses of ``<a href>`` and ``<form action>``, and of what the page loads by itself: styles,
        scripts, pictures.
    """

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self):
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        address = {"a": given.get("href"), "form": given.get("action")}.get(tag)
        if address:
            self.links.append(address)
        if tag == "link" and NOT_LOADED & set(given.get("rel", "").split()):
            return
        for name in LOADED.get(tag, ()):
            for part in given.get(name, "").split(",") if name == "srcset" else [given.get(name)]:
                if part:
                    self.loads.append(part.split()[0])


def read(path: Path) -> Page:
    """The `Page` of an HTML file."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def read_site(root: Path) -> dict[Path, Page]:
    """All pages of a site; parts of pages, which other pages load, are not among them."""
    return {
        path: read(path) for path in sorted(root.rglob("*.html")) if "_static" not in path.parts
    }


def is_elsewhere(address: str) -> bool:
    """True for an address of another host; ``data:`` and ``mailto:`` need none."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in ("http", "https")


def fault_of(address: str, at: Path, site: dict[Path, Page], root: Path) -> str | None:
    """Why an address on the page ``at`` leads nowhere; None if the file and the anchor are there."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    target = (at.parent / unquote(parts.path)).resolve() if parts.path else at.resolve()
    if not target.is_relative_to(root.resolve()):
        return f"{address} leaves the site"
    if not target.is_file():
        return f"{address} is no file"
    anchor = unquote(parts.fragment)
    page = site.get(root / target.relative_to(root.resolve()))
    if anchor and page is not None and anchor not in page.anchors:
        return f"{address} is no anchor"
    return None


def faults(at: Path, site: dict[Path, Page], root: Path) -> list[str]:
    """What is wrong with the links of a page, and with what it loads."""
    page = site[at]
    broken = (fault_of(address, at, site, root) for address in [*page.links, *page.loads])
    foreign = (
        f"{address} is loaded from elsewhere" for address in page.loads if is_elsewhere(address)
    )
    return sorted({*foreign, *(fault for fault in broken if fault)})
