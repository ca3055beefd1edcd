"""Sphinx's configuration; `make docs` builds the site."""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

import matplotlib
from sphinx.application import Sphinx

import ibug

# Sphinx takes its settings from the names in this file.
project = "ibug"
author = "The ibug developers"
copyright = "The ibug developers"
version = release = ibug.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.ipynb"]  # the gallery offers each example as a notebook, too
templates_path = ["_templates"]
nitpicky = True
default_role = "code"

# Pages are also read on GitHub: links go to files, and to headings as GitHub names them.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]  # cards
nb_execution_mode = "off"  # docs/run_pages.py runs notebooks, and compares what they show with what they have stored
suppress_warnings = ["config.cache"]  # the configuration holds functions

autosummary_generate = True
autodoc_default_options = {"members": True, "inherited-members": True}
autodoc_typehints = "none"  # types stand in the docstrings, with their shapes
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 10_000,
    "write_computation_times": False,
    "doc_module": ("ibug",),
    "backreferences_dir": "gallery/backreferences",
    "reference_url": {"ibug": None},
    "image_scrapers": ("matplotlib",),
    "default_thumb_file": os.path.join(os.path.dirname(__file__), "images", "intervals.png"),
}

html_theme = "furo"
html_title = f"ibug {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072b2", "color-brand-content": "#0072b2"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#56b4e9"},
}
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

matplotlib.use("Agg")
# A warning in an example is a fault of the example.
warnings.filterwarnings("error", module="ibug")


def _skip_foreign(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out methods of scikit-learn's and other libraries' classes: they are documented there."""
    home = getattr(thing, "__module__", None) or "ibug"
    return True if callable(thing) and not home.startswith("ibug") else None


_LOG = re.compile(r"\[([^\]]+)\]\((\.\./benchmarks/results/[\w-]+\.md)\)")


def _offer_logs(app: Sphinx, name: str, source: list[str]) -> None:
    """Make links to logs, which are no pages of the site, downloads."""
    source[0] = _LOG.sub(r"{download}`\1 <\2>`", source[0])


def setup(app: Sphinx) -> None:
    """Connect the hooks above."""
    app.connect("autodoc-skip-member", _skip_foreign)
    app.connect("source-read", _offer_logs)
