"""The language of each page, and marks for pictures that are too wide for small screens."""

import pathlib
import struct

from docutils import nodes

#: Folders of translated pages. The names are those of the languages.
LANGUAGES = ("ko", "zh")
# Of width to height. Narrower pictures can be read at the width of a telephone.
_WIDE = 1.45


def setup(app):
    app.connect("html-page-context", _set_language)
    app.connect("doctree-read", _mark_wide_pictures)
    return {"parallel_read_safe": True}


def _set_language(app, pagename, templatename, context, doctree):
    folder = pagename.partition("/")[0]
    if folder in LANGUAGES:
        context["language"] = folder


def _mark_wide_pictures(app, doctree):
    for image in doctree.findall(nodes.image):
        if is_wide(pathlib.Path(app.srcdir, image["uri"])):
            image["classes"].append("wide")
            image.parent["classes"].append("scrolls")


def is_wide(path):
    """Whether a file is a PNG whose width is large compared with its height."""
    if path.suffix != ".png" or not path.is_file():
        return False
    # The signature, the length and the name of the first chunk, the width and the height.
    width, height = struct.unpack(">16xII", path.read_bytes()[:24])
    return width > _WIDE * height
