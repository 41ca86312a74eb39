"""`xlnet predict`: writes what a text model predicts for each text of a file."""

import argparse
import contextlib
import csv
import itertools
import json
import pathlib
import sys
from typing import Any, TextIO

import keras

from keras_xlnet.checkpoints import TASKS, detect_task
from keras_xlnet.models import Task
from keras_xlnet.task_files import read_json_lines, read_table
from keras_xlnet.task_files.reporting import (
    check_has_rows,
    decoded,
    file_error,
    in_cell,
    lines_of,
    read_text,
    shown,
)

_BATCH = 256
_READERS: dict[str, Any] = {".csv": read_table, ".tsv": read_table, ".jsonl": read_json_lines}


def run(arguments: argparse.Namespace) -> int:
    """Predicts for all texts of a file. Returns the exit status."""
    # Read before the model, which takes longer, and before the output, which may be the same file.
    texts = read_texts(arguments.texts, arguments.text_column, arguments.pair_column)
    model = load_text_model(arguments.model, arguments.adapter)
    check_pairs(model, arguments.pair_column is not None)
    count = 0
    with contextlib.ExitStack() as stack:
        output = sys.stdout
        if arguments.output != "-":
            file = open(arguments.output, "w", encoding="utf-8", newline="")
            output = stack.enter_context(file)
        inputs = model.csv_inputs[: len(_cells(texts[0]))]
        write_row(output, [*inputs, *model.csv_columns])
        for begin in range(0, len(texts), _BATCH):
            batch = texts[begin : begin + _BATCH]
            for text, row in zip(batch, predict(model, batch), strict=True):
                write_row(output, [*_cells(text), *row])
            count += len(batch)
            if sys.stderr.isatty():
                print(f"\r{count} texts", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if output is not sys.stdout:
        print(f"{count} texts -> {arguments.output}")
    return 0


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
        model = keras.saving.load_model(location, compile=False)
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
    """Returns a row of cells for each text or pair."""
    # A model of words refuses texts without words. A file may have some.
    is_read = [not model.preprocessor.has_token_labels or bool(text.strip()) for text in texts]
    rows = iter(model.csv_rows([*itertools.compress(texts, is_read)]) if any(is_read) else [])
    nothing: list[Any] = [[]] * len(model.csv_columns)
    return [[*map(_cell, next(rows) if is_here else nothing)] for is_here in is_read]


def _cell(value):
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return " ".join(map(_cell, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# === Files ===


def read_texts(path: str, column: str, pair_column: str | None = None) -> list[Any]:
    """Returns the texts of a file: the lines, or columns of a table with a header.

    Args:
        path: Path of a file, `.csv` and `.tsv` for tables, `.jsonl` for a JSON object a line;
            `"-"` for the lines of stdin.
        column: Name of the column of a table, or the key of the objects.
        pair_column: Optional name of the column of second texts.

    Returns:
        A list of strings, with a `pair_column` of tuples of two strings.

    Raises:
        OSError: If the file cannot be read.
        TaskFileError: If it is not UTF-8, is empty, or is a table without such a column or with
            rows that do not have the columns of the header, or a text of a pair is empty.
        ValueError: If there is a `pair_column` and the file is no table.
    """
    reader = _READERS.get(pathlib.Path(path).suffix.lower())
    if reader is None:
        if pair_column is not None:
            raise ValueError(f"--pair_column needs a file of {[*_READERS]}. Received: {path}")
        text = _stdin() if path == "-" else read_text(pathlib.Path(path))
        lines = lines_of(text)
        check_has_rows(pathlib.Path(path), lines)
        return lines
    if pair_column is None:
        return _column(reader(path, {"text": column}, allow_empty=["text"]), "text", path, column)
    columns = reader(path, {"text": column, "pair": pair_column})
    texts = _column(columns, "text", path, column)
    return [*zip(texts, _column(columns, "pair", path, pair_column), strict=True)]


def _column(columns, key, path, name):
    texts = columns[key]
    if not isinstance(texts[0], str):  # All values of a column of JSON have one type.
        raise file_error(path, in_cell(1, name), "be a string", shown(texts[0]))
    return texts


def _stdin():
    # Bytes, as from a file: `sys.stdin` has the encoding of the system.
    binary = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read() if binary is None else decoded("stdin", binary.read())


def _cells(text):
    return text if isinstance(text, tuple) else (text,)


def write_row(output: TextIO, row: list[str]) -> None:
    """Writes a row of a CSV file, whose lines end with `"\\n"`."""
    # Some versions of Python leave "\r" without quotes, and readers of the file end the row there.
    has_return = any("\r" in cell for cell in row)
    quoting: Any = csv.QUOTE_ALL if has_return else csv.QUOTE_MINIMAL
    csv.writer(output, lineterminator="\n", quoting=quoting).writerow(row)
