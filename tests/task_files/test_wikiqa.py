"""WikiQA: exact values, every error, and the real files where they are."""

import pathlib

import pytest

from keras_xlnet.task_files import TaskFileError, read_wikiqa

WIKIQA = pathlib.Path(__file__).parents[3] / "shared" / "data" / "tasks" / "wikiqa"
FILES = {
    "id.txt": ["12", "12", "3"],
    "a.toks": ["when ?", "when ?", "who\u2028 was it ?"],
    "b.toks": ["at six .", " it `` rose '' . ", "it was red ."],
    "sim.txt": ["1", "0", "0"],
}


def write(folder, changes=None, end="\n"):
    for name, lines in {**FILES, **(changes or {})}.items():
        (folder / name).write_bytes("".join(line + end for line in lines).encode())
    return folder


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_pairs(tmp_path, end):
    assert read_wikiqa(write(tmp_path, end=end)) == {
        "query_id": ["12", "12", "3"],
        "query": ["when ?", "when ?", "who\u2028 was it ?"],
        "document": ["at six .", " it `` rose '' . ", "it was red ."],
        "relevance": [1, 0, 0],
    }


@pytest.mark.parametrize(
    "changes, file, message",
    [
        (
            {"b.toks": ["at six ."]},
            "b.toks",
            ": must have as many lines as id.txt, 3. Received: 1",
        ),
        (
            {"sim.txt": ["1", "0", "0", "0"]},
            "sim.txt",
            ": must have as many lines as id.txt, 3. Received: 4",
        ),
        (
            {"id.txt": [*FILES["id.txt"], "4"]},
            "a.toks",
            ": must have as many lines as id.txt, 4. Received: 3",
        ),
        ({"id.txt": []}, "id.txt", ": must have at least one row. Received: none"),
        (
            {"b.toks": ["a", "", "b"]},
            "b.toks",
            ", line 2: must not be empty. Received: ''",
        ),
        ({"sim.txt": ["1", "2", "0"]}, "sim.txt", ", line 2: must be 0 or 1. Received: '2'"),
        ({"sim.txt": ["1", "0", "0.0"]}, "sim.txt", ", line 3: must be 0 or 1. Received: '0.0'"),
        (
            # The queries are one line ahead of their ids.
            {"a.toks": ["when ?", "who ?", "what ?"]},
            "a.toks",
            ", line 2: must be the query of id 12, 'when ?'. Received: 'who ?'",
        ),
    ],
)
def test_wrong_files(tmp_path, changes, file, message):
    write(tmp_path, changes)
    with pytest.raises(TaskFileError) as info:
        read_wikiqa(tmp_path)
    assert str(info.value) == f"{tmp_path / file}{message}"


@pytest.mark.parametrize("file", FILES)
def test_missing_files(tmp_path, file):
    (write(tmp_path) / file).unlink()
    with pytest.raises(FileNotFoundError) as info:
        read_wikiqa(tmp_path)
    assert str(info.value) == f"`folder` must have the file {file!r}. Received: {str(tmp_path)!r}"


@pytest.mark.skipif(not WIKIQA.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize(
    "split, pairs, queries", [("train", 8672, 873), ("dev", 1130, 126), ("test", 2351, 243)]
)
def test_real_files(split, pairs, queries):
    rows = read_wikiqa(WIKIQA / split)
    assert {name: len(column) for name, column in rows.items()} == dict.fromkeys(rows, pairs)
    assert len(set(rows["query_id"])) == queries
    assert set(rows["relevance"]) == {0, 1}
    changes = sum(a != b for a, b in zip(rows["query_id"], rows["query_id"][1:], strict=False))
    assert changes == queries - 1, "the rows of a query stand together"
