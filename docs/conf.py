"""The documentation site: ``make docs`` builds it into docs/_build, for a browser without a network."""

from __future__ import annotations

import sys
from pathlib import Path

import calibrant

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_extensions"))

project = "calibrant"
author = "The calibrant developers"
project_copyright = author
version = release = calibrant.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
    "house_commands",
    "house_docstrings",
    "house_pages",
    "house_reference",
]
exclude_patterns = [
    "_build",
    "_extensions",
    "_static",
    "gallery/*.ipynb",
    "gallery/*.py",
    "gallery/sg_execution_times.*",
]
nitpicky = True
default_role = "py:obj"
smartquotes = False  # two hyphens are the beginning of an option
suppress_warnings = ["config.cache"]  # the gallery is configured with functions, which are not kept

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_dmath_allow_space = False  # "from $5 to $10" is about money
myst_heading_anchors = 4

autodoc_typehints = "none"  # the docstrings say what may be given, in words
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"  # methods without their class, which leaves them no room
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": str(DOCS.parent / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "subsection_order": [f"../examples/gallery/{part}" for part in ("measure", "certify", "decide", "repair", "watch")],
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 10_000,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}

mathjax_path = "tex-svg-full.js"  # house_pages copies it; pages without formulas do not load it
mathjax3_config = {"options": {"enableMenu": False}, "svg": {"fontCache": "local"}}

linkcheck_ignore = [r"https://example\.org/"]  # stands for a home that the project does not have yet

html_theme = "pydata_sphinx_theme"
html_title = "calibrant"
html_static_path = ["_static"]
html_css_files = ["house.css"]
html_js_files = ["house.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_search_summary = False  # a page that is opened as a file may not fetch others
html_context = {"default_mode": "auto"}
html_sidebars: dict[str, list[str]] = {"index": [], "tour": []}
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "navigation_depth": 2,
    "collapse_navigation": True,  # a sidebar of all names on each of their pages would take half of the build
    "show_nav_level": 1,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
