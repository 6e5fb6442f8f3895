"""Diagrams of estimators link to the pages of the site that the reference makes for each class."""

import re
from inspect import isabstract
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sklearn_bnp
from sklearn_bnp.inputs import doc_links

API = Path(__file__).parents[1] / "doc" / "api.rst"
SITE = "https://bnp.example.org/stable"
OURS = [
    cls
    for cls in (getattr(sklearn_bnp, name) for name in sklearn_bnp.__all__)
    if isinstance(cls, type) and issubclass(cls, BaseEstimator) and not isabstract(cls)
]


class Own(sklearn_bnp.DPMixtureVB):
    """A user's own class."""


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setattr(doc_links, "documentation_address", lambda: SITE)


def pages():
    """Addresses of the pages that autosummary makes, as doc/api.rst lists them."""
    module, found = None, set()
    for line in API.read_text(encoding="utf-8").splitlines():
        name = re.fullmatch(r"\.\. currentmodule:: (\S+)|   (\w+)", line)
        if name and name[1]:
            module = name[1]
        elif name:
            found.add(f"{SITE}/generated/{module}.{name[2]}.html")
    return found


@pytest.mark.parametrize("cls", OURS, ids=lambda cls: cls.__name__)
def test_each_class_has_a_page(cls, site):
    assert cls._get_doc_link(object.__new__(cls)) in pages()


def test_diagrams_have_the_links(site):
    model = make_pipeline(StandardScaler(), sklearn_bnp.DPMixtureVB())
    assert f'href="{SITE}/generated/sklearn_bnp.DPMixtureVB.html"' in model._repr_html_()


def test_without_a_page_there_is_no_link(monkeypatch, site):
    assert Own()._get_doc_link() == ""
    monkeypatch.setattr(doc_links, "documentation_address", lambda: "")
    assert sklearn_bnp.DPMixtureVB()._get_doc_link() == ""


@pytest.mark.parametrize("of_documentation", [True, False])
def test_the_address_is_in_the_metadata(of_documentation, monkeypatch):
    urls = [f"Documentation, {SITE}/"] if of_documentation else ["Source, https://code.example.org"]

    class Metadata:
        def get_all(self, name):
            return urls if name == "Project-URL" else None

    monkeypatch.setattr(doc_links, "metadata", lambda name: Metadata())
    found = doc_links.documentation_address.__wrapped__()
    assert found == (SITE if of_documentation else "")
