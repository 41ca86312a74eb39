"""SQuAD: exact values, every error, and the real files where they are."""

import copy
import json
import pathlib

import pytest

from keras_xlnet.task_files import TaskFileError, read_squad

SQUAD = pathlib.Path(__file__).parents[3] / "shared" / "data" / "squad"
CONTEXT = " The sun rose at six. It was red 🌞 and warm.\n"
RED = {"text": "red", "answer_start": 29}
WARM = {"text": "warm", "answer_start": 39}
FILE = {
    "version": "v2.0",
    "data": [
        {
            "title": "Sun",
            "paragraphs": [
                {
                    "context": CONTEXT,
                    "qas": [
                        {"id": "a", "question": " How was it? ", "answers": [RED, WARM]},
                        {
                            "id": "b",
                            "question": "When did it set?",
                            "answers": [],
                            "plausible_answers": [{"text": "six", "answer_start": 17}],
                            "is_impossible": True,
                        },
                    ],
                }
            ],
        },
        {
            "title": "Moon",
            "paragraphs": [
                {"context": "No moon.", "qas": []},
                {
                    "context": "A moon.",
                    "qas": [
                        {
                            "id": "c",
                            "question": "What?",
                            "answers": [{"text": "A moon", "answer_start": 0}],
                            "is_impossible": False,
                        }
                    ],
                },
            ],
        },
    ],
}


def write(tmp_path, content):
    path = tmp_path / "dev.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def test_questions(tmp_path):
    assert read_squad(write(tmp_path, FILE)) == {
        "id": ["a", "b", "c"],
        "question": [" How was it? ", "When did it set?", "What?"],
        "context": [CONTEXT, CONTEXT, "A moon."],
        # In characters: the sun is one, though not in UTF-16.
        "answers": [[RED, WARM], [], [{"text": "A moon", "answer_start": 0}]],
    }


REMOVED = object()
FIRST = ("data", 0, "paragraphs", 0)
QUESTION = (*FIRST, "qas", 0)
ANSWER = (*QUESTION, "answers", 1)


def changed(keys, value):
    """A copy of `FILE` with another value in one place."""
    content = copy.deepcopy(FILE)
    node = content
    for key in keys[:-1]:
        node = node[key]
    if value is REMOVED:
        del node[keys[-1]]
    else:
        node[keys[-1]] = value
    return content


@pytest.mark.parametrize(
    "keys, value, message",
    [
        (("data",), REMOVED, "data: must be there. Received: the keys ['version']"),
        (("data",), {}, "data: must be a list. Received: {}"),
        (("data", 0), "Sun", "data[0]: must be a JSON object. Received: 'Sun'"),
        (
            ("data", 1, "paragraphs"),
            REMOVED,
            "data[1].paragraphs: must be there. Received: the keys ['title']",
        ),
        (
            (*FIRST, "context"),
            REMOVED,
            "data[0].paragraphs[0].context: must be there. Received: the keys ['qas']",
        ),
        (
            (*FIRST, "context"),
            " ",
            "data[0].paragraphs[0].context: must not be empty. Received: ' '",
        ),
        (
            (*QUESTION, "question"),
            REMOVED,
            "data[0].paragraphs[0].qas[0].question: must be there. "
            "Received: the keys ['id', 'answers']",
        ),
        (
            (*QUESTION, "question"),
            "",
            "data[0].paragraphs[0].qas[0].question: must not be empty. Received: ''",
        ),
        (
            (*QUESTION, "id"),
            5,
            "data[0].paragraphs[0].qas[0].id: must be a string. Received: 5",
        ),
        (
            (*QUESTION, "answers"),
            REMOVED,
            "data[0].paragraphs[0].qas[0].answers: must be there. "
            "Received: the keys ['id', 'question']",
        ),
        (
            (*QUESTION, "answers"),
            [],
            "data[0].paragraphs[0].qas[0].answers: "
            "must have an answer where is_impossible is not true. Received: []",
        ),
        (
            (*FIRST, "qas", 1, "answers"),
            [RED],
            "data[0].paragraphs[0].qas[1].answers: must be empty where is_impossible is true. "
            "Received: [{'text': 'red', 'answer_start': 29}]",
        ),
        (
            (*FIRST, "qas", 1, "is_impossible"),
            1,
            "data[0].paragraphs[0].qas[1].is_impossible: must be a bool. Received: 1",
        ),
        (
            (*ANSWER, "answer_start"),
            40,
            "data[0].paragraphs[0].qas[0].answers[1]: must be in the context at answer_start=40. "
            "Received: 'warm', where the context has 'arm.'",
        ),
        (
            (*ANSWER, "answer_start"),
            -1,
            "data[0].paragraphs[0].qas[0].answers[1]: must be in the context at answer_start=-1. "
            "Received: 'warm', where the context has ''",
        ),
        (
            # From the end, where Python would find it.
            ("data", 1, "paragraphs", 1, "qas", 0, "answers", 0, "answer_start"),
            -7,
            "data[1].paragraphs[1].qas[0].answers[0]: must be in the context at answer_start=-7. "
            "Received: 'A moon', where the context has ''",
        ),
        (
            (*ANSWER, "answer_start"),
            "39",
            "data[0].paragraphs[0].qas[0].answers[1].answer_start: must be an integer. "
            "Received: '39'",
        ),
        (
            (*ANSWER, "text"),
            "Warm",
            "data[0].paragraphs[0].qas[0].answers[1]: must be in the context at answer_start=39. "
            "Received: 'Warm', where the context has 'warm'",
        ),
        (
            (*ANSWER, "text"),
            "",
            "data[0].paragraphs[0].qas[0].answers[1].text: must not be empty. Received: ''",
        ),
        (
            ("data", 1, "paragraphs", 1, "qas", 0, "id"),
            "b",
            "data[1].paragraphs[1].qas[0].id: must be unique. "
            "Received: 'b', which is the id of data[0].paragraphs[0].qas[1]",
        ),
    ],
)
def test_wrong_files(tmp_path, keys, value, message):
    path = write(tmp_path, changed(keys, value))
    with pytest.raises(TaskFileError) as info:
        read_squad(path)
    assert str(info.value) == f"{path}, {message}"


