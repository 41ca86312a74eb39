"""`xlnet predict`: writes what a text model predicts for each text of a file."""

import argparse
import contextlib
import csv
import itertools
import json
import pathlib
import sys
from typing import Any, NamedTuple, TextIO

from keras_xlnet.checkpoints import TASKS, detect_task
from keras_xlnet.cli.arguments import load_keras_file
from keras_xlnet.models import Task
from keras_xlnet.task_files.jsonl import object_value, read_objects
from keras_xlnet.task_files.reporting import (
    check_has_rows,
    decoded,
    existing_file,
    file_error,
    in_cell,
    lines_of,
    read_text,
    shown,
)
from keras_xlnet.task_files.table import column_indices, read_rows

_BATCH = 256


def run(arguments: argparse.Namespace) -> int:
    """Predicts for all texts of a file. Returns the exit status."""
    # Read before the model, which takes longer, and before the output, which may be the same file.
    table = read_texts(arguments.texts, arguments.text_column, arguments.pair_column)
    model = load_text_model(arguments.model, arguments.adapter)
    check_pairs(model, arguments.pair_column is not None)
    count = 0
    with contextlib.ExitStack() as stack:
        output = sys.stdout
        if arguments.output != "-":
            file = open(arguments.output, "w", encoding="utf-8", newline="")
            output = stack.enter_context(file)
        write_row(output, [*table.header, *_new_names(model.csv_columns, table.header)])
        for begin in range(0, len(table.rows), _BATCH):
            end = begin + _BATCH
            found = predict(model, table.texts[begin:end])
            for before, row in zip(table.rows[begin:end], found, strict=True):
                write_row(output, [*before, *row])
            count += len(found)
            if sys.stderr.isatty():
                print(f"\r{count} texts", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if output is not sys.stdout:
        print(f"{count} texts -> {arguments.output}")
    return 0


def _new_names(names, header):
    """The names of the columns of a model, other than those that a file has."""
    return [f"predicted_{name}" if name in header else name for name in names]


def load_text_model(location: str | None, adapter: str | None = None) -> Any:
    """Returns the task model in a `.keras` file or a preset, or of an adapter.

    Args:
        location: Path of the file, or a location as in `Task.from_preset`.
        adapter: Optional adapter, as in `Task.from_preset`.

    Raises:
        ValueError: If it holds another model, or one without a preprocessor.
    """
    known = sorted(name for name, task in TASKS.items() if hasattr(task.model, "csv_rows"))
    if adapter is not None or location is None:
        model, location = Task.from_preset(location, adapter=adapter), adapter
    elif location.endswith(".keras"):
        model = load_keras_file(location)
    else:
        task = detect_task(location)
        if task not in known:
            raise ValueError(f"{location} must hold one of {known}. It holds: {task}")
        model = TASKS[task].model.from_preset(location)
    if not hasattr(model, "csv_rows") or model.preprocessor is None:
        raise ValueError(
            f"{location} must hold one of {known}, with a preprocessor. It holds a "
            f"{type(model).__name__}"
        )
    return model


def check_pairs(model: Any, has_pairs: bool) -> None:
    """Raises `ValueError` if a model takes pairs and there are single texts, or the reverse."""
    name, (first, *others) = type(model).__name__, model.csv_inputs
    is_pair = others == ["pair"]
    # Such a head compares a text with its pair: without one, all outputs are the same.
    is_needed = getattr(model, "pooling", None) == "pair" if is_pair else bool(others)
    if is_needed and not has_pairs:
        of = "pairs of texts" if is_pair else f"{first}s with {others[0]}s"
        raise ValueError(
            f"This {name} takes {of}: name the columns of both, by --text_column and --pair_column"
        )
    if not others and has_pairs:
        raise ValueError(f"An {name} takes single texts. Received: a --pair_column")


def predict(model: Any, texts: list[Any]) -> list[list[str]]:
    """Returns a row of cells for each text or pair, empty cells where a text is blank."""
    is_read = [all(part.strip() for part in _parts(text)) for text in texts]
    rows = iter(model.csv_rows([*itertools.compress(texts, is_read)]) if any(is_read) else [])
    nothing = [""] * len(model.csv_columns)
    return [[*map(_cell, next(rows))] if is_here else nothing for is_here in is_read]


def _parts(text):
    return text if isinstance(text, tuple) else (text,)


def _cell(value):
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return " ".join(map(_cell, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# === Files ===


class Table(NamedTuple):
    """A file of texts.

    Args:
        header: The names of its columns.
        rows: A list of the cells of each row.
        texts: The text of each row, or a tuple of two.
    """

    header: list[str]
    rows: list[list[str]]
    texts: list[Any]


def read_texts(path: str, column: str, pair_column: str | None = None) -> Table:
    """Reads a file of texts: lines, or a table with a header.

    Args:
        path: Path of a file, `.csv` and `.tsv` for tables, `.jsonl` for a JSON object a line;
            `"-"` for the lines of stdin.
        column: Name of the column of a table, or the key of the objects. The column of lines is
            named so too.
        pair_column: Optional name of the column of second texts.

    Raises:
        OSError: If the file cannot be read.
        TaskFileError: If it is not UTF-8, is empty, or is a table without such a column or with
            rows that do not have the columns of the header.
        ValueError: If there is a `pair_column` and the file is no table.
    """
    file = pathlib.Path(path)
    wanted = [column] if pair_column is None else [column, pair_column]
    kind = file.suffix.lower()
    if kind in (".csv", ".tsv"):
        header, numbered = read_rows(existing_file("path", file))
        indices = column_indices(file, dict(zip(wanted, wanted, strict=True)), header)
        rows = [row for _, row in numbered]
        texts = [tuple(row[indices[name]] for name in wanted) for row in rows]
    elif kind == ".jsonl":
        objects = list(read_objects(existing_file("path", file)))
        header = [*dict.fromkeys(name for row in objects for name in row)]
        rows = [[_json_cell(row.get(name)) for name in header] for row in objects]
        texts = [
            tuple(_text_of(file, line, row, name) for name in wanted)
            for line, row in enumerate(objects, 1)
        ]
    else:
        if pair_column is not None:
            raise ValueError(
                f"--pair_column needs a file of {['.csv', '.tsv', '.jsonl']}. Received: {path}"
            )
        lines = lines_of(_stdin() if path == "-" else read_text(file))
        header, rows, texts = [column], [[line] for line in lines], [(line,) for line in lines]
    check_has_rows(file, rows)
    return Table(header, rows, texts if pair_column is not None else [text for (text,) in texts])


def _text_of(path, line, row, name):
    text = object_value(path, line, row, name)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise file_error(path, in_cell(line, name), "be a string", shown(text))
    return text


def _json_cell(value):
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _stdin():
    # Bytes, as from a file: `sys.stdin` has the encoding of the system.
    binary = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read() if binary is None else decoded("stdin", binary.read())


def write_row(output: TextIO, row: list[str]) -> None:
    """Writes a row of a CSV file, whose lines end with `"\\n"`."""
    # Some versions of Python leave "\r" without quotes, and readers of the file end the row there.
    has_return = any("\r" in cell for cell in row)
    quoting: Any = csv.QUOTE_ALL if has_return else csv.QUOTE_MINIMAL
    csv.writer(output, lineterminator="\n", quoting=quoting).writerow(row)
