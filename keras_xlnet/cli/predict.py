"""`xlnet predict`: writes what a text model predicts for each text of a file."""

import argparse
import contextlib
import csv
import pathlib
import sys
from typing import Any, TextIO

import keras

from keras_xlnet.checkpoints import detect_task
from keras_xlnet.models import Task, XLNetTextClassifier, XLNetTextRegressor
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
_MODELS: dict[str, Any] = {
    "text_classifier": XLNetTextClassifier,
    "text_regressor": XLNetTextRegressor,
}


def run(arguments: argparse.Namespace) -> int:
    """Predicts for all texts of a file. Returns the exit status."""
    # Read before the model, which takes longer, and before the output, which may be the same file.
    texts = read_texts(arguments.texts, arguments.text_column)
    model = load_text_model(arguments.model, arguments.adapter)
    count = 0
    with contextlib.ExitStack() as stack:
        output = sys.stdout
        if arguments.output != "-":
            file = open(arguments.output, "w", encoding="utf-8", newline="")
            output = stack.enter_context(file)
        write_row(output, ["text", *columns(model)])
        for begin in range(0, len(texts), _BATCH):
            batch = texts[begin : begin + _BATCH]
            for text, row in zip(batch, predict(model, batch), strict=True):
                write_row(output, [text, *row])
            count += len(batch)
            if sys.stderr.isatty():
                print(f"\r{count} texts", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if output is not sys.stdout:
        print(f"{count} texts -> {arguments.output}")
    return 0


def load_text_model(location: str | None, adapter: str | None = None) -> Any:
    """Returns the classifier or regressor in a `.keras` file or a preset, or of an adapter.

    Args:
        location: Path of the file, or a location as in `Task.from_preset`.
        adapter: Optional adapter, as in `Task.from_preset`.

    Raises:
        ValueError: If it holds another model, or one without a preprocessor.
    """
    if adapter is not None or location is None:
        model, location = Task.from_preset(location, adapter=adapter), adapter
    elif location.endswith(".keras"):
        model = keras.saving.load_model(location, compile=False)
    else:
        task = detect_task(location)
        if task not in _MODELS:
            raise ValueError(f"{location} must hold one of {[*_MODELS]}. It holds: {task}")
        model = _MODELS[task].from_preset(location)
    if (
        not isinstance(model, tuple(_MODELS.values()))
        or getattr(model, "preprocessor", None) is None
    ):
        raise ValueError(
            f"{location} must hold a text classifier or regressor with a preprocessor. It holds a "
            f"{type(model).__name__}"
        )
    return model


def columns(model: Any) -> list[str]:
    """Returns the names of the columns that `predict` gives."""
    if isinstance(model, XLNetTextRegressor):
        return ["value"]
    return ["label", "score", *model.label_names]


def predict(model: Any, texts: list[str]) -> list[list[str]]:
    """Returns a row of values for each text."""
    if isinstance(model, XLNetTextRegressor):
        return [[f"{value:.6g}"] for value in model.predict(texts, verbose=0)[:, 0]]
    found = model.classify(texts, verbose=0)
    return [[_joined(f.label), _joined(f.score), *map(_joined, f.scores.values())] for f in found]


def _joined(value):
    if isinstance(value, tuple):
        return " ".join(map(_joined, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# === Files ===


def read_texts(path: str, column: str) -> list[str]:
    """Returns the texts of a file: the lines, or a column of a table with a header.

    Args:
        path: Path of a file, `.csv` and `.tsv` for tables, `.jsonl` for a JSON object a line;
            `"-"` for the lines of stdin.
        column: Name of the column of a table, or the key of the objects.

    Raises:
        OSError: If the file cannot be read.
        TaskFileError: If it is not UTF-8, is empty, or is a table without such a column or with
            rows that do not have the columns of the header.
    """
    reader = _READERS.get(pathlib.Path(path).suffix.lower())
    if reader is None:
        text = _stdin() if path == "-" else read_text(pathlib.Path(path))
        lines = lines_of(text)
        check_has_rows(pathlib.Path(path), lines)
        return lines
    texts = reader(path, {"text": column}, allow_empty=["text"])["text"]
    if not isinstance(texts[0], str):  # All values of a column of JSON have one type.
        raise file_error(path, in_cell(1, column), "be a string", shown(texts[0]))
    return texts


def _stdin():
    # Bytes, as those of a file: the encoding of `sys.stdin` is that of the system.
    binary = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read() if binary is None else decoded("stdin", binary.read())


def write_row(output: TextIO, row: list[str]) -> None:
    """Writes a row of a CSV file, whose lines end with `"\\n"`."""
    # Some versions of Python leave "\r" without quotes, and readers of the file end the row there.
    has_return = any("\r" in cell for cell in row)
    quoting: Any = csv.QUOTE_ALL if has_return else csv.QUOTE_MINIMAL
    csv.writer(output, lineterminator="\n", quoting=quoting).writerow(row)
