"""Configuration of Sphinx; build with ``sphinx-build -W doc doc/_build``."""

import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.util.nodes import make_refnode

from sklearn_bnp import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from gallery_order import SECTIONS

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
# Names in single backquotes are ours, on every page.
rst_prolog = ".. currentmodule:: sklearn_bnp"

# ------------------------------------------------------------------ appearance

html_theme = "pydata_sphinx_theme"
html_title = "sklearn_bnp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"  # browsers ask for one
html_show_sourcelink = False
# As the reader's own device has it. Without this, the theme says so too, but as an error in the console.
html_context = {"default_mode": "auto"}
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

# Fitted attributes are described with their class, and have no targets of their own.
nitpick_ignore_regex = [("py:.*", r"[a-z_]+_"), ("py:.*", r"matplotlib\..*")]

autosummary_generate = True
autodoc_default_options = {"exclude-members": "get_metadata_routing"}
autodoc_typehints = "none"
# autodoc lists the members, in full: numpydoc's tables of them would need a page for each.
numpydoc_show_class_members = False
# The list of a page's sections has the names of methods alone: that of the class is above them.
toc_object_entries_show_parents = "hide"


def own_members(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to each class: requests of metadata have its own user guide."""
    if re.fullmatch(r"set_\w+_request", name):
        return True
    return skip


def without_foreign_links(app, what, name, obj, options, lines):
    """Take links into scikit-learn's user guide out of docstrings that are inherited from it."""
    lines[:] = [line for line in lines if ":ref:" not in line]
    if (getattr(obj, "__module__", None) or "").startswith("sklearn."):  # `X` is no link there
        lines[:] = [re.sub(r"(?<![`:])`([^`]+)`(?!`)", r"``\1``", line) for line in lines]


# Where other libraries describe what our pages name. No inventory is fetched: a build needs no network.
ELSEWHERE = {
    "sklearn": "https://scikit-learn.org/stable/modules/generated/{}.html",
    "numpy": "https://numpy.org/doc/stable/reference/generated/{}.html",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{}.html",
    "pandas": "https://pandas.pydata.org/docs/reference/api/{}.html",
}


# Where a name that stands alone is looked for: `score` is that of the first estimator that has one.
OWN_PLACES = [
    f"sklearn_bnp{place}"
    for place in (
        "", ".engine", ".inspection", ".mixture", ".distributed", ".DPMixtureVB", ".HDPTopicVB",
        ".HDPHMMVB", ".Likelihood", ".Proposal",
    )
]  # fmt: skip


def link_elsewhere(app, env, node, contnode):
    """Link names to our own pages, or ``sklearn.mixture.GaussianMixture`` and the like to theirs."""
    target = node.get("reftarget", "")
    known = env.domaindata["py"]["objects"]
    for place in OWN_PLACES:
        found = known.get(f"{place}.{target}")
        if found is not None:
            source = node["refdoc"]
            return make_refnode(app.builder, source, found.docname, found.node_id, contnode)
    page = ELSEWHERE.get(target.partition(".")[0])
    if page is None or "." not in target:
        return None
    return nodes.reference("", "", contnode, internal=False, refuri=page.format(target))


def setup(app):
    app.connect("missing-reference", link_elsewhere)
    app.connect("autodoc-skip-member", own_members)
    app.connect("autodoc-process-docstring", without_foreign_links)


# ------------------------------------------------------------------ gallery

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "subsection_order": [f"../examples/gallery/{section}" for section in SECTIONS],
    "within_subsection_order": "gallery_order.place_of",
    "doc_module": ("sklearn_bnp",),
    "backreferences_dir": "generated/backreferences",
    "inspect_global_variables": False,
    "remove_config_comments": True,
    "show_memory": False,
    "plot_gallery": "True",
    "download_all_examples": False,
    "write_computation_times": False,  # its page loads scripts from other hosts
}
