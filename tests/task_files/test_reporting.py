"""The form of errors, and how files become lines."""

import gzip
import pickle

import pytest

from keras_xlnet.task_files import TaskFileError
from keras_xlnet.task_files.reporting import (
    check_has_rows,
    existing_file,
    file_error,
    file_in_folder,
    in_cell,
    lines_of,
    read_text,
    shown,
    without_last_blanks,
)


@pytest.mark.parametrize(
    "place, message",
    [
        ("line 3", "a/b.tsv, line 3: must be there. Received: 'x'"),
        (in_cell(3, "text"), "a/b.tsv, line 3, column 'text': must be there. Received: 'x'"),
        (in_cell(3, 4), "a/b.tsv, line 3, column 4: must be there. Received: 'x'"),
        ("", "a/b.tsv: must be there. Received: 'x'"),
    ],
)
def test_the_form_of_errors(place, message):
    error = file_error("a/b.tsv", place, "be there", shown("x"))
    assert isinstance(error, TaskFileError) and isinstance(error, ValueError)
    assert str(error) == message


def test_errors_pass_between_processes():
    # As `multiprocessing` sends them.
    error = pickle.loads(pickle.dumps(file_error("a.tsv", "line 1", "be there", "'x'")))
    assert type(error) is TaskFileError
    assert str(error) == "a.tsv, line 1: must be there. Received: 'x'"


@pytest.mark.parametrize(
    "value, text",
    [
        ("a\nb\r", r"'a\nb\r'"),
        ("\u2028", r"'\u2028'"),
        ("x" * 78, "'" + "x" * 78 + "'"),
        ("x" * 79, "'" + "x" * 76 + "..."),
    ],
)
def test_received_values_are_one_short_line(value, text):
    assert shown(value) == text
    assert len(shown(value)) <= 80


@pytest.mark.parametrize(
    "content, lines",
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfa\n", ["a"]),
        (b"a\xef\xbb\xbf\n", ["a\ufeff"]),
        (b"a\n\n", ["a", ""]),
        (b" a\t\n", [" a\t"]),
        (b"a\rb\n", ["a\rb"]),
        (b"a\rb\r", ["a", "b"]),
        (b"a\r\rb", ["a", "", "b"]),
        ("a\u2028b\x85c\x0bd\x0ce\x1cf\n".encode(), ["a\u2028b\x85c\x0bd\x0ce\x1cf"]),
        (b"", []),
    ],
)
def test_lines(tmp_path, content, lines):
    (tmp_path / "a.txt").write_bytes(content)
    assert lines_of(read_text(tmp_path / "a.txt")) == lines


@pytest.mark.parametrize(
    "lines, kept", [(["a", "", "b", "", ""], ["a", "", "b"]), (["", ""], []), ([" "], [" "])]
)
def test_blank_lines_at_the_end(lines, kept):
    assert without_last_blanks(lines) == kept


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_other_encodings_are_an_error(tmp_path, mark):
    path = tmp_path / "a.txt"
    path.write_bytes(mark + "one\ntwo\ncafé\nfour".encode("latin-1"))
    with pytest.raises(TaskFileError) as info:
        read_text(path)
    received = r"b'ne\ntwo\ncaf\xe9\nfour'"
    assert str(info.value) == f"{path}, line 3: must be UTF-8 text. Received: {received}"


@pytest.mark.parametrize(
    "content, name",
    [
        ("text\tlabel\n".encode("utf-16"), "UTF-16 text"),
        ("text\tlabel\n".encode("utf-16-le"), "UTF-16 text"),
        ("text\tlabel\n".encode("utf-16-be"), "UTF-16 text"),
        (gzip.compress(b"text\tlabel\n", mtime=0), "a gzip file"),
        (b"PK\x03\x04text", "a ZIP file, as .xlsx files are"),
    ],
)
def test_formats_that_are_no_utf8_text_are_named(tmp_path, content, name):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(TaskFileError) as info:
        read_text(path)
    start = f"{path}, line 1: must be UTF-8 text. Received: {name}, b'"
    assert str(info.value).startswith(start) and "\n" not in str(info.value)


def test_missing_files_name_the_argument(tmp_path):
    for path in (tmp_path / "a.tsv", tmp_path):
        with pytest.raises(FileNotFoundError) as info:
            existing_file("paths", path)
        assert str(info.value) == f"`paths` must be a file. Received: {str(path)!r}"
    with pytest.raises(FileNotFoundError) as info:
        file_in_folder(tmp_path / "none", "a.toks")
    assert str(info.value) == f"`folder` must be a folder. Received: {str(tmp_path / 'none')!r}"
    with pytest.raises(FileNotFoundError) as info:
        file_in_folder(tmp_path, "a.toks")
    assert str(info.value) == f"`folder` must have the file 'a.toks'. Received: {str(tmp_path)!r}"


def test_files_without_rows(tmp_path):
    check_has_rows(tmp_path, ["row"])
    with pytest.raises(TaskFileError) as info:
        check_has_rows(tmp_path, [])
    assert str(info.value) == f"{tmp_path}: must have at least one row. Received: none"


def test_a_text_may_begin_with_nul(tmp_path):
    for text in ("\0\tO\n", "a\0b\n", "\0"):
        (tmp_path / "a.txt").write_bytes(text.encode())
        assert read_text(tmp_path / "a.txt") == text
