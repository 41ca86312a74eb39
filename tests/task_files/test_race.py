"""RACE: exact values, every error, and the real files where they are."""

import json
import pathlib

import pytest

from keras_xlnet.task_files import TaskFileError, read_race

RACE = pathlib.Path(__file__).parents[3] / "shared" / "data" / "tasks" / "race"
SUN = {
    "id": "middle1.txt",
    "article": " The sun rose\nat six. ",
    "questions": ["It rose at  _  .", "What rose?"],
    "options": [["five", "six", "ten", "two"], ["The moon", "The sun"]],
    "answers": ["B", "B"],
}
MOON = {
    "id": "high2.txt",
    "article": "No moon.",
    "questions": ["What?"],
    "options": [["No moon", "A moon", "Two moons"]],
    "answers": ["A"],
}
SUN_COLUMNS = {
    "id": ["middle1.txt"] * 2,
    "text": [" The sun rose\nat six. "] * 2,
    "question": ["It rose at  _  .", "What rose?"],
    "choices": [["five", "six", "ten", "two"], ["The moon", "The sun"]],
    "label": [1, 1],
}
MOON_COLUMNS = {
    "id": ["high2.txt"],
    "text": ["No moon."],
    "question": ["What?"],
    "choices": [["No moon", "A moon", "Two moons"]],
    "label": [0],
}


def both(first, second):
    return {name: first[name] + second[name] for name in first}


def write_lines(path, *articles, end="\n"):
    path.write_bytes("".join(json.dumps(article) + end for article in articles).encode())
    return path


def test_json_lines(tmp_path):
    path = write_lines(tmp_path / "dev.jsonl", SUN, MOON, end="\r\n")
    assert read_race(path) == both(SUN_COLUMNS, MOON_COLUMNS)


def test_original_files(tmp_path):
    # One object a file, on one line or several.
    (tmp_path / "1.txt").write_text(json.dumps(SUN, indent=1))
    (tmp_path / "2.txt").write_text(json.dumps(MOON))
    assert read_race(str(tmp_path / "1.txt")) == SUN_COLUMNS
    paths = [tmp_path / "2.txt", str(tmp_path / "1.txt")]
    assert read_race(paths) == both(MOON_COLUMNS, SUN_COLUMNS)


def test_folders(tmp_path):
    # RACE/dev has the folders high and middle.
    for folder, article in (("middle", SUN), ("high", MOON)):
        (tmp_path / folder).mkdir()
        write_lines(tmp_path / folder / "1.txt", article)
    write_lines(tmp_path / "dev.jsonl", SUN)
    assert read_race(tmp_path) == both(MOON_COLUMNS, SUN_COLUMNS)
    assert read_race([tmp_path / "middle", tmp_path / "dev.jsonl"]) == both(
        SUN_COLUMNS, SUN_COLUMNS
    )


def test_files_of_a_folder_are_sorted(tmp_path):
    names = [f"{number}.txt" for number in (7, 3, 9, 10, 5, 1, 8, 2, 6, 4)]
    for name in names:
        write_lines(tmp_path / name, {**MOON, "id": name})
    assert read_race(tmp_path)["id"] == sorted(names)


OPTIONS = [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"article": ""}, "article: must not be empty. Received: ''"),
        ({"id": 5}, "id: must be a string. Received: 5"),
        ({"questions": "x"}, "questions: must be a list. Received: 'x'"),
        (
            {"questions": ["x", " "]},
            "questions[1]: must be a text that is not empty. Received: ' '",
        ),
        ({"questions": ["x", 5]}, "questions[1]: must be a text that is not empty. Received: 5"),
        (
            {"options": [["a", "b"], ["c", ""]]},
            "options[1][1]: must be a text that is not empty. Received: ''",
        ),
        (
            {"options": [["a", "b"], ["c"]]},
            "options[1]: must be a list of 2 or more options. Received: ['c']",
        ),
        (
            {"options": [["a", "b"], "cd"]},
            "options[1]: must be a list of 2 or more options. Received: 'cd'",
        ),
        (
            {"answers": ["B", "C"], "options": OPTIONS},
            "answers[1]: must be a letter of AB. Received: 'C'",
        ),
        ({"answers": ["E", "B"]}, "answers[0]: must be a letter of ABCD. Received: 'E'"),
        ({"answers": ["b", "B"]}, "answers[0]: must be a letter of ABCD. Received: 'b'"),
        ({"answers": ["AB", "B"]}, "answers[0]: must be a letter of ABCD. Received: 'AB'"),
        ({"answers": ["", "B"]}, "answers[0]: must be a letter of ABCD. Received: ''"),
        ({"answers": [1, "B"]}, "answers[0]: must be a letter of ABCD. Received: 1"),
    ],
)
def test_wrong_articles(tmp_path, change, message):
    path = write_lines(tmp_path / "dev.jsonl", MOON, {**SUN, **change})
    with pytest.raises(TaskFileError) as info:
        read_race(path)
    assert str(info.value) == f"{path}, line 2, {message}"
    path = write_lines(tmp_path / "1.txt", {**SUN, **change})
    with pytest.raises(TaskFileError) as info:
        read_race(path)
    assert str(info.value) == f"{path}, {message}"


@pytest.mark.parametrize(
    "name, content, message",
    [
        (
            "a.jsonl",
            json.dumps({**SUN, "answers": ["A"]}),
            ", line 1: must have questions, options and answers of equal lengths. "
            "Received: {'questions': 2, 'options': 2, 'answers': 1}",
        ),
        ("a.jsonl", "[]", ", line 1: must be a JSON object. Received: []"),
        ("a.jsonl", '{"id": "x"}', ", line 1, article: must be there. Received: the keys ['id']"),
        ("a.jsonl", "", ": must have at least one row. Received: none"),
        ("a.jsonl", "{}{}", ", line 1: must be JSON. Received: Extra data at character 3"),
        ("a.txt", "{\n}}", ", line 2: must be JSON. Received: Extra data at character 2"),
        ("a.txt", "[]", ": must be a JSON object. Received: []"),
    ],
)
def test_wrong_files(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(TaskFileError) as info:
        read_race(path)
    assert str(info.value) == f"{path}{message}"


def test_wrong_paths(tmp_path):
    with pytest.raises(FileNotFoundError) as info:
        read_race(tmp_path / "none.txt")
    missing = str(tmp_path / "none.txt")
    assert str(info.value) == f"`paths` must be a file. Received: {missing!r}"
    write_lines(tmp_path / "dev.jsonl", SUN)
    with pytest.raises(FileNotFoundError) as info:
        read_race(tmp_path)
    assert str(info.value) == (
        "`paths` must have folders with .txt files; name .jsonl files one by one. "
        f"Received: {str(tmp_path)!r}"
    )
    with pytest.raises(ValueError) as info:
        read_race([])
    assert str(info.value) == "`paths` must be a path or a list of them. Received: []"


@pytest.mark.skipif(not RACE.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize("split, articles, questions", [("dev", 368, 1436), ("test", 362, 1436)])
def test_real_files(split, articles, questions):
    rows = read_race(RACE / f"{split}.middle.jsonl")
    assert {name: len(column) for name, column in rows.items()} == dict.fromkeys(rows, questions)
    assert len(set(rows["id"])) == articles
    assert set(map(len, rows["choices"])) == {4}
    assert set(rows["label"]) == {0, 1, 2, 3}