@pytest.mark.parametrize(
    "content, message",
    [
        ('{"data": [\n}', ", line 2: must be JSON. Received: Expecting value at character 1"),
        ("[]", ": must be a JSON object. Received: []"),
        ('{"data": []}', ": must have at least one row. Received: none"),
    ],
)
def test_what_is_no_squad_file(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(TaskFileError) as info:
        read_squad(path)
    assert str(info.value) == f"{path}{message}"


def as_hub(rows):
    """The rows of the Hugging Face Hub for what `read_squad` returns."""
    names = [name for name in rows if name != "answers"]
    for i, identity in enumerate(rows["id"]):
        row = {"title": identity, **{name: rows[name][i] for name in names}}
        if "answers" in rows:
            keys = ("text", "answer_start")
            row["answers"] = {key: [answer[key] for answer in rows["answers"][i]] for key in keys}
        yield row


HUB_FILES = {
    "lines": lambda rows: "".join(json.dumps(row) + "\n" for row in rows) + "\n",
    "one line": lambda rows: "\r\n".join(map(json.dumps, rows)),
    "list": lambda rows: json.dumps(rows, indent=1),
    "list under data": lambda rows: json.dumps({"version": 1, "data": rows}),
}


@pytest.mark.parametrize("form", HUB_FILES)
def test_rows_of_the_hub(tmp_path, form):
    expected = read_squad(write(tmp_path, FILE))
    rows = list(as_hub(expected))
    assert rows[1]["answers"] == {"text": [], "answer_start": []}
    assert read_squad(write(tmp_path, HUB_FILES[form](rows))) == expected
    first = {name: column[:1] for name, column in expected.items()}
    assert read_squad(write(tmp_path, HUB_FILES[form](rows[:1]))) == first


def without_answers(node):
    if isinstance(node, list):
        return [without_answers(child) for child in node]
    if isinstance(node, dict):
        return {
            k: without_answers(v) for k, v in node.items() if k not in ("answers", "is_impossible")
        }
    return node


def test_questions_without_answers_have_no_column_of_answers(tmp_path):
    # An empty list would say that the questions have no answer.
    expected = read_squad(write(tmp_path, FILE))
    rows = list(as_hub(expected))
    del expected["answers"]
    assert read_squad(write(tmp_path, without_answers(FILE))) == expected
    for form in HUB_FILES.values():
        assert read_squad(write(tmp_path, form(without_answers(rows)))) == expected


@pytest.mark.parametrize(
    "key, value, message",
    [
        (
            "answers",
            REMOVED,
            "line 1, answers: must be there. "
            "Received: the keys ['title', 'id', 'question', 'context']",
        ),
        (
            "answers",
            {"text": ["red"], "answer_start": []},
            "line 1, answers: must have as many texts as answer_starts. Received: 1 and 0",
        ),
        (
            "answers",
            {"text": ["red"], "answer_start": [1]},
            "line 1, answers[0]: must be in the context at answer_start=1. "
            "Received: 'red', where the context has 'The'",
        ),
        ("answers", {"text": "red"}, "line 1, answers.text: must be a list. Received: 'red'"),
        ("context", "", "line 1, context: must not be empty. Received: ''"),
        ("id", "b", "line 2, id: must be unique. Received: 'b', which is the id of line 1"),
    ],
)
def test_wrong_rows_of_the_hub(tmp_path, key, value, message):
    rows = list(as_hub(read_squad(write(tmp_path, FILE))))
    if value is REMOVED:
        del rows[0][key]
    else:
        rows[0][key] = value
    path = write(tmp_path, HUB_FILES["lines"](rows))
    with pytest.raises(TaskFileError) as info:
        read_squad(path)
    assert str(info.value) == f"{path}, {message}"


@pytest.mark.skipif(not SQUAD.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize(
    "file, count, unanswerable",
    [("dev-v2.0-half.json", 6078, 3168), ("dev-v1.1-articles.json", 7532, 0)],
)
def test_real_files(file, count, unanswerable):
    rows = read_squad(SQUAD / file)
    assert {name: len(column) for name, column in rows.items()} == dict.fromkeys(rows, count)
    assert sum(not answers for answers in rows["answers"]) == unanswerable
