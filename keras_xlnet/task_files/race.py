"""Multiple choice questions in the format of RACE."""

import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from keras_xlnet.task_files.json_members import joined, member, parse_json, text_member
from keras_xlnet.task_files.reporting import (
    check_has_rows,
    existing_file,
    file_error,
    lines_of,
    read_text,
    shown,
    without_last_blanks,
)
from keras_xlnet.types import PathLike

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def read_race(paths: PathLike | Sequence[PathLike]) -> dict[str, list[Any]]:
    """Reads the questions of RACE.

    Args:
        paths: A path or a list of paths. A path is a `.txt` file with one article, as RACE has
            them; another file with the same object on each line (JSON lines); or a folder, in which
            all `.txt` files are read, also those in folders inside, in the order of their paths.

    Returns:
        Dict of lists with one entry a question: `id` (of the article, which has several questions),
        `text` (the article), `question`, strings; `choices`, lists of strings; `label`, int, the
        index of the right choice. A `_` outside of words in a question is a blank that the choice
        fills.

    Raises:
        FileNotFoundError: If there is no such file, or a folder has no `.txt` file.
        TaskFileError: If something is not JSON, a key is missing, a text is empty, the lists of an
            article differ in length, or an answer is not the letter of an option. The message has
            line and JSON path.

    Example:

    >>> import json, pathlib, tempfile
    >>> from keras_xlnet.task_files import read_race
    >>> article = {"id": "middle1.txt", "article": "The sun rose at six.",
    ...     "questions": ["When?"], "options": [["At five.", "At six."]], "answers": ["B"]}
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.jsonl"
    >>> _ = path.write_text(json.dumps(article))
    >>> race = read_race(path)
    >>> race["choices"], race["label"]
    ([['At five.', 'At six.']], [1])

    Source: Lai et al. 2017, "RACE: large-scale reading comprehension dataset from examinations".
    """
    columns: dict[str, list[Any]] = {
        "id": [],
        "text": [],
        "question": [],
        "choices": [],
        "label": [],
    }
    for path in _files(paths):
        num_before = len(columns["id"])
        for place, node in _articles(path):
            _add_questions(columns, path, place, node)
        check_has_rows(path, len(columns["id"]) - num_before)
    return columns


def _files(paths: PathLike | Sequence[PathLike]) -> list[pathlib.Path]:
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    files = []
    for path in paths:
        if not pathlib.Path(path).is_dir():
            files.append(existing_file("paths", path))
            continue
        # Not `.jsonl`: such files of one folder are usually its splits.
        found = sorted(pathlib.Path(path).rglob("*.txt"))
        if not found:
            raise FileNotFoundError(
                "`paths` must have folders with .txt files; name .jsonl files one by one. "
                f"Received: {os.fspath(path)!r}"
            )
        files += found
    if not files:
        raise ValueError(f"`paths` must be a path or a list of them. Received: {paths!r}")
    return files


def _articles(path: pathlib.Path) -> Iterator[tuple[str, Any]]:
    """Yields (place, article)."""
    text = read_text(path)
    if path.suffix.lower() == ".txt":
        yield "", parse_json(path, text)
        return
    for line, content in enumerate(without_last_blanks(lines_of(text)), 1):
        yield f"line {line}", parse_json(path, content, line)


def _add_questions(columns, path, place, node):
    identity = text_member(path, node, place, "id")
    article = text_member(path, node, place, "article")
    lists = {
        key: member(path, node, place, key, list) for key in ("questions", "options", "answers")
    }
    lengths = {key: len(values) for key, values in lists.items()}
    if len(set(lengths.values())) > 1:
        must = "have questions, options and answers of equal lengths"
        raise file_error(path, place, must, str(lengths))
    for row, values in enumerate(zip(*lists.values(), strict=True)):
        places = [f"{joined(place, key)}[{row}]" for key in lists]
        question = _text(path, places[0], values[0])
        choices = _choices(path, places[1], values[1])
        letters = _LETTERS[: len(choices)]
        if not isinstance(values[2], str) or len(values[2]) != 1 or values[2] not in letters:
            raise file_error(path, places[2], f"be a letter of {letters}", shown(values[2]))
        columns["id"].append(identity)
        columns["text"].append(article)
        columns["question"].append(question)
        columns["choices"].append(choices)
        columns["label"].append(letters.index(values[2]))


def _choices(path, place, values):
    if not isinstance(values, list) or not 2 <= len(values) <= len(_LETTERS):
        raise file_error(path, place, "be a list of 2 or more options", shown(values))
    return [_text(path, f"{place}[{i}]", value) for i, value in enumerate(values)]


def _text(path, place, value):
    if not isinstance(value, str) or not value.strip():
        raise file_error(path, place, "be a text that is not empty", shown(value))
    return value
