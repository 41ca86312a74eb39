"""TSV and CSV files: exact values, every error, and the real files where they are."""

import csv
import pathlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_xlnet.task_files import TaskFileError, read_table

TASKS = pathlib.Path(__file__).parents[3] / "shared" / "data" / "tasks"


def write(tmp_path, content, name="a.tsv"):
    path = tmp_path / name
    path.write_bytes(content.encode())
    return path


def test_columns_by_name(tmp_path):
    path = write(tmp_path, "index\tsentence\tlabel\n0\tA fine film.\t1\n1\tDull.\t0\n")
    table = read_table(path, {"label": "label", "text": "sentence"})
    assert table == {"label": ["1", "0"], "text": ["A fine film.", "Dull."]}
    assert list(table) == ["label", "text"]


def test_columns_by_index(tmp_path):
    path = write(tmp_path, "A fine film.\t1\nDull.\t0\n")
    table = read_table(path, {"text": 0, "label": 1}, has_header=False)
    assert table == {"text": ["A fine film.", "Dull."], "label": ["1", "0"]}


def test_one_column_can_have_two_names(tmp_path):
    path = write(tmp_path, "a\n1\n2\n")
    assert read_table(path, {"x": "a", "y": "a"}, numeric=["y"]) == {
        "x": ["1", "2"],
        "y": [1.0, 2.0],
    }


def test_quotation_marks_and_spaces_of_tsv_stay(tmp_path):
    # As in the files of GLUE, where they are not always in pairs.
    texts = ['"Yes', 'He said "no".', '""', " both  ends ", "a,b", "back\\slash", "'"]
    path = write(tmp_path, "text\tlabel\n" + "".join(f"{text}\t1\n" for text in texts))
    assert read_table(path, {"text": "text"})["text"] == texts


def test_fields_of_csv_are_quoted(tmp_path):
    content = 'text,label\n"a, b",1\n"He said ""no"".",0\n"two\r\nlines",1\n plain ,0\n'
    table = read_table(write(tmp_path, content, "a.csv"), {"text": "text", "label": "label"})
    assert table["text"] == ["a, b", 'He said "no".', "two\r\nlines", " plain "]
    assert table["label"] == ["1", "0", "1", "0"]


def test_csv_with_another_delimiter(tmp_path):
    path = write(tmp_path, 'text;label\n"a;b";1\n', "a.CSV")
    assert read_table(path, {"text": "text"}, delimiter=";") == {"text": ["a;b"]}


def test_csv_with_tabs_is_not_quoted(tmp_path):
    # As those of STS-B, of which some rows have more columns than others.
    path = write(tmp_path, 'news\t"1.5\ta, b\nnews\t2"\tc"d\tMIT\thttp\n', "sts-dev.csv")
    table = read_table(path, {"text": 2, "score": 1}, delimiter="\t", has_header=False)
    assert table == {"text": ["a, b", 'c"d'], "score": ['"1.5', '2"']}


def test_commas_of_other_files_are_not_quoted(tmp_path):
    path = write(tmp_path, 'text,label\n"a",1\n', "a.txt")
    assert read_table(path, {"text": "text"}, delimiter=",") == {"text": ['"a"']}


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_fields_of_any_length(tmp_path, name):
    limit = csv.field_size_limit()
    text = "a" * (limit + 1)
    path = write(tmp_path, f"text\n{text}\nb\n", name)
    assert read_table(path, {"text": "text"}) == {"text": [text, "b"]}
    with pytest.raises(TaskFileError, match="line 2: must be a row"):
        read_table(write(tmp_path, f'text\n"{text}', "b.csv"), {"text": "text"})
    assert csv.field_size_limit() == limit  # It is that of the process.


@pytest.mark.parametrize("name, quote", [("a.tsv", ""), ("a.csv", '"')])
def test_lines_that_end_with_carriage_returns(tmp_path, name, quote):
    path = write(tmp_path, f"text\r{quote}a{quote}\rb\r\r", name)
    assert read_table(path, {"text": "text"}) == {"text": ["a", "b"]}


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_blank_lines_at_the_end(tmp_path, name):
    path = write(tmp_path, "text\r\na\r\n\r\n\r\n", name)
    assert read_table(path, {"text": "text"}) == {"text": ["a"]}


def test_byte_order_mark_and_header_of_mrpc(tmp_path):
    path = write(tmp_path, "\ufeffQuality\t#1 ID\t#1 String\t#2 String\r\n1\t7\ta\tb\r\n", "a.txt")
    columns = {"text": "#1 String", "pair": "#2 String", "label": "Quality"}
    table = read_table(path, columns, class_names=["0", "1"])
    assert table == {"text": ["a"], "pair": ["b"], "label": ["1"]}


def test_unusual_characters_stay_in_their_rows(tmp_path):
    text = "a\u2028b\x85c\x0bd\x0ce\x1cf\rg\u00a0"
    path = write(tmp_path, f"{text}\t1\n")
    assert read_table(path, {"text": 0}, has_header=False) == {"text": [text]}


