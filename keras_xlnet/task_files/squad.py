"""Questions, contexts and answers in the format of SQuAD."""

import pathlib
from collections.abc import Iterator
from typing import Any

from keras_xlnet.task_files.json_members import joined, member, parse_json, text_member
from keras_xlnet.task_files.reporting import (
    check_has_rows,
    existing_file,
    file_error,
    read_text,
    shown,
)
from keras_xlnet.types import PathLike


def read_squad(path: PathLike, has_answers: bool = True) -> dict[str, list[Any]]:
    """Reads the questions of SQuAD 1.1 or 2.0.

    Args:
        path: The file. Answers are a list, or a dict of lists as on the Hugging Face Hub.
        has_answers: Bool, whether the questions have answers. `False` reads the questions of a
            file without answers, or without all of them.

    Returns:
        Dict of lists with an entry for each question: `id`, `question` and `context`, strings, and
        with answers `answers`, lists of dicts with the keys `text` and `answer_start` (in
        characters). The list is empty where `is_impossible` is true. `plausible_answers` are not
        read.

    Raises:
        FileNotFoundError: If there is no such file.
        TaskFileError: If it is not JSON, a key is missing, a context or question is empty, an
            answer is not in its context at `answer_start`, an id is there twice, or a question has
            no answers and is not impossible. The message has the JSON path, such as
            `data[3].paragraphs[0].qas[2].question`.

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
    root = parse_json(path, read_text(path))
    columns: dict[str, list[Any]] = {"id": [], "question": [], "context": []}
    columns |= {"answers": []} if has_answers else {}
    places: dict[str, str] = {}
    for place, node, context in _questions(path, root):
        identity = text_member(path, node, place, "id")
        if identity in places:
            received = f"{shown(identity)}, which is that of {places[identity]}"
            raise file_error(path, f"{place}.id", "be there once", received)
        places[identity] = place
        columns["id"].append(identity)
        columns["question"].append(text_member(path, node, place, "question"))
        columns["context"].append(context)
        if has_answers:
            columns["answers"].append(_answers(path, node, place, context))
    check_has_rows(path, places)
    return columns


def _questions(path: pathlib.Path, root: Any) -> Iterator[tuple[str, Any, str]]:
    """Yields (JSON path, question, context)."""
    for article_place, article in _members(path, root, "", "data"):
        for paragraph_place, paragraph in _members(path, article, article_place, "paragraphs"):
            context = text_member(path, paragraph, paragraph_place, "context")
            for place, question in _members(path, paragraph, paragraph_place, "qas"):
                yield place, question, context


def _members(path, node, place, key):
    values = member(path, node, place, key, list)
    return [(f"{joined(place, key)}[{i}]", value) for i, value in enumerate(values)]


def _answers(path, question, place, context):
    # SQuAD 1.1 does not have the key.
    is_impossible = "is_impossible" in question and member(
        path, question, place, "is_impossible", bool
    )
    answers = [
        _answer(path, node, answer_place, context)
        for answer_place, node in _answer_members(path, question, place)
    ]
    if is_impossible and answers:
        must = "be empty where is_impossible is true"
        raise file_error(path, f"{place}.answers", must, shown(answers))
    # To read a file whose answers were removed as one of unanswerable questions would be wrong.
    if not is_impossible and not answers:
        must = (
            "have an answer where is_impossible is not true (`has_answers=False` reads a file of "
            "questions alone)"
        )
        raise file_error(path, f"{place}.answers", must, "[]")
    return answers


def _answer_members(path, question, place):
    """Yields (JSON path, answer): of a list, or of a dict of lists as on the Hugging Face Hub."""
    answers = question.get("answers") if isinstance(question, dict) else None
    if not isinstance(answers, dict):
        return _members(path, question, place, "answers")
    texts, starts = (
        member(path, answers, f"{place}.answers", key, list) for key in ("text", "answer_start")
    )
    if len(texts) != len(starts):
        received = f"{len(texts)} texts and {len(starts)} starts"
        raise file_error(path, f"{place}.answers", "have lists of equal lengths", received)
    pairs = enumerate(zip(texts, starts, strict=True))
    return [
        (f"{place}.answers[{i}]", {"text": text, "answer_start": start})
        for i, (text, start) in pairs
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
