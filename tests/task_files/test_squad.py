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
            "must have an answer where is_impossible is not true (`has_answers=False` reads a "
            "file of questions alone). Received: []",
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
            "data[1].paragraphs[1].qas[0].id: must be there once. "
            "Received: 'b', which is that of data[0].paragraphs[0].qas[1]",
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


@pytest.mark.skipif(not SQUAD.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize(
    "file, count, unanswerable",
    [("dev-v2.0-half.json", 6078, 3168), ("dev-v1.1-articles.json", 7532, 0)],
)
def test_real_files(file, count, unanswerable):
    rows = read_squad(SQUAD / file)
    assert {name: len(column) for name, column in rows.items()} == dict.fromkeys(rows, count)
    assert sum(not answers for answers in rows["answers"]) == unanswerable


def test_answers_as_on_the_hub_and_files_without_answers(tmp_path):
    question = {"id": "1", "question": "Who rose?"}
    answers = {"text": ["The sun"], "answer_start": [0]}

    def read(**arguments):
        path = tmp_path / "dev.json"
        rows = [{"context": "The sun rose.", "qas": [{**question, **arguments.pop("more")}]}]
        path.write_text(json.dumps({"data": [{"paragraphs": rows}]}))
        return read_squad(path, **arguments)

    assert read(more={"answers": answers})["answers"] == [[{"text": "The sun", "answer_start": 0}]]
    assert "answers" not in read(more={}, has_answers=False)
    assert read(more={"answers": []}, has_answers=False)["question"] == ["Who rose?"]
    with pytest.raises(TaskFileError, match=r"lists of equal lengths.*1 texts and 2 starts"):
        read(more={"answers": {"text": ["The sun"], "answer_start": [0, 1]}})
