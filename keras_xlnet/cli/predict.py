"""`xlnet predict`: writes what a text model predicts for each text of a file."""

import argparse
import contextlib
import csv
import itertools
import sys
from collections.abc import Iterator
from typing import Any

import keras

from keras_xlnet.checkpoints import detect_task
from keras_xlnet.models import XLNetTextClassifier, XLNetTextRegressor

_BATCH = 256
_TABLES = {".csv": ",", ".tsv": "\t"}
_MODELS: dict[str, Any] = {
    "text_classifier": XLNetTextClassifier,
    "text_regressor": XLNetTextRegressor,
}


def run(arguments: argparse.Namespace) -> int:
    """Predicts for all texts of a file. Returns the exit status."""
    model = load_text_model(arguments.model)
    count = 0
    with contextlib.ExitStack() as stack:
        texts = iter(read_texts(stack, arguments.texts, arguments.text_column))
        output = sys.stdout
        if arguments.output != "-":
            output = stack.enter_context(_open(arguments.output, "w"))
        writer = csv.writer(output, lineterminator="\n")
        writer.writerow(["text", *columns(model)])
        while batch := list(itertools.islice(texts, _BATCH)):
            writer.writerows(
                [text, *row] for text, row in zip(batch, predict(model, batch), strict=True)
            )
            count += len(batch)
            if sys.stderr.isatty():
                print(f"\r{count} texts", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if output is not sys.stdout:
        print(f"{count} texts -> {arguments.output}")
    return 0


def load_text_model(location: str) -> Any:
    """Returns the classifier or regressor in a `.keras` file or a preset.

    Raises:
        ValueError: If it holds another model, or one without a preprocessor.
    """
    if location.endswith(".keras"):
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
    found = model.classify(texts)
    return [[_joined(f.label), _joined(f.score), *map(_joined, f.scores.values())] for f in found]


def _joined(value):
    if isinstance(value, tuple):
        return " ".join(map(_joined, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# === Files ===


def read_texts(stack: contextlib.ExitStack, path: str, column: str) -> Iterator[str]:
    """Yields the texts of a file: the lines, or a column of a table with a header.

    Args:
        stack: `contextlib.ExitStack` that closes the file.
        path: Path of a file, `.csv` and `.tsv` for tables; `"-"` for the lines of stdin.
        column: Name of the column of a table.

    Raises:
        ValueError: If the table has no such column.
    """
    file = sys.stdin if path == "-" else stack.enter_context(_open(path, "r"))
    delimiter = next((d for ending, d in _TABLES.items() if path.endswith(ending)), None)
    if delimiter is None:
        return (line.rstrip("\r\n") for line in file)
    rows = csv.DictReader(file, delimiter=delimiter)
    if column not in (rows.fieldnames or ()):
        raise ValueError(f"{path} has no column {column!r}. It has: {rows.fieldnames}")
    return (row[column] or "" for row in rows)


def _open(path, mode):
    return open(path, mode, encoding="utf-8", newline="" if mode == "w" else None)
