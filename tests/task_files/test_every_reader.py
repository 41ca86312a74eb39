"""What holds for all readers: forms of paths, missing files, byte order marks, what is exported."""

import functools
import json
import os

import pytest

from keras_xlnet import task_files

MCTEST = "\t".join(["id", "", "story", *["one: q", "a", "b", "c", "d"] * 4]) + "\n"
SQUAD = {
    "context": "a",
    "qas": [{"id": "1", "question": "q", "answers": [{"text": "a", "answer_start": 0}]}],
}
RACE = {"id": "1", "article": "a", "questions": ["q"], "options": [["a", "b"]], "answers": ["A"]}
# Function, name of the path, and files; the path of a folder is "".
READERS = {
    "table": (
        functools.partial(task_files.read_table, columns={"text": 0}, has_header=False),
        "a.tsv",
        {"a.tsv": "a\tb\nc\td\n"},
    ),
    "csv": (
        functools.partial(task_files.read_table, columns={"text": "a"}),
        "a.csv",
        {"a.csv": 'a,b\n"c",d\n'},
    ),
    "jsonl": (
        functools.partial(task_files.read_json_lines, columns={"text": "a"}),
        "a.jsonl",
        {"a.jsonl": '{"a": "b"}\n'},
    ),
    "squad": (
        task_files.read_squad,
        "a.json",
        {"a.json": json.dumps({"data": [{"paragraphs": [SQUAD]}]}) + "\n"},
    ),
    "conll": (task_files.read_conll, "a.conll", {"a.conll": "a\tO\n\nb\tO\n"}),
    "race": (task_files.read_race, "a.jsonl", {"a.jsonl": json.dumps(RACE) + "\n"}),
    "mctest": (task_files.read_mctest, "a.tsv", {"a.tsv": MCTEST, "a.ans": "A\tB\tC\tD\n"}),
    "wikiqa": (
        task_files.read_wikiqa,
        "",
        {"a.toks": "a\n", "b.toks": "b\n", "sim.txt": "1\n", "id.txt": "1\n"},
    ),
    "cranfield": (
        task_files.read_cranfield,
        "",
        {
            "cran.all.1400": ".I 1\n.T\na\n.W\nb\n",
            "cran.qry": ".I 2\n.W\na\n",
            "QRelsCorrectedforTRECeval": "1 0 1 4\n",
        },
    ),
}


class Path(os.PathLike):
    """A path that is no `pathlib.Path`."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return str(self.path)


def write(folder, files, change=lambda content: content):
    for name, content in files.items():
        (folder / name).write_bytes(change(content).encode())


@pytest.mark.parametrize("reader", READERS)
def test_paths_and_line_ends(tmp_path, reader):
    read, name, files = READERS[reader]
    path = tmp_path / name
    write(tmp_path, files)
    expected = read(path)
    assert read(str(path)) == expected
    assert read(Path(path)) == expected
    for change in (
        lambda content: content.replace("\n", "\r\n"),
        lambda content: "\ufeff" + content,
        lambda content: content.removesuffix("\n"),
    ):
        write(tmp_path, files, change)
        assert read(path) == expected


@pytest.mark.parametrize("reader", READERS)
def test_missing_files_name_the_argument(tmp_path, reader):
    read, _, _ = READERS[reader]
    argument = {"race": "paths", "wikiqa": "folder", "cranfield": "folder"}.get(reader, "path")
    with pytest.raises(FileNotFoundError) as info:
        read(tmp_path / "none")
    kind = "folder" if argument == "folder" else "file"
    received = repr(str(tmp_path / "none"))
    assert str(info.value) == f"`{argument}` must be a {kind}. Received: {received}"


def test_every_reader_is_tested_here():
    tested = {getattr(read, "func", read).__name__ for read, _, _ in READERS.values()}
    assert tested == {name for name in task_files.__all__ if name.startswith("read_")}


@pytest.mark.parametrize("name", task_files.__all__)
def test_functions_are_documented(name):
    doc = getattr(task_files, name).__doc__
    assert "Example:" in doc or name == "Cranfield"
    if name.startswith("read_"):
        assert all(f"\n    {part}" in doc for part in ("Args:", "Returns:", "Raises:", "Source:"))
