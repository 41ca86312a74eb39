"""`xlnet predict`: writes what a text model predicts for each text of a file."""

import argparse
import contextlib
import csv
import json
import pathlib
import sys
from typing import Any, TextIO

import keras

from keras_xlnet.checkpoints import detect_task
from keras_xlnet.models import (
    Task,
    XLNetQuestionAnswering,
    XLNetTextClassifier,
    XLNetTextRegressor,
    XLNetTokenClassifier,
)
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
    "token_classifier": XLNetTokenClassifier,
    "question_answering": XLNetQuestionAnswering,
}


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
        write_row(output, [*_cells(_names(model, texts[0])), *columns(model)])
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
            f"{location} must hold one of {[*_MODELS]}, with a preprocessor. It holds a "
            f"{type(model).__name__}"
        )
    return model


def check_pairs(model: Any, has_pairs: bool) -> None:
    """Raises `ValueError` if a model takes pairs and there are single texts, or the reverse."""
    name = type(model).__name__
    answers = isinstance(model, XLNetQuestionAnswering)
    # Such a head compares a text with its pair: without one, all outputs are the same.
    if (answers or getattr(model, "pooling", None) == "pair") and not has_pairs:
        of = "questions with contexts" if answers else "pairs of texts"
        raise ValueError(
            f"This {name} takes {of}: name the columns of both, by --text_column and --pair_column"
        )
    if isinstance(model, XLNetTokenClassifier) and has_pairs:
        raise ValueError(f"An {name} takes single texts. Received: a --pair_column")


def columns(model: Any) -> list[str]:
    """Returns the names of the columns that `predict` gives."""
    if isinstance(model, XLNetTextRegressor):
        return ["value"]
    if isinstance(model, XLNetTokenClassifier):
        return ["entities"]
    if isinstance(model, XLNetQuestionAnswering):
        return ["answer", "start", "end", "probability"]
    return ["label", "score", *model.label_names]


def predict(model: Any, texts: list[Any]) -> list[list[str]]:
    """Returns a row of values for each text or pair."""
    if isinstance(model, XLNetTextRegressor):
        return [[f"{value:.6g}"] for value in model.predict(texts, verbose=0)[:, 0]]
    if isinstance(model, XLNetTokenClassifier):
        # A model of words refuses texts without words. A file may have some.
        with_words = [text for text in texts if text.strip()]
        entities = iter(model.find_entities(with_words, verbose=0) if with_words else [])
        return [[_as_json(next(entities) if text.strip() else [])] for text in texts]
    if isinstance(model, XLNetQuestionAnswering):
        return [_answer(found) for found in model.answer(texts, verbose=0)]
    found = model.classify(texts, verbose=0)
    return [[_joined(f.label), _joined(f.score), *map(_joined, f.scores.values())] for f in found]


def _as_json(entities):
    parts = [{**vars(entity), "score": round(entity.score, 4)} for entity in entities]
    return json.dumps(parts, ensure_ascii=False)


def _answer(found):
    if not found.text:
        return [""] * 4
    best = found.answers[0]
    return [best.text, str(best.start), str(best.end), f"{best.probability:.6g}"]


def _joined(value):
    if isinstance(value, tuple):
        return " ".join(map(_joined, value))
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


def _names(model, first):
    if isinstance(model, XLNetQuestionAnswering):
        return "question", "context"
    return ("text", "pair") if isinstance(first, tuple) else "text"


def _cells(text):
    return text if isinstance(text, tuple) else (text,)


def write_row(output: TextIO, row: list[str]) -> None:
    """Writes a row of a CSV file, whose lines end with `"\\n"`."""
    # Some versions of Python leave "\r" without quotes, and readers of the file end the row there.
    has_return = any("\r" in cell for cell in row)
    quoting: Any = csv.QUOTE_ALL if has_return else csv.QUOTE_MINIMAL
    csv.writer(output, lineterminator="\n", quoting=quoting).writerow(row)
