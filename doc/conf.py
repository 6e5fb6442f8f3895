"""Configuration of Sphinx; build with ``sphinx-build -W doc doc/_build``."""

from sklearn_bnp import __version__

project = "sklearn_bnp"
author = "The sklearn_bnp developers"
copyright = f"2026, {author}"
release = version = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
default_role = "py:obj"

autodoc_default_options = {
    "members": True,
    # Added by scikit-learn to each class, with links into its own user guide.
    "exclude-members": "set_fit_request, set_partial_fit_request, set_score_request",
}
# autodoc lists the members, in full: numpydoc's tables of them would need a page for each.
numpydoc_show_class_members = False
