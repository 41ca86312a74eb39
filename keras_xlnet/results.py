"""How results print: in a few lines, with rounded numbers, and large arrays by their shape.

Exported directories contain this file (`serving/portable/`), so it does not import Keras.
"""

import dataclasses
import html
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

_DIGITS = 4
_MOST_ITEMS = 8
_MOST_CHARACTERS = 200


class Result:
    """Base class of results: dataclasses with `frozen=True, repr=False`.

    A result prints as its class with its fields, in one line. Fields that are `None` are left out.
    A class whose results have many values has a `__repr__` of its own, with a `table` of them.

    Example:

    >>> import dataclasses
    >>> from keras_xlnet.results import Result
    >>> @dataclasses.dataclass(frozen=True, repr=False)
    ... class Found(Result):
    ...     text: str
    ...     score: float
    ...     vectors: np.ndarray
    >>> Found("a mat", 0.123456, np.zeros((2, 16), "float32"))
    Found(text='a mat', score=0.1235, vectors=<float32 (2, 16)>)
    """

    def __repr__(self) -> str:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]  # Of the subclasses.
        shown = [(field.name, getattr(self, field.name)) for field in fields]
        named = ", ".join(f"{name}={short(value)}" for name, value in shown if value is not None)
        return f"{type(self).__name__}({named})"


def short(value: Any, most_characters: int = _MOST_CHARACTERS) -> str:
    """Returns a short text of a value.

    Numbers have 4 digits. Long strings are cut in the middle; dicts, lists and arrays of rank 1
    after 8 items. Of other arrays and of tensors only the dtype and the shape are shown.

    Args:
        value: Any value.
        most_characters: Int, the length to which a string is cut.

    Example:

    >>> from keras_xlnet.results import short
    >>> print(short({"ham": 0.98765, "ids": np.arange(100)}))
    {'ham': 0.9877, 'ids': [0, 1, 2, 3, 4, 5, 6, 7, ... 92 more]}
    """
    if isinstance(value, str):
        return repr(_cut(value, most_characters))
    if isinstance(value, Mapping):
        pairs = (f"{key!r}: {short(item)}" for key, item in value.items())
        return "{" + ", ".join(first(pairs, len(value))) + "}"
    shape = tuple(getattr(value, "shape", ()))
    if isinstance(value, np.ndarray) and len(shape) == 1:
        value = list(value)
    if isinstance(value, (list, tuple)):
        items = ", ".join(first(map(short, value), len(value)))
        comma = "," if len(value) == 1 else ""
        return f"[{items}]" if isinstance(value, list) else f"({items}{comma})"
    if shape:
        # The dtypes of TensorFlow have a name, and those of PyTorch a module.
        dtype = getattr(value.dtype, "name", str(value.dtype).removeprefix("torch."))
        return f"<{dtype} {shape}>"
    if isinstance(value, np.generic):
        value = value.item()
    return repr(float(f"{value:.{_DIGITS}g}")) if isinstance(value, float) else repr(value)


def table(columns: Mapping[str, Any], most_rows: int = _MOST_ITEMS) -> list[str]:
    """Returns the lines of a table: the names of its columns, and the first rows.

    Args:
        columns: Dict of lists of one length, or of arrays of rank 1, by name.
        most_rows: Int, the number of rows that are shown.

    Example:

    >>> from keras_xlnet.results import table
    >>> print(*table({"score": [0.75, 0.2531], "text": ["a rose", "a cat"]}), sep="\\n")
     score  text
      0.75  'a rose'
    0.2531  'a cat'
    """

    def cells(name, values):
        shown = [name, *map(short, values[:most_rows])]
        width = max(map(len, shown))
        is_text = isinstance(next(iter(values), ""), str)
        return [cell.ljust(width) if is_text else cell.rjust(width) for cell in shown]

    rows = zip(*(cells(*column) for column in columns.items()), strict=True)
    lines = ("  ".join(row).rstrip() for row in rows)
    num_rows = len(next(iter(columns.values())))
    return first(lines, 1 + num_rows, 1 + most_rows)


def first(items: Iterable[str], count: int, most: int = _MOST_ITEMS) -> list[str]:
    """Returns the first strings of `count`, and how many others there are."""
    shown = list(itertools.islice(items, most))
    return [*shown, f"... {count - most} more"] if count > most else shown


def titled(title: str, lines: Iterable[str]) -> str:
    """Returns a title and indented lines as one string."""
    return "\n".join([title, *(f"  {line}" for line in lines)])


def marked_html(text: str, spans: Sequence[tuple[int, int, str, str]]) -> str:
    """Returns a text as HTML, with parts of it on a colored ground. Notebooks show it.

    Args:
        text: String.
        spans: List of `(start, end, label, color)`, in the order of the text and without overlap:
            places in characters, what stands after the part (`""` for nothing), and a CSS color.

    Example:

    >>> from keras_xlnet.results import marked_html
    >>> print(marked_html("a <b>", [(2, 5, "tag", "gold")]))  # doctest: +ELLIPSIS
    <div style="...">a <mark style="background:gold;...">&lt;b&gt;<small...>tag</small></mark></div>
    """
    parts, end = [], 0
    for start, stop, label, color in spans:
        parts.append(html.escape(text[end:start]))
        label = (
            html.escape(label) and f'<small style="margin-left:.3em">{html.escape(label)}</small>'
        )
        style = f"background:{color};padding:.2em;border-radius:.3em"
        parts.append(f'<mark style="{style}">{html.escape(text[start:stop])}{label}</mark>')
        end = stop
    parts.append(html.escape(text[end:]))
    return f'<div style="line-height:2;white-space:pre-wrap">{"".join(parts)}</div>'


# Light grounds that differ for color-blind readers, by Paul Tol.
_COLORS = ("#bbccee", "#ccddaa", "#eeeebb", "#ffcccc", "#cceeff", "#dddddd")


def color_of(name: str) -> str:
    """Returns a CSS color for a name, the same each time."""
    return _COLORS[sum(name.encode()) % len(_COLORS)]


def _cut(text, most):
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-(most // 2) :]}"
