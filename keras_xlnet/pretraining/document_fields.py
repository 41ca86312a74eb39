"""Documents in a field of JSON lines and Parquet files: each object or row is a document."""

import json
import math
from collections.abc import Iterable, Iterator

from keras_xlnet.lazy_modules import requires_extra
from keras_xlnet.pretraining.file_systems import Files
from keras_xlnet.pretraining.text_files import FilePart, read_lines, sentences_of

_ROWS_PER_READ = 1024


def read_fields(
    parts: Iterable[FilePart], file_format: str, field: str, lines: str, files: Files
) -> Iterator[list[str]]:
    """Reads the documents that begin in parts of JSON lines or Parquet files.

    Args:
        parts: Iterable of `FilePart`. The bytes of a Parquet file are those that `parquet_bytes`
            counts.
        file_format: String, `"jsonl"` or `"parquet"`.
        field: String, the name of the field with the text.
        lines: String, `"sentences"` or `"paragraphs"`; see `write_token_records`.
        files: `TensorFlowFiles` or `BeamFiles`, with which files are opened.

    Yields:
        List of strings: the sentences of a document. Documents without sentences are skipped.

    Raises:
        ValueError: If a file is invalid, or the field of a document is not text.
    """
    read = {"jsonl": _json_texts, "parquet": _parquet_texts}[file_format]
    for part in parts:
        for place, text in read(part, field, files):
            _check_text(text, field, f"{part.path!r}, {place}")
            document = [line.strip() for line in text.split("\n") if line.strip()]
            if document:
                yield sentences_of(document, lines)


def parquet_bytes(path: str, field: str, files: Files) -> int:
    """Returns the size of a column of a Parquet file in bytes, without compression."""
    with files.open(path) as file:
        parquet = _open_parquet(file, path, field)
        return sum(size for _, size in _row_groups(parquet, field))


def _check_text(text, field, place):
    if not isinstance(text, str):
        raise ValueError(f"{place}: the field {field!r} must be a string. Received: {text!r}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        # JSON can contain half of a surrogate pair, which UTF-8 cannot encode.
        raise ValueError(
            f"{place}: the field {field!r} must be Unicode text. Received: "
            f"{text[error.start]!r} at character {error.start}"
        ) from error


def _json_texts(part, field, files):
    for offset, line in read_lines(part, files):
        if offset >= part.end:
            return
        if line.strip():
            try:
                value = json.loads(line)
            except ValueError as error:
                place = _line_number(part.path, offset, files)
                raise ValueError(f"{part.path!r} is not JSON at {place}: {error}") from error
            if not isinstance(value, dict) or field not in value:
                raise ValueError(
                    f"{part.path!r}, {_line_number(part.path, offset, files)}: must be a JSON "
                    f"object with the field {field!r}. Received: {_shortened(line.strip())}"
                )
            yield f"byte {offset}", value[field]


def _line_number(path, offset, files):
    # Counted only for an error, because a part does not know how many lines precede it.
    number = 1
    for begin, _ in read_lines(FilePart(path, 0, math.inf), files):
        if begin >= offset:
            break
        number += 1
    return f"line {number}"


def _shortened(text, length=80):
    return text if len(text) <= length else f"{text[:length]}..."


def _parquet_texts(part, field, files):
    # Rows have no position in bytes. So the bytes of a group are divided equally among its rows,
    # and a row belongs to the part in which its share begins.
    with files.open(part.path) as file:
        parquet = _open_parquet(file, part.path, field)
        offset, row = 0, 0
        for group, (num_rows, size) in enumerate(_row_groups(parquet, field)):
            first = _first_row(part.begin - offset, num_rows, size)
            last = _first_row(part.end - offset, num_rows, size)
            for number, text in _rows(parquet, group, field, first, last, part.path):
                yield f"row {row + number}", text
            offset, row = offset + size, row + num_rows


def _first_row(begin, num_rows, size):
    """Returns the first row of a group whose share of the bytes begins at `begin` or later."""
    return num_rows if begin >= size else max(0, -(-begin * num_rows // size))


def _rows(parquet, group, field, first, last, path):
    if first >= last:
        return
    number = 0
    batches = parquet.iter_batches(_ROWS_PER_READ, row_groups=[group], columns=[field])
    while number < last:
        try:
            texts = next(batches).column(0).to_pylist()
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{path!r} is not a complete Parquet file of UTF-8 text, in row group {group}: "
                f"{error}"
            ) from error
        begin, end = max(first - number, 0), min(last - number, len(texts))
        yield from enumerate(texts[begin:end], start=number + begin)
        number += len(texts)


def _open_parquet(file, path, field):
    with requires_extra("beam", "A Parquet file"):
        from pyarrow import ArrowException, types
        from pyarrow.parquet import ParquetFile

    try:
        parquet = ParquetFile(file)
    except ArrowException as error:
        raise ValueError(f"{path!r} is not a Parquet file: {error}") from error
    columns = dict(zip(parquet.schema_arrow.names, parquet.schema_arrow.types, strict=True))
    kind = columns.get(field)
    if kind is not None and types.is_dictionary(kind):
        kind = kind.value_type
    if kind is None or not (types.is_string(kind) or types.is_large_string(kind)):
        found = ", ".join(f"{name} ({columns[name]})" for name in columns)
        raise ValueError(
            f"{path!r} must have a column {field!r} of strings. Received: the columns {found}"
        )
    return parquet


def _row_groups(parquet, field):
    """Yields the number of rows of each group, and of bytes of its column (at least 1)."""
    for index in range(parquet.metadata.num_row_groups):
        group = parquet.metadata.row_group(index)
        columns = [group.column(number) for number in range(group.num_columns)]
        sizes = [c.total_uncompressed_size for c in columns if c.path_in_schema == field]
        yield group.num_rows, max(1, *sizes)
