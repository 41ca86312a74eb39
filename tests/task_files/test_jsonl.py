"""JSON lines: exact values, every error, and the real files where they are."""

import pathlib

import pytest

from keras_xlnet.task_files import TaskFileError, read_json_lines

IMDB = pathlib.Path(__file__).parents[3] / "shared" / "data" / "tasks" / "imdb"
COLUMNS = {"text": "review", "label": "stars"}


def write(tmp_path, *lines, end="\n"):
    path = tmp_path / "a.jsonl"
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


def test_values_keep_their_types(tmp_path):
    path = write(
        tmp_path,
        '{"review": " A\\nfine film.\\u2028", "stars": 5, "score": 0.5, "new": true, "n": 1}',
        '{"review": "Dull.", "stars": 1, "score": 1.0, "new": false, "id": "x"}',
    )
    columns = {**COLUMNS, "score": "score", "new": "new"}
    rows = read_json_lines(path, columns)
    assert rows == {
        "text": [" A\nfine film.\u2028", "Dull."],
        "label": [5, 1],
        "score": [0.5, 1.0],
        "new": [True, False],
    }
    assert list(map(type, rows["label"])) == [int, int]
    assert list(rows) == list(columns)


def test_lines_end_at_newlines_only(tmp_path):
    # JSON may have U+2028 and U+0085 inside of strings as they are.
    path = write(tmp_path, '{"review": "a\u2028b\x85c", "stars": 1}', "", end="\r\n")
    assert read_json_lines(path, COLUMNS) == {"text": ["a\u2028b\x85c"], "label": [1]}


def test_numbers_and_integers(tmp_path):
    path = write(tmp_path, '{"review": "a", "stars": 5}', '{"review": "b", "stars": 2.5}')
    assert read_json_lines(path, COLUMNS, numeric=["label"])["label"] == [5.0, 2.5]
    path = write(tmp_path, '{"review": "a", "stars": "5"}', '{"review": "b", "stars": 2}')
    assert read_json_lines(path, COLUMNS, integer=["label"])["label"] == [5, 2]


def test_empty_texts_that_are_allowed(tmp_path):
    path = write(tmp_path, '{"review": "", "stars": 5}')
    assert read_json_lines(path, COLUMNS, allow_empty=["text"])["text"] == [""]


GOOD = '{"review": "a", "stars": 1}'


@pytest.mark.parametrize(
    "lines, arguments, message",
    [
        ([], {}, "{path}: must have at least one row. Received: none"),
        (
            [GOOD, '{"review": "a" "stars": 1}'],
            {},
            "{path}, line 2: must be JSON. Received: Expecting ',' delimiter at character 16",
        ),
        (
            [GOOD, "", GOOD],
            {},
            "{path}, line 2: must be JSON. Received: Expecting value at character 1",
        ),
        ([GOOD, "[1]"], {}, "{path}, line 2: must be a JSON object. Received: [1]"),
        (
            [GOOD, '{"review": "a"}'],
            {},
            "{path}, line 2, column 'stars': must be there. Received: the keys ['review']",
        ),
        (
            [GOOD, '{"review": " ", "stars": 1}'],
            {},
            "{path}, line 2, column 'review': must not be empty. Received: ' '",
        ),
        (
            [GOOD, '{"review": null, "stars": 1}'],
            {},
            "{path}, line 2, column 'review': must be a string, a number or a bool. Received: None",
        ),
        (
            [GOOD, '{"review": "a", "stars": [1]}'],
            {},
            "{path}, line 2, column 'stars': must be a string, a number or a bool. Received: [1]",
        ),
        (
            [GOOD, '{"review": "a", "stars": "1"}'],
            {},
            "{path}, line 2, column 'stars': must have the type of line 1, int. Received: '1'",
        ),
        (
            [GOOD, '{"review": "a", "stars": true}'],
            {},
            "{path}, line 2, column 'stars': must have the type of line 1, int. Received: True",
        ),
        (
            [GOOD, '{"review": "a", "stars": NaN}'],
            {"numeric": ["label"]},
            "{path}, line 2, column 'stars': must be a finite number. Received: nan",
        ),
        (
            [GOOD, '{"review": "a", "stars": 1.5}'],
            {"integer": ["label"]},
            "{path}, line 2, column 'stars': must be an integer. Received: 1.5",
        ),
        (
            [GOOD, '{"review": "a", "stars": 2}'],
            {"class_names": [0, 1]},
            "{path}, line 2, column 'stars': must be in class_names=[0, 1]. Received: 2",
        ),
        (
            ['{"review": "a", "stars": 2}'],
            {"class_names": ["b"], "labels": "text"},
            "{path}, line 1, column 'review': must be in class_names=['b']. Received: 'a'",
        ),
    ],
)
def test_wrong_files(tmp_path, lines, arguments, message):
    path = write(tmp_path, *lines)
    with pytest.raises(TaskFileError) as info:
        read_json_lines(path, COLUMNS, **arguments)
    assert str(info.value) == message.replace("{path}", str(path))


def test_wrong_columns(tmp_path):
    with pytest.raises(ValueError) as info:
        read_json_lines(write(tmp_path, GOOD), {"text": 0})
    assert str(info.value) == "`columns` must have keys of objects. Received: 0"


@pytest.mark.skipif(not IMDB.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize("split", ["train", "test"])
def test_real_files(split):
    columns = {"text": "text", "label": "label"}
    rows = read_json_lines(IMDB / f"{split}.jsonl", columns, class_names=[0, 1])
    assert len(rows["text"]) == len(rows["label"]) == 5000
    assert sum(rows["label"]) == 2500
