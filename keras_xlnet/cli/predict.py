"""`xlnet predict`: writes what a text model predicts for each text of a file."""

import argparse
import contextlib
import csv
import itertools
import pathlib
import sys
from collections.abc import Iterable
from typing import Any

import keras

from keras_xlnet.checkpoints import detect_task
from keras_xlnet.models import XLNetTextClassifier, XLNetTextRegressor
from keras_xlnet.task_files import read_lines, read_table

_BATCH = 256
_TABLES = (".csv", ".tsv")
_BYTE_ORDER_MARK = "\ufeff"
_MODELS: dict[str, Any] = {
    "text_classifier": XLNetTextClassifier,
    "text_regressor": XLNetTextRegressor,
}


def run(arguments: argparse.Namespace) -> int:
    """Predicts for all texts of a file. Returns the exit status."""
    model = load_text_model(arguments.model)
    count = 0
    texts = iter(read_texts(arguments.texts, arguments.text_column))
    with contextlib.ExitStack() as stack:
        output = sys.stdout
        if arguments.output != "-":
            output = stack.enter_context(open(arguments.output, "w", encoding="utf-8", newline=""))
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


def read_texts(path: str, column: str) -> Iterable[str]:
    """Returns the texts of a file: the lines, or a column of a table with a header.

    Args:
        path: Path of a file, `.csv` and `.tsv` for tables; `"-"` for the lines of stdin.
        column: Name of the column of a table.

    Raises:
        FileNotFoundError: If there is no such file.
        TaskFileError: If the file is not UTF-8, or the table has no such column or a row of another
            length. The message names the line.
    """
    if path == "-":
        lines = (line.rstrip("\r\n") for line in sys.stdin)
        return (
            line.removeprefix(_BYTE_ORDER_MARK) if i == 0 else line for i, line in enumerate(lines)
        )
    if pathlib.Path(path).suffix.lower() not in _TABLES:
        return read_lines(path)
    return read_table(path, {"text": column}, allow_empty=["text"])["text"]
