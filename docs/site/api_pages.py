"""A page for each public name, one for each room, and the list of rooms, in reStructuredText."""

import importlib
import inspect

from docstrings import to_rst
from public_names import public_names


def api_pages():
    """Returns a dict from paths of pages to their text."""
    pages = {}
    for module, names in public_names().items():
        for name in names:
            pages[f"{name.document}.rst"] = _name_page(name)
        pages[f"api/{_short(module)}/index.rst"] = _module_page(module, names)
    pages["api/index.rst"] = _index_page()
    return pages


def _short(module):
    return module.rpartition(".")[2]


def _title(text):
    return f"{text}\n{'=' * len(text)}\n\n"


def _table(rows):
    """Returns a table of two columns, from pairs of a document and a description."""
    body = "".join(f"   * - {cell}\n     - {text}\n" for cell, text in rows)
    return f".. list-table::\n   :widths: 35 65\n   :class: summaries\n\n{body}\n"


def _toctree(entries):
    return ".. toctree::\n   :hidden:\n\n" + "".join(f"   {entry}\n" for entry in entries)


def _line(text):
    return " ".join(to_rst(text.splitlines()))


def _index_page():
    rows = []
    for module in public_names():
        summary = importlib.import_module(module).__doc__.partition("\n\n")[0]
        rows.append((f":doc:`{module} <{_short(module)}/index>`", _line(summary)))
    entries = [f"{_short(module)}/index" for module in public_names()]
    return _title("API") + "Every public name, by room.\n\n" + _table(rows) + _toctree(entries)


def _module_page(module, names):
    doc = "\n".join(to_rst(importlib.import_module(module).__doc__.splitlines()))
    rows = [(f":doc:`{name.name} <{name.name}>`", _line(name.summary)) for name in names]
    toctree = _toctree(name.name for name in names)
    # The name of the package is the title of the site.
    title = _title(module if "." in module else f"{module}: the top of the package")
    return f"{title}.. py:module:: {module}\n\n{doc}\n\n" + _table(rows) + toctree


def _name_page(name):
    # Names at the top of the package are also in one of its rooms.
    title = name.name if "." in name.module else name.full_name
    title = _title(title) + f".. py:currentmodule:: {name.module}\n\n"
    if name.is_constant:
        return title + _constant(name)
    if inspect.isclass(name.value):
        members = ", ".join(_members(name.value))
        options = f"   :members: {members}\n   :member-order: bysource\n" if members else ""
        return title + f".. autoclass:: {name.full_name}\n{options}"
    return title + f".. autofunction:: {name.full_name}\n"


def _constant(name):
    value = f"   :value: {name.value!r}\n" if isinstance(name.value, tuple) else ""
    doc = "\n   ".join(to_rst(name.description.splitlines()))
    return f".. py:data:: {name.full_name}\n{value}\n   {doc}\n"


def _members(cls):
    """Lists the public methods and properties that this package documents.

    What Keras documents, such as `compile`, is in the reference of Keras.
    """
    for attribute in inspect.classify_class_attrs(cls):
        if attribute.name.startswith("_") or attribute.kind == "data":
            continue
        ours = attribute.defining_class.__module__.startswith("keras_xlnet")
        member = getattr(attribute.object, "__func__", attribute.object)
        if ours and member.__doc__:
            yield attribute.name
