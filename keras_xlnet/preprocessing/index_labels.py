"""Names rows in errors as the index of a pandas column does, beside their places."""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

_ARGUMENT = re.compile("`(y|sample_weight)`")
_PLACE = re.compile(r"in row (\d+)")


@contextlib.contextmanager
def index_labels_named(x: Any, y: Any = None, sample_weight: Any = None) -> Iterator[None]:
    """Adds the index label of a row to the `ValueError` of a block that names the row.

    A table that was filtered or sorted has other index labels than places: "in row 2" becomes "in
    row 2 (index 17)".

    Args:
        x, y, sample_weight: What a user passed. An error of `y` or `sample_weight` begins with its
            name; all others are of `x`.
    """
    try:
        yield
    except ValueError as error:
        message = str(error)
        named, place = _ARGUMENT.match(message), _PLACE.search(message)
        if place:
            column = {"y": y, "sample_weight": sample_weight}[named[1]] if named else x
            label = _index_label(column, int(place[1]))
            error.args = (f"{message[: place.end()]}{label}{message[place.end() :]}",)
        raise


def _index_label(columns, row):
    """The index label of a row, `""` where there is no index, or it counts the rows."""
    if isinstance(columns, dict):
        columns = tuple(columns.values())
    for column in columns if isinstance(columns, tuple) else [columns]:
        index: Any = getattr(column, "index", None)
        if hasattr(index, "to_list") and row < len(index):
            (label,) = index[row : row + 1].to_list()
            return "" if label == row else f" (index {label!r})"
    return ""
