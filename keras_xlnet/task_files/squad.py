"""Questions, contexts and answers in the format of SQuAD."""

import json
import pathlib
from collections.abc import Iterator
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


def read_squad(path: PathLike) -> dict[str, list[Any]]:
    """Reads the questions of SQuAD 1.1 or 2.0, in the form of its authors or of the Hub.

    The authors have articles with paragraphs with questions. The Hugging Face Hub has rows with
    `id`, `question`, `context` and `answers`, a dict of the lists `text` and `answer_start`: in a
    file with an object a line, in a list, or in a list under the key `data`.

    Args:
        path: The file.

    Returns:
        Dict of lists with one entry a question: `id`, `question` and `context`, strings, and
        `answers`, lists of dicts with the keys `text` and `answer_start` (in characters). The list
        is empty where `is_impossible` is true, and where the lists of the Hub are empty.
        `plausible_answers` are not read. There is no `answers` if no question of the file has any,
        as in a file of questions to predict.

    Raises:
        FileNotFoundError: If there is no such file.
        TaskFileError: If it is not JSON, a key is missing, a context or question is empty, an
            answer is not in its context at `answer_start`, an id is used twice, a question has
            no answers and is not impossible, or some questions have the key `answers` and others
            do not. The message has the JSON path, such as `data[3].paragraphs[0].qas[2].question`.

    Example:

    >>> import json, pathlib, tempfile
    >>> from keras_xlnet.task_files import read_squad
    >>> question = {"id": "1", "question": "Who rose?", "is_impossible": False,
    ...     "answers": [{"text": "The sun", "answer_start": 0}]}
    >>> paragraph = {"context": "The sun rose at six.", "qas": [question]}
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.json"
    >>> _ = path.write_text(json.dumps({"data": [{"title": "Sun", "paragraphs": [paragraph]}]}))
    >>> read_squad(path)["answers"]
    [[{'text': 'The sun', 'answer_start': 0}]]

    Source: Rajpurkar et al. 2016, "SQuAD: 100,000+ questions for machine comprehension of text";
    Rajpurkar et al. 2018, "Know what you don't know: unanswerable questions for SQuAD".
    """
    path = existing_file("path", path)
    questions = list(_questions(path, read_text(path)))
    has_answers = any(isinstance(node, dict) and "answers" in node for _, node, _ in questions)
    columns: dict[str, list[Any]] = {"id": [], "question": [], "context": [], "answers": []}
    places: dict[str, str] = {}
    for place, node, context in questions:
        identity = text_member(path, node, place, "id")
        if identity in places:
            received = f"{shown(identity)}, which is the id of {places[identity]}"
            raise file_error(path, joined(place, "id"), "be unique", received)
        places[identity] = place
        columns["id"].append(identity)
        columns["question"].append(text_member(path, node, place, "question"))
        columns["context"].append(context)
        if has_answers:
            columns["answers"].append(_answers(path, node, place, context))
    check_has_rows(path, places)
    if not has_answers:
        del columns["answers"]
    return columns


def _questions(path: pathlib.Path, text: str) -> Iterator[tuple[str, Any, str]]:
    """Yields (JSON path, question, context)."""
    lines = without_last_blanks(lines_of(text))
    if lines and _is_row(lines[0]):
        rows = [(f"line {n}", parse_json(path, line, n)) for n, line in enumerate(lines, 1)]
    else:
        root = parse_json(path, text)
        is_list = isinstance(root, list) and root
        rows = (
            [(f"[{i}]", node) for i, node in enumerate(root)]
            if is_list
            else _members(path, root, "", "data")
        )
    for place, node in rows:
        if isinstance(node, dict) and "question" in node:
            yield place, node, text_member(path, node, place, "context")
            continue
        for paragraph_place, paragraph in _members(path, node, place, "paragraphs"):
            context = text_member(path, paragraph, paragraph_place, "context")
            for question_place, question in _members(path, paragraph, paragraph_place, "qas"):
                yield question_place, question, context


def _is_row(line):
    """Whether a line is a row of the Hub, and not the whole file of the authors."""
    try:
        node = json.loads(line)
    except (RecursionError, ValueError):
        return False
    return isinstance(node, dict) and "question" in node


def _members(path, node, place, key):
    values = member(path, node, place, key, list)
    return [(f"{joined(place, key)}[{i}]", value) for i, value in enumerate(values)]


def _answers(path, question, place, context):
    # SQuAD 1.1 does not have the key.
    is_impossible = "is_impossible" in question and member(
        path, question, place, "is_impossible", bool
    )
    key = joined(place, "answers")
    of_hub = isinstance(question.get("answers"), dict)
    nodes = (_of_hub if of_hub else _members)(path, question, place, "answers")
    answers = [_answer(path, node, answer_place, context) for answer_place, node in nodes]
    if is_impossible and answers:
        must = "be empty where is_impossible is true"
        raise file_error(path, key, must, shown(answers))
    # To read a file whose answers were removed as one of unanswerable questions would be wrong. On
    # the Hub empty lists are all that says that a question has no answer.
    if not is_impossible and not answers and not of_hub:
        must = "have an answer where is_impossible is not true"
        raise file_error(path, key, must, "[]")
    return answers


def _of_hub(path, question, place, key):
    place, columns = joined(place, key), question[key]
    texts, starts = (member(path, columns, place, k, list) for k in ("text", "answer_start"))
    if len(texts) != len(starts):
        must = "have as many texts as answer_starts"
        raise file_error(path, place, must, f"{len(texts)} and {len(starts)}")
    return [
        (f"{place}[{i}]", {"text": text, "answer_start": start})
        for i, (text, start) in enumerate(zip(texts, starts, strict=True))
    ]


def _answer(path, node, place, context):
    text = text_member(path, node, place, "text")
    start = member(path, node, place, "answer_start", int)
    there = context[start : start + len(text)] if start >= 0 else ""
    if there != text:
        must = f"be in the context at answer_start={start}"
        received = f"{shown(text)}, where the context has {shown(there)}"
        raise file_error(path, place, must, received)
    return {"text": text, "answer_start": start}