def test_empty_values_that_are_allowed(tmp_path):
    # CoLA: the mark of the author is empty where the sentence is acceptable.
    path = write(tmp_path, "gj04\t1\t\tThey left.\ngj04\t0\t*\tLeft they.\n")
    columns = {"text": 3, "mark": 2}
    table = read_table(path, columns, has_header=False, allow_empty=["mark"])
    assert table == {"text": ["They left.", "Left they."], "mark": ["", "*"]}


def test_conversions(tmp_path):
    path = write(tmp_path, "a\t0.25\t1\nb\t3\t0\n")
    columns = {"text": 0, "score": 1, "label": 2}
    table = read_table(
        path,
        columns,
        has_header=False,
        numeric=["score"],
        integer=["label"],
        class_names=[0, 1],
    )
    assert table == {"text": ["a", "b"], "score": [0.25, 3.0], "label": [1, 0]}
    assert [type(x) for x in table["score"] + table["label"]] == [float, float, int, int]


NAMED = {"text": "text", "label": "label"}
INDEXED = {"columns": {"text": 0, "label": 1}, "has_header": False}


@pytest.mark.parametrize(
    "content, arguments, message",
    [
        ("", {}, "{path}, line 1: must be a header. Received: an empty file"),
        ("text\tlabel\n", {}, "{path}: must have at least one row. Received: none"),
        ("\n\n", INDEXED, "{path}: must have at least one row. Received: none"),
        (
            "sentence\tlabel\na\t1\n",
            {},
            "{path}, line 1: must have a column 'text'. Received: the columns 'sentence', 'label'",
        ),
        (
            "text\ttext\tlabel\na\tb\t1\n",
            {},
            "{path}, line 1: must have one column 'text'. "
            "Received: the columns 'text', 'text', 'label'",
        ),
        (
            "text\tlabel\na\t1\nb\n",
            {},
            "{path}, line 3: must have as many columns as the header, 2. Received: 1, ['b']",
        ),
        (
            "text\tlabel\na\tb\t1\n",
            {},
            "{path}, line 2: must have as many columns as the header, 2. "
            "Received: 3, ['a', 'b', '1']",
        ),
        (
            "text\tlabel\na\t1\n\nb\t0\n",
            {},
            "{path}, line 3: must have as many columns as the header, 2. Received: 0, []",
        ),
        (
            "a\t1\nb\n",
            INDEXED,
            "{path}, line 2, column 1: must be there. Received: 1 columns, ['b']",
        ),
        ("a\t1\n \t0\n", INDEXED, "{path}, line 2, column 0: must not be empty. Received: ' '"),
        (
            "text\tlabel\na\t1\n\t0\n",
            {},
            "{path}, line 3, column 'text': must not be empty. Received: ''",
        ),
        (
            "text\tlabel\na\tgood\n",
            {"numeric": ["label"]},
            "{path}, line 2, column 'label': must be a finite number. Received: 'good'",
        ),
        (
            "text\tlabel\na\t1.0\n",
            {"integer": ["label"]},
            "{path}, line 2, column 'label': must be an integer. Received: '1.0'",
        ),
        (
            "text\tlabel\na\t1\nb\t2\n",
            {"class_names": ["0", "1"]},
            "{path}, line 3, column 'label': must be in class_names=['0', '1']. Received: '2'",
        ),
        (
            "text\tlabel\nb\t" + "x" * 200 + "\n",
            {"numeric": ["label"]},
            "{path}, line 2, column 'label': must be a finite number. "
            "Received: '" + "x" * 76 + "...",
        ),
    ],
)
def test_wrong_files(tmp_path, content, arguments, message):
    path = write(tmp_path, content)
    with pytest.raises(TaskFileError) as info:
        read_table(path, **{"columns": NAMED, **arguments})
    assert str(info.value) == message.replace("{path}", str(path))


