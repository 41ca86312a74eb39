"""The language of each page, and marks for pictures that are too wide for small screens."""

import pathlib

#: Folders of translated pages. The names are those of the languages.
LANGUAGES = ("ko", "zh")
# In pixels. Wider pictures cannot be read at the width of a telephone.
_WIDE = 600


def setup(app):
    app.connect("html-page-context", _set_language)
    app.connect("doctree-read", _mark_wide_pictures)
    return {"parallel_read_safe": True}


def _set_language(app, pagename, templatename, context, doctree):
    folder = pagename.partition("/")[0]
    if folder in LANGUAGES:
        context["language"] = folder


def _mark_wide_pictures(app, doctree):
    from docutils import nodes  # Here, so that tests without Sphinx can import this file.

    for image in doctree.findall(nodes.image):
        if is_wide(pathlib.Path(app.srcdir, image["uri"])):
            image["classes"].append("wide")
            image.parent["classes"].append("scrolls")


def is_wide(path):
    """Whether a file is a PNG that is wider than `_WIDE`."""
    from sphinx.util.images import get_image_size

    size = get_image_size(path) if path.suffix == ".png" else None
    return size is not None and size[0] > _WIDE
