import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xlnet_command
from keras_xlnet.cli.predict import read_texts
from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier, XLNetTextRegressor
from keras_xlnet.text import XLNetPreprocessor, XLNetTokenizer

TEXTS = ["the quiet river ran", 'a "quoted", text', "", "9,000 reasons"]


@pytest.fixture(scope="module")
def folder(golden_dir, tmp_path_factory):
    """Folder of a classifier as a file and as a preset, and of a regressor."""
    folder = tmp_path_factory.mktemp("models")
    preprocessor = XLNetPreprocessor(XLNetTokenizer(golden_dir / "spiece.model"), 12)
    backbone = XLNetBackbone(200, 1, 2, 16, 32, seed=1)
    classifier = XLNetTextClassifier(backbone, 2, preprocessor, class_names=["ham", "spam"])
    classifier.save(folder / "classifier.keras")
    classifier.save_to_preset(folder / "classifier")
    XLNetTextRegressor(backbone, preprocessor).save_to_preset(folder / "regressor")
    backbone.save_to_preset(folder / "backbone")
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    with open(folder / "table.csv", "w", newline="") as file:
        csv.writer(file).writerows([["id", "body"], *enumerate(TEXTS)])
    return folder, classifier


def run(*arguments):
    return xlnet_command.run(xlnet_command.parse(["xlnet", "predict", *map(str, arguments)]))


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("model", ["classifier.keras", "classifier"])
@pytest.mark.parametrize("texts", [["texts.txt"], ["table.csv", "--text_column", "body"]])
def test_a_row_for_each_text(model, texts, folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("keras_xlnet.cli.predict._BATCH", 3)
    folder, classifier = folder
    name, *flags = texts
    assert run(folder / model, folder / name, "--output", tmp_path / "scores.csv", *flags) == 0
    assert capsys.readouterr().out == f"4 texts -> {tmp_path / 'scores.csv'}\n"
    rows = rows_of((tmp_path / "scores.csv").read_text())
    assert [row["text"] for row in rows] == TEXTS
    expected = classifier.predict(TEXTS)
    for row, (ham, spam) in zip(rows, expected, strict=True):
        assert float(row["spam"]) == pytest.approx(spam, rel=1e-4)
        assert row["label"] == ("spam" if spam >= 0.5 else "ham")
        assert float(row["score"]) == pytest.approx(max(ham, spam), rel=1e-4)


def test_numbers_from_stdin_to_stdout(folder, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(TEXTS)))
    assert run(folder[0] / "regressor", "-") == 0
    rows = rows_of(capsys.readouterr().out)
    assert [row["text"] for row in rows] == TEXTS
    assert np.isfinite([float(row["value"]) for row in rows]).all()


@pytest.mark.parametrize(
    "model, texts, message",
    [
        ("backbone", "texts.txt", "must hold one of ['text_classifier', 'text_regressor']"),
        ("classifier", "table.csv", "must have a column 'text'. Received: the columns"),
        ("classifier", "none.txt", "must be a file"),
        ("none", "texts.txt", "none"),
    ],
)
def test_errors_are_one_line(model, texts, message, folder, capsys):
    assert run(folder[0] / model, folder[0] / texts) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("xlnet: ") and message in line


FILES = {
    # A quotation mark that begins a cell is no quote in a TSV file.
    "quote.tsv": 'id\ttext\n1\t"Fine," he said\n2\tDull.\n3\t"\n4\tend',
    "mark.csv": "\ufefftext,id\nFine.,1\nDull.,2\n",
    "mark.tsv": "\ufefftext\nFine.\n\nDull.\n",
    "UPPER.CSV": 'text,id\n"Fine, really",1\nDull.,2\n',
    "UPPER.TSV": "text\tid\nFine.\t1\n",
    "long.csv": f"text\n{'a ' * 100_000}\nDull.\n",
    "lines.csv": 'text\r\n"two\r\nlines"\r\nDull.\r\n',
    "crlf.txt": "Fine.\r\n\r\nDull.\r\n",
    "mark.txt": "\ufeffFine.\nDull.",
    "separators.txt": "one\u2028line\nand\x85another\x0c\n",
}
EXPECTED = {
    "quote.tsv": ['"Fine," he said', "Dull.", '"', "end"],
    "mark.csv": ["Fine.", "Dull."],
    "mark.tsv": ["Fine.", "", "Dull."],
    "UPPER.CSV": ["Fine, really", "Dull."],
    "UPPER.TSV": ["Fine."],
    "long.csv": ["a " * 100_000, "Dull."],
    "lines.csv": ["two\r\nlines", "Dull."],
    "crlf.txt": ["Fine.", "", "Dull."],
    "mark.txt": ["Fine.", "Dull."],
    "separators.txt": ["one\u2028line", "and\x85another\x0c"],
}


@pytest.mark.parametrize("name", FILES)
def test_every_row_of_a_file_is_read(name, tmp_path):
    (tmp_path / name).write_bytes(FILES[name].encode())
    limit = csv.field_size_limit()
    assert list(read_texts(str(tmp_path / name), "text")) == EXPECTED[name]
    assert csv.field_size_limit() == limit


def test_a_byte_order_mark_of_stdin(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeffFine.\n\nDull.\n"))
    assert list(read_texts("-", "text")) == ["Fine.", "", "Dull."]


BAD_FILES = {
    "latin1.csv": ("text\ncaf\xe9\n".encode("latin1"), "line 2: must be UTF-8"),
    "latin1.txt": ("caf\xe9\n".encode("latin1"), "line 1: must be UTF-8"),
    "utf16.tsv": ("text\nFine.\n".encode("utf-16"), "line 1: must be UTF-8"),
    "ragged.tsv": (b"id\ttext\n1\tFine.\n2\tDull.\tmore\n", "line 3: must have as many columns"),
    "short.csv": (b"id,text\n1\n", "line 2: must have as many columns"),
    "open.csv": (b'text\n"Fine.\nDull.\n', "line 2: must be a row of a CSV file"),
    "other.csv": (b"id,body\n1,Fine.\n", "must have a column 'text'"),
    "twice.csv": (b"text,text\n1,Fine.\n", "must have one column 'text'"),
    "empty.csv": (b"", "must be a header"),
    "empty.txt": (b"", "at least one row"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_cannot_be_read_is_one_line(name, folder, tmp_path, capsys):
    content, message = BAD_FILES[name]
    (tmp_path / name).write_bytes(content)
    arguments = ["xlnet", "predict", folder[0] / "classifier", tmp_path / name]
    assert xlnet_command.run(xlnet_command.parse([*map(str, arguments)])) == 1
    error = capsys.readouterr().err
    assert name in error and message in error and error.count("\n") == 1


CELLS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(CELLS.filter(str.strip), min_size=1, max_size=8))
def test_no_row_of_a_table_is_lost(texts, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables")
    with open(path / "table.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", "text"], *enumerate(texts)])
    assert read_texts(str(path / "table.csv"), "text") == texts
    lines = [text for text in texts if not set(text) & set("\t\r\n")] or ["a"]
    rows = "".join(f"{i}\t{line}\n" for i, line in enumerate(lines))
    (path / "table.tsv").write_bytes(f"id\ttext\n{rows}".encode())
    assert read_texts(str(path / "table.tsv"), "text") == lines
    (path / "lines.txt").write_bytes("".join(f"{line}\n" for line in lines).encode())
    assert read_texts(str(path / "lines.txt"), "text") == lines