@pytest.mark.parametrize(
    "content, message",
    [
        (
            'text,label\n"two\nlines",1\na\n',
            "line 4: must have as many columns as the header, 2. Received: 1, ['a']",
        ),
        (
            'text,label\n"two\nlines",1\n"b"c,1\n',
            "line 4: must be a row of a CSV file. Received: ',' expected after '\"'",
        ),
        (
            'text,label\na,1\n"b,1\nc,1\n',
            "line 3: must be a row of a CSV file. Received: unexpected end of data",
        ),
        (
            # Not the end of a line: two rows would be made of one.
            "text,label\na,1\rb,1\n",
            "line 2: must be a row of a CSV file. "
            "Received: new-line character seen in unquoted field",
        ),
    ],
)
def test_errors_of_csv_name_the_line_where_the_row_begins(tmp_path, content, message):
    path = write(tmp_path, content, "a.csv")
    with pytest.raises(TaskFileError) as info:
        read_table(path, NAMED)
    assert str(info.value) == f"{path}, {message}"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            {"columns": {"text": 0}},
            "`columns` must have names of columns of the file with has_header=True. Received: 0",
        ),
        (
            {"columns": {"text": "text"}, "has_header": False},
            "`columns` must have indices, from 0, of columns of the file with has_header=False. "
            "Received: 'text'",
        ),
        (
            {"columns": {"text": -1}, "has_header": False},
            "`columns` must have indices, from 0, of columns of the file with has_header=False. "
            "Received: -1",
        ),
        (
            {"columns": {"text": True}, "has_header": False},
            "`columns` must have indices, from 0, of columns of the file with has_header=False. "
            "Received: True",
        ),
        ({"delimiter": "||"}, "`delimiter` must be one character. Received: '||'"),
        ({"delimiter": ""}, "`delimiter` must be one character. Received: ''"),
        ({"delimiter": "\n"}, r"`delimiter` must be one character. Received: '\n'"),
        (
            {"numeric": ["score"]},
            "`numeric` must be names in `columns`, ['text', 'label']. Received: ['score']",
        ),
    ],
)
def test_wrong_arguments(tmp_path, arguments, message):
    path = write(tmp_path, "text\tlabel\na\t1\n")
    with pytest.raises(ValueError) as info:
        read_table(path, **{"columns": NAMED, **arguments})
    assert str(info.value) == message


# Any text but what ends a line or column of the file. A last "\r" is a part of the line's end.
CELL = st.text(st.characters(exclude_characters="\t\n\r", codec="utf-8"), max_size=6)
ROWS = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=1, max_size=5)
)
SETTINGS = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def with_markers(rows):
    """Rows with a column of ordinary letters around, so that none is blank."""
    return [["a", *row, "z"] for row in rows]


@given(rows=ROWS, end=st.sampled_from(["\n", "\r\n"]))
@SETTINGS
def test_tsv_round_trip(tmp_path, rows, end):
    rows = with_markers(rows)
    path = write(tmp_path, "".join("\t".join(row) + end for row in rows))
    names = [str(i) for i in range(len(rows[0]))]
    columns = {name: i for i, name in enumerate(names)}
    table = read_table(path, columns, has_header=False, allow_empty=names)
    assert [list(row) for row in zip(*table.values(), strict=True)] == rows


QUOTED = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=6)


@given(rows=st.lists(st.lists(QUOTED, min_size=2, max_size=2), min_size=1, max_size=5))
@SETTINGS
def test_csv_round_trip(tmp_path, rows):
    # Python's own writer, with commas, quotation marks and line ends inside of fields.
    path = tmp_path / "a.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["first", "second"], *rows])
    columns = {"first": "first", "second": "second"}
    table = read_table(path, columns, allow_empty=["first", "second"])
    assert [list(row) for row in zip(*table.values(), strict=True)] == rows


SINGLE = {"columns": {"text": 0, "label": 1}, "has_header": False}
SST2 = {**SINGLE, "class_names": ["0", "1"]}
COLA = {"columns": {"text": 3, "label": 1}, "has_header": False, "class_names": ["0", "1"]}
MRPC = {
    "columns": {"text": "#1 String", "pair": "#2 String", "label": "Quality"},
    "class_names": ["0", "1"],
}
RTE = {
    "columns": {"text": "sentence1", "pair": "sentence2", "label": "label"},
    "class_names": ["0", "1"],
}
STSB = {
    "columns": {"text": 5, "pair": 6, "label": 4},
    "delimiter": "\t",
    "has_header": False,
    "numeric": ["label"],
}
SCORED = {**SINGLE, "numeric": ["label"]}


@pytest.mark.skipif(not TASKS.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize(
    "file, arguments, count",
    [
        # One more each than `wc -l` counts: the last lines have no newline.
        ("sst2/train.tsv", SST2, 6920),
        ("sst2/dev.tsv", SST2, 872),
        ("sst2/test.tsv", SST2, 1821),
        ("cola/raw_in_domain_train.tsv", COLA, 8551),
        ("cola/raw_in_domain_dev.tsv", COLA, 527),
        ("cola/raw_out_of_domain_dev.tsv", COLA, 516),
        ("mrpc/msr_paraphrase_train.txt", MRPC, 4076),
        ("mrpc/msr_paraphrase_test.txt", MRPC, 1725),
        ("rte/train.tsv", RTE, 2490),
        ("rte/dev.tsv", RTE, 277),
        ("stsb/sts-train.csv", STSB, 5749),
        ("stsb/sts-dev.csv", STSB, 1500),
        ("stsb/sts-test.csv", STSB, 1379),
        ("query_wellformedness/train.tsv", SCORED, 17500),
        ("query_wellformedness/dev.tsv", SCORED, 3750),
        ("query_wellformedness/test.tsv", SCORED, 3850),
    ],
)
def test_real_files(file, arguments, count):
    table = read_table(TASKS / file, **arguments)
    assert {name: len(column) for name, column in table.items()} == dict.fromkeys(table, count)
    if "numeric" in arguments:
        assert 0 <= min(table["label"]) < max(table["label"]) <= 5
    else:
        assert set(table["label"]) == {"0", "1"}
