"""Configuration of Sphinx; build with ``sphinx-build -W doc doc/_build``."""

import re
import sys
from pathlib import Path

from sklearn_bnp import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "sklearn_bnp"
author = "The sklearn_bnp developers"
copyright = f"2026, {author}"
release = version = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",  # in doc/_ext
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
default_role = "py:obj"
html_math_renderer = "mathml"

# ------------------------------------------------------------------ appearance

html_theme = "pydata_sphinx_theme"
html_title = "sklearn_bnp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "getting_started": []}

# A prompt is no part of what is copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# ------------------------------------------------------------------ reference

autosummary_generate = True
autodoc_default_options = {"exclude-members": "get_metadata_routing"}
autodoc_typehints = "none"
# autodoc lists the members, in full: numpydoc's tables of them would need a page for each.
numpydoc_show_class_members = False


def own_members(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to each class: requests of metadata have its own user guide."""
    if re.fullmatch(r"set_\w+_request", name):
        return True
    return skip


def without_foreign_links(app, what, name, obj, options, lines):
    """Take links into scikit-learn's user guide out of docstrings that are inherited from it."""
    lines[:] = [line for line in lines if ":ref:" not in line]


def setup(app):
    app.connect("autodoc-skip-member", own_members)
    app.connect("autodoc-process-docstring", without_foreign_links)


# ------------------------------------------------------------------ gallery

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("sklearn_bnp",),
    "backreferences_dir": "generated/backreferences",
    "inspect_global_variables": False,
    "remove_config_comments": True,
    "show_memory": False,
    "plot_gallery": "True",
    "download_all_examples": False,
}
