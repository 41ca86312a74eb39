import csv
import io

import numpy as np
import pytest

import xlnet_command
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
        ("classifier", "table.csv", "has no column 'text'. It has: ['id', 'body']"),
        ("classifier", "none.txt", "No such file"),
        ("none", "texts.txt", "none"),
    ],
)
def test_errors_are_one_line(model, texts, message, folder, capsys):
    assert run(folder[0] / model, folder[0] / texts) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("xlnet: ") and message in line
