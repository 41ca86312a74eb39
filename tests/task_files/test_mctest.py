"""MCTest: exact values, every error, and the real files where they are."""

import pathlib

import pytest

from keras_xlnet.task_files import TaskFileError, read_mctest

MCTEST = pathlib.Path(__file__).parents[3] / "shared" / "data" / "tasks" / "mctest"
QUESTIONS = [
    ["one: When: at six? ", "five", "six", "ten", "two"],
    ["multiple: What rose?", "The sun", "The moon", "It", " I "],
    ["one: multiple: both?", "a", "b", "c", "d"],
    ["multiple: one: both?", "e", "f", "g", "h"],
]
STORY = [
    "mc160.dev.0",
    "Author: 1;Work Time(s): 9",
    r"\tabThe sun\newline\newlinerose. \n ",
    QUESTIONS,
]


def row(story=STORY, **changes):
    """The line of a story, with other values in some columns, by index (`c7=...`)."""
    fields = [*story[:3], *sum(story[3], [])]
    for column, value in changes.items():
        fields[int(column[1:])] = value
    return "\t".join(fields)


def write(tmp_path, stories, answers, end="\r\n"):
    path = tmp_path / "mc160.dev.tsv"
    path.write_bytes("".join(line + end for line in stories).encode())
    path.with_suffix(".ans").write_bytes("".join(line + end for line in answers).encode())
    return path


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_questions(tmp_path, end):
    path = write(tmp_path, [row(), row(c0="mc160.dev.1")], ["B\tA\tC\tD", "A\tA\tA\tA"], end)
    rows = read_mctest(path)
    assert rows == {
        "id": ["mc160.dev.0"] * 4 + ["mc160.dev.1"] * 4,
        # A backslash before anything else is an ordinary character.
        "text": ["\tThe sun\n\nrose. \\n "] * 8,
        "question": ["When: at six? ", "What rose?", "multiple: both?", "one: both?"] * 2,
        "choices": [question[1:] for question in QUESTIONS] * 2,
        "label": [1, 0, 2, 3, 0, 0, 0, 0],
        "kind": ["one", "multiple", "one", "multiple"] * 2,
    }


@pytest.mark.parametrize(
    "stories, answers, file, message",
    [
        ([], [], ".tsv", ": must have at least one row. Received: none"),
        (
            [row(), row()],
            ["A\tA\tA\tA"],
            ".ans",
            ": must have as many lines as mc160.dev.tsv, 2. Received: 1",
        ),
        (
            [row(), "a\tb"],
            ["A\tA\tA\tA"] * 2,
            ".tsv",
            ", line 2: must have 23 columns. Received: 2, ['a', 'b']",
        ),
        (
            [row()],
            ["A\tA\tA"],
            ".ans",
            ", line 1: must have 4 columns. Received: 3, ['A', 'A', 'A']",
        ),
        (
            [row()],
            ["A\tA\tE\tA"],
            ".ans",
            ", line 1, column 'answer 3': must be a letter of ABCD. Received: 'E'",
        ),
        (
            [row()],
            ["A\tA\tA\t"],
            ".ans",
            ", line 1, column 'answer 4': must be a letter of ABCD. Received: ''",
        ),
        (
            [row()],
            ["AB\tA\tA\tA"],
            ".ans",
            ", line 1, column 'answer 1': must be a letter of ABCD. Received: 'AB'",
        ),
        (
            [row(c8="What rose?")],
            ["A\tA\tA\tA"],
            ".tsv",
            ", line 1, column 'question 2': must begin with 'one: ' or 'multiple: '. "
            "Received: 'What rose?'",
        ),
        (
            [row(c8="one:What rose?")],
            ["A\tA\tA\tA"],
            ".tsv",
            ", line 1, column 'question 2': must begin with 'one: ' or 'multiple: '. "
            "Received: 'one:What rose?'",
        ),
        (
            [row(c8="one: ")],
            ["A\tA\tA\tA"],
            ".tsv",
            ", line 1, column 'question 2': must not be empty. Received: ''",
        ),
        (
            [row(c15=" ")],
            ["A\tA\tA\tA"],
            ".tsv",
            ", line 1, column 'option B of question 3': must not be empty. Received: ' '",
        ),
        (
            [row(c2=r"\newline")],
            ["A\tA\tA\tA"],
            ".tsv",
            r", line 1, column 'story': must not be empty. Received: '\n'",
        ),
        (
            [row(c0="")],
            ["A\tA\tA\tA"],
            ".tsv",
            ", line 1, column 'id': must not be empty. Received: ''",
        ),
    ],
)
def test_wrong_files(tmp_path, stories, answers, file, message):
    path = write(tmp_path, stories, answers)
    with pytest.raises(TaskFileError) as info:
        read_mctest(path)
    assert str(info.value) == f"{path.with_suffix(file)}{message}"


def test_missing_answers(tmp_path):
    path = write(tmp_path, [row()], ["A\tA\tA\tA"])
    with pytest.raises(FileNotFoundError) as info:
        read_mctest(path.with_suffix(".ans"))
    assert "`path` must be a .tsv file with 'mc160.dev.ans' next to it. " in str(info.value)
    path.with_suffix(".ans").unlink()
    with pytest.raises(FileNotFoundError) as info:
        read_mctest(path)
    assert str(info.value) == (
        f"`path` must be a .tsv file with 'mc160.dev.ans' next to it. Received: {str(path)!r}"
    )


@pytest.mark.skipif(not MCTEST.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize(
    "split, stories", [("train", (70, 300)), ("dev", (30, 50)), ("test", (60, 150))]
)
def test_real_files(split, stories):
    for name, count in zip(("mc160", "mc500"), stories, strict=True):
        rows = read_mctest(MCTEST / f"{name}.{split}.tsv")
        assert {len(column) for column in rows.values()} == {4 * count}
        assert len(set(rows["id"])) == count
        assert set(rows["label"]) == {0, 1, 2, 3}
        assert set(rows["kind"]) == {"one", "multiple"}
        assert not any("\\" in text for text in rows["text"])
