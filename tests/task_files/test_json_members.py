"""Members of JSON, and the places that errors name."""

import pathlib

import pytest

from keras_xlnet.task_files import TaskFileError
from keras_xlnet.task_files.json_members import joined, member, parse_json, text_member

PATH = pathlib.Path("a.json")


@pytest.mark.parametrize(
    "text, line, message",
    [
        (
            '{"a": 1,\n"b" 2}',
            None,
            "a.json, line 2: must be JSON. Received: Expecting ':' delimiter at character 5",
        ),
        ("x", 7, "a.json, line 7: must be JSON. Received: Expecting value at character 1"),
        ("", None, "a.json, line 1: must be JSON. Received: Expecting value at character 1"),
    ],
)
def test_what_is_not_json(text, line, message):
    with pytest.raises(TaskFileError) as info:
        parse_json(PATH, text, line)
    assert str(info.value) == message


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000], ids=["nested", "digits"])
def test_json_that_python_does_not_parse(text):
    with pytest.raises(TaskFileError, match=r"^a\.json, line 4: must be JSON\. Received: .+$"):
        parse_json(PATH, text, 4)


@pytest.mark.parametrize(
    "node, place, key, kind, message",
    [
        ([1], "", "data", list, "a.json: must be a JSON object. Received: [1]"),
        ("x", "data[0]", "qas", list, "a.json, data[0]: must be a JSON object. Received: 'x'"),
        ({"a": 1}, "", "data", list, "a.json, data: must be there. Received: the keys ['a']"),
        ({"qas": 1}, "data[0]", "qas", list, "a.json, data[0].qas: must be a list. Received: 1"),
        ({"id": 1}, "line 3", "id", str, "a.json, line 3, id: must be a string. Received: 1"),
        ({"n": True}, "", "n", int, "a.json, n: must be an integer. Received: True"),
        ({"n": 1.0}, "", "n", int, "a.json, n: must be an integer. Received: 1.0"),
        ({"n": 1}, "", "n", bool, "a.json, n: must be a bool. Received: 1"),
        ({"n": None}, "", "n", dict, "a.json, n: must be an object. Received: None"),
    ],
)
def test_wrong_members(node, place, key, kind, message):
    with pytest.raises(TaskFileError) as info:
        member(PATH, node, place, key, kind)
    assert str(info.value) == message


def test_members():
    assert member(PATH, {"n": 3}, "", "n", int) == 3
    assert member(PATH, {"n": False}, "", "n", bool) is False
    assert text_member(PATH, {"text": " a "}, "", "text") == " a "


def test_empty_texts():
    with pytest.raises(TaskFileError) as info:
        text_member(PATH, {"text": " \n"}, "data[0]", "text")
    assert str(info.value) == r"a.json, data[0].text: must not be empty. Received: ' \n'"


@pytest.mark.parametrize(
    "place, path",
    [
        ("", "id"),
        ("data[2]", "data[2].id"),
        ("line 4", "line 4, id"),
        ("line 4, a", "line 4, a.id"),
    ],
)
def test_paths(place, path):
    assert joined(place, "id") == path
