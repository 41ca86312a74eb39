"""Tables with tabs or commas between their columns."""

import csv
import io
import pathlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keras_xlnet.task_files.column_rules import ColumnRules
from keras_xlnet.task_files.reporting import (
    check_has_rows,
    existing_file,
    file_error,
    in_cell,
    line_end_of,
    lines_of,
    read_text,
    shown,
    without_last_blanks,
)
from keras_xlnet.types import PathLike

# The names of all columns are what helps a user whose name is not one of them.
_SHOWN_NAMES = 30
_FIELD_SIZE_LOCK = threading.Lock()


def read_table(
    path: PathLike,
    columns: Mapping[str, str | int],
    labels: str | None = None,
    delimiter: str | None = None,
    has_header: bool = True,
    class_names: Sequence[str | int] | None = None,
    *,
    numeric: Sequence[str] = (),
    integer: Sequence[str] = (),
    allow_empty: Sequence[str] = (),
) -> dict[str, list[Any]]:
    """Reads columns of a TSV or CSV file, such as those of GLUE.

    Quotation marks are ordinary characters, as in the files of GLUE, but in a `.csv` file whose
    delimiter is not a tab: there they enclose fields, as RFC 4180 says. Fields have any length.

    Args:
        path: The file. Empty lines at its end are no rows.
        columns: Dict from the names in the result to the names in the header, or to the indices
            (0 is the first column) if there is no header: `{"text": "sentence"}`, `{"text": 3}`.
        labels: Optional string, the name in the result of the column that `class_names` is about.
            Defaults to `"label"`.
        delimiter: Optional character between columns. Defaults to a comma if the name of the file
            ends with `.csv`, to a tab otherwise.
        has_header: Bool, whether the first line has the names of the columns. All rows then must
            have as many columns as the header. Without a header, rows can have more columns than
            are read.
        class_names: Optional list. Labels must be in it, as they are in the result: strings, or
            ints if they are `integer` too.
        numeric: Names in the result of columns to convert to floats.
        integer: Names in the result of columns to convert to ints.
        allow_empty: Names in the result of columns where an empty string is a value.

    Returns:
        Dict of lists of equal lengths, in the order of `columns`: strings, floats or ints.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If an argument is not as above.
        TaskFileError: If the file does not have a column, a row has too few or too many columns, a
            text is empty, or a number or label is invalid. The message names line and column.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.task_files import read_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.tsv"
    >>> _ = path.write_text('index\\tsentence\\tlabel\\n0\\tA "fine" film.\\t1\\n1\\tDull.\\t0\\n')
    >>> table = read_table(path, {"text": "sentence", "label": "label"}, integer=["label"])
    >>> table["text"]
    ['A "fine" film.', 'Dull.']
    >>> table["label"]
    [1, 0]

    Pass it on with `fit(table["text"], table["label"])`. Arguments for other files:

    - CoLA: `{"text": 3, "label": 1}, has_header=False`
    - MRPC: `{"text": "#1 String", "pair": "#2 String", "label": "Quality"}`
    - RTE: `{"text": "sentence1", "pair": "sentence2", "label": "label"}`
    - STS-B, `sts-train.csv`: `{"text": 5, "pair": 6, "label": 4}, delimiter="\\t",
      has_header=False, numeric=["label"]`

    Source: Wang et al. 2018, "GLUE: a multi-task benchmark and analysis platform for natural
    language understanding"; RFC 4180.
    """
    rules = ColumnRules(columns, labels, class_names, numeric, integer, allow_empty)
    _check_sources(columns, has_header)
    path = existing_file("path", path)
    header, rows = read_rows(path, delimiter) if has_header else (None, _rows(path, delimiter))
    indices = column_indices(path, columns, header)
    result: dict[str, list[Any]] = {name: [] for name in columns}
    for line, row in rows:
        for name, index in indices.items():
            place = in_cell(line, columns[name])
            if index >= len(row):
                raise file_error(path, place, "be there", f"{len(row)} columns, {shown(row)}")
            result[name].append(rules.checked(name, row[index], path, place))
    check_has_rows(path, next(iter(result.values())))
    return result


def read_rows(
    path: pathlib.Path, delimiter: str | None = None
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Returns the header of a file and an iterator over its rows, as `(line, cells)`.

    Args:
        path, delimiter: As in `read_table`.

    Raises:
        TaskFileError: If the file has no header. The iterator raises it for a row that does not
            have as many cells as the header.
    """
    rows = _rows(path, delimiter)
    first = next(rows, None)
    if first is None:
        raise file_error(path, "line 1", "be a header", "an empty file")
    return first[1], _as_wide(path, first[1], rows)


def _as_wide(path, header, rows):
    for line, row in rows:
        if len(row) != len(header):
            must = f"have as many columns as the header, {len(header)}"
            raise file_error(path, f"line {line}", must, f"{len(row)}, {shown(row)}")
        yield line, row


def _check_sources(columns, has_header):
    # Indices together with a header are refused: of a file without one, whose columns have no
    # names, the first row would be lost.
    kind, wanted = (str, "names") if has_header else (int, "indices, from 0,")
    for source in columns.values():
        is_wanted = isinstance(source, kind) and not isinstance(source, bool)
        if not is_wanted or (kind is int and source < 0):
            raise ValueError(
                f"`columns` must have {wanted} of columns of the file with has_header={has_header}."
                f" Received: {shown(source)}"
            )


def _rows(path: pathlib.Path, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    """Returns an iterator over (line, fields)."""
    is_csv = path.suffix.lower() == ".csv"
    if delimiter is None:
        delimiter = "," if is_csv else "\t"
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\r\n"':
        raise ValueError(f"`delimiter` must be one character. Received: {shown(delimiter)}")
    text = read_text(path)
    # The .csv files of STS-B have tabs, and quotation marks that are not in pairs.
    if is_csv and delimiter != "\t":
        return _quoted_rows(path, text, delimiter)
    return _plain_rows(text, delimiter)


def _plain_rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yields (line, fields). An empty line has no fields."""
    for line, content in enumerate(without_last_blanks(lines_of(text)), 1):
        yield line, content.split(delimiter) if content else []


def _quoted_rows(path: pathlib.Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Returns an iterator over (line where the row begins, fields). An empty line has no fields."""
    # With `newline`, lines end at this character only, and "\r\n" inside of quotes stays.
    file = io.StringIO(text.rstrip("\r\n"), newline=line_end_of(text))
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    rows, line = [], 1
    # A limit of the process, by default 131,072 characters.
    with _FIELD_SIZE_LOCK:
        limit = csv.field_size_limit(max(len(text), 1))
        try:
            for row in reader:
                rows.append((line, row))
                line = reader.line_num + 1
        except csv.Error as error:
            # Some go on with advice about `open`, which the user did not call.
            received = str(error).partition(" - ")[0]
            raise file_error(path, f"line {line}", "be a row of a CSV file", received) from None
        finally:
            csv.field_size_limit(limit)
    return iter(rows)


def column_indices(
    path: pathlib.Path, columns: Mapping[str, Any], header: list[str] | None
) -> dict[str, int]:
    """Returns the indices of `columns` in a header, which must have each of them once.

    Raises:
        TaskFileError: If it has not.
    """
    if header is None:
        return dict(columns)
    for source in columns.values():
        if header.count(source) != 1:
            must = f"have {'one' if source in header else 'a'} column {source!r}"
            names = ", ".join(shown(name) for name in header[:_SHOWN_NAMES])
            raise file_error(path, "line 1", must, f"the columns {names}")
    return {name: header.index(source) for name, source in columns.items()}
