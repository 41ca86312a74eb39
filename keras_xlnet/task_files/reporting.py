"""Errors of files, in one form, and the text and lines of a file."""

import os
import pathlib
import re
from typing import Any

from keras_xlnet.types import PathLike

_SHOWN_CHARACTERS = 80
_UTF8_BOM = b"\xef\xbb\xbf"
# How files begin that are often taken for UTF-8 text. Without a byte order mark, four characters of
# ASCII show UTF-16, whose bytes can be valid UTF-8. Less would refuse texts that have a NUL.
_OTHER_FORMATS = {
    rb"\xff\xfe|\xfe\xff|(?:[^\0]\0){4}|(?:\0[^\0]){4}": "UTF-16 text",
    rb"\x1f\x8b": "a gzip file",
    rb"PK\x03\x04": "a ZIP file, as .xlsx files are",
}


class TaskFileError(ValueError):
    """A file that is not as the format of its task says.

    The message is one line: the file, the place in it, what was expected and what was found.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.task_files import TaskFileError, read_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.tsv"
    >>> _ = path.write_text("sentence\\tlabel\\nA fine film.\\t7\\n")
    >>> try:
    ...     read_table(path, {"text": "sentence", "label": "label"}, class_names=["0", "1"])
    ... except TaskFileError as error:
    ...     print(error)
    /.../train.tsv, line 2, column 'label': must be in class_names=['0', '1']. Received: '7'
    """


def file_error(path: PathLike, place: str, must: str, received: str) -> TaskFileError:
    """Returns the error of a file.

    Args:
        path: The file.
        place: String, such as `"line 3"`, a JSON path, or `""` for the file as a whole.
        must: String, the requirement, after "must".
        received: String, what was found; see `shown`.
    """
    where = f"{os.fspath(path)}, {place}" if place else os.fspath(path)
    return TaskFileError(f"{where}: must {must}. Received: {received}")


def shown(value: Any) -> str:
    """Returns the `repr` of a value, which is one line, cut to some 80 characters."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def in_cell(line: int, column: str | int) -> str:
    """Returns the place of a value in a table.

    Args:
        line: Int, from 1.
        column: Name of the column, or its index from 0.
    """
    return f"line {line}, column {column!r}"


def existing_file(argument: str, path: PathLike) -> pathlib.Path:
    """Returns the path of a file.

    Args:
        argument: Name of the argument that the path is from.
        path: The file.

    Raises:
        FileNotFoundError: If there is no such file.
    """
    file = pathlib.Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"`{argument}` must be a file. Received: {os.fspath(path)!r}")
    return file


def file_in_folder(folder: PathLike, name: str) -> pathlib.Path:
    """Returns the path of a file in the argument `folder`.

    Raises:
        FileNotFoundError: If there is no such folder, or no such file in it.
    """
    if not pathlib.Path(folder).is_dir():
        raise FileNotFoundError(f"`folder` must be a folder. Received: {os.fspath(folder)!r}")
    file = pathlib.Path(folder) / name
    if not file.is_file():
        raise FileNotFoundError(
            f"`folder` must have the file {name!r}. Received: {os.fspath(folder)!r}"
        )
    return file


def read_text(path: pathlib.Path) -> str:
    """Returns the text of a UTF-8 file, without a byte order mark.

    Raises:
        TaskFileError: If it is not UTF-8.
    """
    return decoded(path, path.read_bytes())


def decoded(path: PathLike, content: bytes) -> str:
    """Returns the text of UTF-8 bytes, without a byte order mark.

    Args:
        path: What an error calls the file.
        content: Its bytes.

    Raises:
        TaskFileError: If they are not UTF-8.
    """
    for beginning, name in _OTHER_FORMATS.items():
        if re.match(beginning, content):
            raise file_error(path, "line 1", "be UTF-8 text", f"{name}, {shown(content[:10])}")
    content = content.removeprefix(_UTF8_BOM)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        around = content[max(error.start - 10, 0) : error.start + 10]
        raise file_error(path, f"line {line}", "be UTF-8 text", shown(around)) from None


def line_end_of(text: str) -> str:
    """Returns the character that ends the lines of a text: `"\\r"` if it has no `"\\n"`."""
    return "\r" if "\r" in text and "\n" not in text else "\n"


def lines_of(text: str) -> list[str]:
    """Returns the lines of a text, without their ends.

    These are `\\n` or `\\r\\n`, or `\\r` in a text without `\\n`, as old spreadsheets write.
    """
    # Not `splitlines`: that also splits at characters such as U+2028 and U+0085, which real files
    # have inside of texts.
    lines = text.split(line_end_of(text))
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def without_last_blanks(lines: list[str]) -> list[str]:
    """Returns lines without the empty ones after the last line that is not empty."""
    count = len(lines)
    while count and not lines[count - 1]:
        count -= 1
    return lines[:count]


def check_has_rows(path: pathlib.Path, rows: Any) -> None:
    """Raises `TaskFileError` if there are no rows: `fit` on them would fail without a file name."""
    if not rows:
        raise file_error(path, "", "have at least one row", "none")
