"""Parses JSON and takes members of it, with errors that name the place in the file."""

import json
import pathlib
from typing import Any

from keras_xlnet.task_files.reporting import file_error, shown

_KINDS = {str: "a string", int: "an integer", list: "a list", dict: "an object", bool: "a bool"}


def parse_json(path: pathlib.Path, text: str, line: int | None = None) -> Any:
    """Returns what a text in JSON says.

    Args:
        path: The file.
        text: String.
        line: Optional int, the line of the file that the text is. Without it, the text is the file.

    Raises:
        TaskFileError: If it is not JSON.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno if line is None else line}"
        received = f"{error.msg} at character {error.colno}"
        raise file_error(path, place, "be JSON", received) from None
    except (RecursionError, ValueError) as error:  # Nested too deeply, or too many digits.
        raise file_error(path, f"line {line or 1}", "be JSON", str(error)) from None


def checked_object(path: pathlib.Path, node: Any, place: str = "") -> dict[str, Any]:
    """Returns what has to be an object.

    Raises:
        TaskFileError: If it is not.
    """
    if not isinstance(node, dict):
        raise file_error(path, place, "be a JSON object", shown(node))
    return node


def member(path: pathlib.Path, node: Any, place: str, key: str, kind: type) -> Any:
    """Returns a member of an object.

    Args:
        path: The file.
        node: What has to be an object.
        place: JSON path of the object, such as `"data[3]"`, or `""`.
        key: String.
        kind: Type that the member has to have.

    Raises:
        TaskFileError: If it is not there, or has another type.
    """
    node = checked_object(path, node, place)
    place = joined(place, key)
    if key not in node:
        raise file_error(path, place, "be there", f"the keys {shown(list(node))}")
    value = node[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise file_error(path, place, f"be {_KINDS[kind]}", shown(value))
    return value


def text_member(path: pathlib.Path, node: Any, place: str, key: str) -> str:
    """Returns a member of an object that is a text and not empty.

    Raises:
        TaskFileError: If it is not.
    """
    text = member(path, node, place, key, str)
    if not text.strip():
        raise file_error(path, joined(place, key), "not be empty", shown(text))
    return text


def joined(place: str, key: str) -> str:
    """Returns the JSON path of a member; after the number of a line, which is no JSON path."""
    if not place:
        return key
    return f"{place}, {key}" if place.startswith("line ") and "," not in place else f"{place}.{key}"
