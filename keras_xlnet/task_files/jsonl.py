"""JSON lines: an object a line."""

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keras_xlnet.task_files.column_rules import ColumnRules
from keras_xlnet.task_files.json_members import checked_object, parse_json
from keras_xlnet.task_files.reporting import (
    check_has_rows,
    existing_file,
    file_error,
    in_cell,
    lines_of,
    read_text,
    shown,
    without_last_blanks,
)
from keras_xlnet.types import PathLike


def read_json_lines(
    path: PathLike,
    columns: Mapping[str, str],
    labels: str | None = None,
    class_names: Sequence[str | int] | None = None,
    *,
    numeric: Sequence[str] = (),
    integer: Sequence[str] = (),
    allow_empty: Sequence[str] = (),
) -> dict[str, list[Any]]:
    """Reads columns of a file with a JSON object a line.

    Args:
        path: The file. Empty lines at its end are no rows.
        columns: Dict from the names in the result to the keys of the objects.
        labels: Optional string, the name in the result of the column that `class_names` is about.
            Defaults to `"label"`.
        class_names: Optional list. Labels must be in it.
        numeric: Names in the result of columns to convert to floats.
        integer: Names in the result of columns to convert to ints. Integers of JSON are ints
            anyway.
        allow_empty: Names in the result of columns where an empty string is a value.

    Returns:
        Dict of lists of equal lengths, in the order of `columns`. The values of a column have the
        same type, a string, int, float or bool.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If an argument is not as above.
        TaskFileError: If a line is not a JSON object or does not have a key, a text is empty, a
            number or label is invalid, or a value has another type than those before. The message
            names line and key.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.task_files import read_json_lines
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.jsonl"
    >>> _ = path.write_text('{"text": "Fine.", "label": 1}\\n{"text": "Dull.", "label": 0}\\n')
    >>> read_json_lines(path, {"text": "text", "label": "label"}, class_names=[0, 1])
    {'text': ['Fine.', 'Dull.'], 'label': [1, 0]}

    Source: https://jsonlines.org.
    """
    rules = ColumnRules(columns, labels, class_names, numeric, integer, allow_empty)
    for key in columns.values():
        if not isinstance(key, str):
            raise ValueError(f"`columns` must have keys of objects. Received: {shown(key)}")
    path = existing_file("path", path)
    result: dict[str, list[Any]] = {name: [] for name in columns}
    for line, row in enumerate(read_objects(path), 1):
        for name, key in columns.items():
            place = in_cell(line, key)
            value = _checked_type(path, place, object_value(path, line, row, key))
            value = rules.checked(name, value, path, place)
            _check_same_type(path, place, value, result[name])
            result[name].append(value)
    check_has_rows(path, next(iter(result.values())))
    return result


def read_objects(path: pathlib.Path) -> Iterator[dict[str, Any]]:
    """Yields the object of each line of a file. Empty lines at its end are left out.

    Raises:
        TaskFileError: If a line is not a JSON object.
    """
    for line, text in enumerate(without_last_blanks(lines_of(read_text(path))), 1):
        yield checked_object(path, parse_json(path, text, line), f"line {line}")


def object_value(path: pathlib.Path, line: int, row: dict[str, Any], key: str) -> Any:
    """Returns the value of a key of the object of a line.

    Raises:
        TaskFileError: If the object does not have the key.
    """
    if key not in row:
        raise file_error(path, in_cell(line, key), "be there", f"the keys {shown(list(row))}")
    return row[key]


def _checked_type(path, place, value):
    if not isinstance(value, (str, int, float)):
        raise file_error(path, place, "be a string, a number or a bool", shown(value))
    return value


def _check_same_type(path, place, value, before):
    if before and type(value) is not type(before[0]):
        must = f"have the type of line 1, {type(before[0]).__name__}"
        raise file_error(path, place, must, shown(value))
