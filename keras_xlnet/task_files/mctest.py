"""Multiple choice questions in the format of MCTest."""

import re
from typing import Any

from keras_xlnet.task_files.reporting import (
    check_has_rows,
    existing_file,
    file_error,
    in_cell,
    lines_of,
    read_text,
    shown,
)
from keras_xlnet.types import PathLike

_LETTERS = "ABCD"
_NUM_QUESTIONS = 4
_FIRST_QUESTION = 3
# A question and its options.
_QUESTION_COLUMNS = 1 + len(_LETTERS)
_NUM_COLUMNS = _FIRST_QUESTION + _NUM_QUESTIONS * _QUESTION_COLUMNS
_QUESTION = re.compile(r"(one|multiple): (.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(newline|tab)")
_UNESCAPED = {"newline": "\n", "tab": "\t"}


def read_mctest(path: PathLike) -> dict[str, list[Any]]:
    """Reads questions of MCTest: a `.tsv` file, and the `.ans` file of the same name next to it.

    Args:
        path: The `.tsv` file. The answers of the test sets come in an archive of their own.

    Returns:
        Dict of lists with one entry a question: `id` (of the story, which has four questions),
        `text` (the story, with newlines and tabs for `\\newline` and `\\tab`) and `question`,
        strings; `choices`, lists of four strings; `label`, int, the index of the right choice;
        `kind`, `"one"` or `"multiple"`: how many sentences of the story the answer needs, which
        the file has before the question.

    Raises:
        FileNotFoundError: If one of the two files is missing.
        TaskFileError: If the files have different numbers of lines, a line has not the right number
            of columns, a text is empty, or a question or answer has another form. The message names
            line and column.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.task_files import read_mctest
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "mc160.dev.tsv"
    >>> question = ["one: When did it rise?", "At five.", "At six.", "At seven.", "At eight."]
    >>> story = ["mc160.dev.0", "Author: 1", "The sun rose\\\\newlineat six.", *question * 4]
    >>> _ = path.write_text("\\t".join(story) + "\\n")
    >>> _ = path.with_suffix(".ans").write_text("B\\tB\\tB\\tB\\n")
    >>> mctest = read_mctest(path)
    >>> mctest["text"][0], mctest["question"][0], mctest["label"][0], mctest["kind"][0]
    ('The sun rose\\nat six.', 'When did it rise?', 1, 'one')

    Source: Richardson et al. 2013, "MCTest: a challenge dataset for the open-domain machine
    comprehension of text", and the README.txt of its archive.
    """
    path = existing_file("path", path)
    answers_path = path.with_suffix(".ans")
    if not answers_path.is_file() or path == answers_path:
        raise FileNotFoundError(
            f"`path` must be a .tsv file with {answers_path.name!r} next to it. Received: "
            f"{str(path)!r}"
        )
    stories, answers = lines_of(read_text(path)), lines_of(read_text(answers_path))
    check_has_rows(path, stories)
    if len(stories) != len(answers):
        must = f"have as many lines as {path.name}, {len(stories)}"
        raise file_error(answers_path, "", must, str(len(answers)))
    columns: dict[str, list[Any]] = {
        "id": [],
        "text": [],
        "question": [],
        "choices": [],
        "label": [],
        "kind": [],
    }
    for line, (story, answer) in enumerate(zip(stories, answers, strict=True), 1):
        fields = _fields(path, line, story, _NUM_COLUMNS)
        letters = _fields(answers_path, line, answer, _NUM_QUESTIONS)
        text = _ESCAPED.sub(lambda found: _UNESCAPED[found[1]], fields[2])
        for index, letter in enumerate(letters):
            kind, question, choices = _question(path, line, fields, index)
            columns["id"].append(_text(path, line, "id", fields[0]))
            columns["text"].append(_text(path, line, "story", text))
            columns["question"].append(question)
            columns["choices"].append(choices)
            columns["label"].append(_label(answers_path, line, index, letter))
            columns["kind"].append(kind)
    return columns


def _fields(path, line, text, count):
    fields = text.split("\t")
    if len(fields) != count:
        received = f"{len(fields)}, {shown(fields)}"
        raise file_error(path, f"line {line}", f"have {count} columns", received)
    return fields


def _question(path, line, fields, index):
    begin = _FIRST_QUESTION + index * _QUESTION_COLUMNS
    column = f"question {index + 1}"
    found = _QUESTION.fullmatch(fields[begin])
    if not found:
        must = "begin with 'one: ' or 'multiple: '"
        raise file_error(path, in_cell(line, column), must, shown(fields[begin]))
    options = fields[begin + 1 : begin + _QUESTION_COLUMNS]
    choices = [
        _text(path, line, f"option {letter} of {column}", option)
        for letter, option in zip(_LETTERS, options, strict=True)
    ]
    return found[1], _text(path, line, column, found[2]), choices


def _label(path, line, index, letter):
    if letter not in tuple(_LETTERS):
        place = in_cell(line, f"answer {index + 1}")
        raise file_error(path, place, f"be a letter of {_LETTERS}", shown(letter))
    return _LETTERS.index(letter)


def _text(path, line, column, text):
    if not text.strip():
        raise file_error(path, in_cell(line, column), "not be empty", shown(text))
    return text
