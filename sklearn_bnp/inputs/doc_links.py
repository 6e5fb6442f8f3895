"""Links from scikit-learn's diagrams of estimators to the pages of our classes."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata

_PACKAGE, _DISTRIBUTION = "sklearn_bnp", "sklearn-bnp"


@cache
def documentation_address():
    """Where the documentation is, from "Documentation" of the package's URLs; empty if that is not set."""
    try:
        urls = metadata(_DISTRIBUTION).get_all("Project-URL") or []
    except PackageNotFoundError:  # it is used from a folder, and was never installed
        return ""
    named = dict(url.split(", ", 1) for url in urls)
    return named.get("Documentation", "").rstrip("/")


class DocumentationLinks:
    """Mixin, left of `BaseEstimator`: the question mark in diagrams leads to the page of the class.

    scikit-learn has hooks for the address, ``_doc_link_template`` and others, whose signatures have changed
    between the releases that we support. All of them serve `_get_doc_link`, which has not.
    """

    def _get_doc_link(self):
        """Address of the page of the class; empty if it has none, as a user's own class."""
        cls, site = type(self), documentation_address()
        if not site or cls.__module__.split(".")[0] != _PACKAGE:
            return ""
        return f"{site}/generated/{_PACKAGE}.{cls.__name__}.html"
