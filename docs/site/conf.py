"""Configuration of Sphinx. `make docs` runs `build.py`, which puts the pages together first."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

project = "keras_xlnet"
project_copyright = "the authors of keras_xlnet, Apache-2.0"
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_parser",
    "docstrings",
    "name_links",
    "page_details",
]

# Anchors of headings down to this level, as GitHub makes them.
myst_heading_anchors = 3
# Dashes only: quotes stay as they are in the pages.
smartquotes_action = "D"
highlight_language = "none"

# The docstrings of Keras are in Markdown, and its reference has them.
autodoc_inherit_docstrings = False
napoleon_custom_sections = [("Call arguments", "params_style")]
napoleon_use_rtype = False
add_module_names = False

html_theme = "furo"
html_title = "keras_xlnet"
html_favicon = str(pathlib.Path(__file__).parent / "static" / "favicon.svg")
html_static_path = [str(pathlib.Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
