import csv
import io
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import xlnet_command
from keras_xlnet.cli import predict
from keras_xlnet.models import (
    MultiTask,
    XLNetBackbone,
    XLNetQuestionAnswering,
    XLNetTextClassifier,
    XLNetTextRegressor,
    XLNetTokenClassifier,
)
from keras_xlnet.preprocessing import (
    XLNetTextClassifierPreprocessor,
    XLNetTextRegressorPreprocessor,
)
from keras_xlnet.preset_files import write_preset_info
from keras_xlnet.task_files import read_table

TEXTS = ["the quiet river ran", 'a "quoted", text', "", "9,000 reasons"]
KINDS = {"num_classes": 3, "class_names": ["a", "b", "c"]}


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory):
    """Folder of a classifier as a file and as a preset, and of a regressor."""
    folder = tmp_path_factory.mktemp("models")
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 12)
    backbone = XLNetBackbone(200, 1, 2, 16, 32, seed=1)
    classifier = XLNetTextClassifier(backbone, 2, preprocessor, class_names=["ham", "spam"])
    classifier.save(folder / "classifier.keras")
    classifier.save_to_preset(folder / "classifier")
    preprocessor = XLNetTextRegressorPreprocessor(preprocessor.tokenizer, 12)
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
    columns = ["label", "score", "ham", "spam"]
    assert [*rows[0]] == (["id", "body"] if flags else ["text"]) + columns
    assert [row["body" if flags else "text"] for row in rows] == TEXTS
    if flags:
        assert [row["id"] for row in rows] == ["0", "1", "2", "3"]
    expected = classifier.predict(TEXTS)
    for text, row, (ham, spam) in zip(TEXTS, rows, expected, strict=True):
        if not text:
            assert [row[name] for name in columns] == [""] * 4
            continue
        assert float(row["spam"]) == pytest.approx(spam, rel=1e-4)
        assert row["label"] == ("spam" if spam >= 0.5 else "ham")
        assert float(row["score"]) == pytest.approx(max(ham, spam), rel=1e-4)


@pytest.mark.parametrize(
    "line, expected",
    [
        ("m t --output o", ("m", "t", None)),
        ("m --output o t", ("m", "t", None)),
        ("--output o m t", ("m", "t", None)),
        ("--adapter a t", (None, "t", "a")),
        ("t --adapter a", (None, "t", "a")),
        ("m --adapter a t", ("m", "t", "a")),
        ("--adapter a m -", ("m", "-", "a")),
    ],
)
def test_the_model_may_be_left_out_with_an_adapter(line, expected):
    found = xlnet_command.parse(["xlnet", "predict", *line.split()])
    assert (found.model, found.texts, found.adapter) == expected


@pytest.mark.parametrize("line", ["m", "--output o m", "m t more", "m t --more", "--adapter a"])
def test_missing_and_unknown_arguments_are_refused(line, capsys):
    with pytest.raises(SystemExit):
        xlnet_command.parse(["xlnet", "predict", *line.split()])
    assert "error: " in capsys.readouterr().err


def test_an_adapter_in_place_of_a_model(folder, tmp_path, capsys, monkeypatch):
    folder, classifier = folder
    shipped = tmp_path / "shipped"
    base = XLNetTextClassifier.from_preset(
        folder / "backbone", preprocessor=classifier.preprocessor, **KINDS
    )
    base.backbone.save_to_preset(shipped / "tiny_en", classifier.preprocessor.tokenizer)
    write_preset_info(shipped / "tiny_en", "Random", {})
    monkeypatch.setattr("keras_xlnet.preset_files.shipped.FOLDER", shipped)
    base.enable_lora(2)
    base.logits_dense.bias.assign([0.5, -0.5, 0.25])
    base.save_adapter(shipped / "adapters" / "kinds", dtype=None)
    write_preset_info(shipped / "adapters" / "kinds", "Three kinds", {})
    expected = base.predict([text for text in TEXTS if text], verbose=0)
    for model in ([], [shipped / "tiny_en"]):
        assert run("--adapter", "kinds", *model, folder / "texts.txt") == 0
        rows = rows_of(capsys.readouterr().out)
        assert [row["text"] for row in rows] == TEXTS
        rows = [row for row in rows if row["text"]]
        found = [[float(row[name]) for name in KINDS["class_names"]] for row in rows]
        np.testing.assert_allclose(found, expected, atol=1e-4)
    assert run("--adapter", "kins", folder / "texts.txt") == 1
    assert "Did you mean 'kinds'? Adapters that come with" in capsys.readouterr().err


# === Pairs, questions, names ===

PAIRS = [("the river ran", "a river"), ("why, then", "it rained"), ("a stone", "the old house")]
OTHERS = {
    "pairs": lambda backbone: XLNetTextClassifier(backbone, 2, pooling="pair"),
    "names": lambda backbone: XLNetTokenClassifier(
        backbone, 3, class_names=["B-place", "I-place", "O"]
    ),
    "questions": XLNetQuestionAnswering,
}


@pytest.fixture(scope="module")
def others(folder, tmp_path_factory):
    """Folder with a preset of each of `OTHERS`, and a table of pairs; and the models."""
    _, classifier = folder
    folder, models = tmp_path_factory.mktemp("others"), {}
    for name, make in OTHERS.items():
        model = make(XLNetBackbone(200, 1, 2, 16, 32, kernel_initializer="glorot_normal", seed=2))
        settings = {"doc_stride": 4, "max_question_length": 6} if name == "questions" else {}
        model.preprocessor = model.preprocessor_cls(
            classifier.preprocessor.tokenizer, 24, **settings
        )
        if name == "names":
            model.logits_dense.bias.assign([0.5, 0.0, 0.0])  # So that there are some.
        model.save_to_preset(folder / name)
        models[name] = model
    with open(folder / "pairs.csv", "w", newline="") as file:
        csv.writer(file).writerows([["first", "second"], *PAIRS])
    with open(folder / "pairs.jsonl", "w") as file:
        file.writelines(json.dumps({"first": a, "second": b}) + "\n" for a, b in PAIRS)
    return folder, models


OF_PAIRS = ["--text_column", "first", "--pair_column", "second"]


@pytest.mark.parametrize("file", ["pairs.csv", "pairs.jsonl"])
def test_classes_of_pairs(file, others, capsys):
    folder, models = others
    assert run(folder / "pairs", folder / file, *OF_PAIRS) == 0
    rows = rows_of(capsys.readouterr().out)
    assert [(row["first"], row["second"]) for row in rows] == PAIRS
    expected = models["pairs"].predict(PAIRS, verbose=0)
    assert np.abs(expected[0] - expected[1]).max() > 1e-4
    found = [[float(row["0"]), float(row["1"])] for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_answers_to_questions(others, capsys, monkeypatch):
    folder, models = others
    expected = models["questions"].answer(PAIRS, verbose=0)
    assert run(folder / "questions", folder / "pairs.csv", *OF_PAIRS) == 0
    rows = rows_of(capsys.readouterr().out)
    for row, answer, (question, context) in zip(rows, expected, PAIRS, strict=True):
        assert (row["first"], row["second"]) == (question, context)
        assert row["answer"] == answer.text == context[int(row["start"]) : int(row["end"])]
        assert float(row["probability"]) == pytest.approx(answer.answers[0].probability, rel=1e-3)


def test_a_question_without_an_answer_has_empty_cells(others, tmp_path, capsys):
    folder, models = others
    model = models["questions"].with_arguments(null_threshold=-1e9)
    model.set_weights(models["questions"].get_weights())
    model.save_to_preset(tmp_path)
    assert run(tmp_path, folder / "pairs.csv", *OF_PAIRS) == 0
    (_, *lines) = capsys.readouterr().out.splitlines()
    assert len(lines) == len(PAIRS) and all(line.endswith(",,,,") for line in lines)


def test_entities_are_json(others, tmp_path, capsys):
    folder, models = others
    texts = [
        "",
        "the quiet river ran",
        " \x85",
        "caf\xe9 by the river",
    ]  # Two of them have no words.
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    assert run(folder / "names", tmp_path / "a.jsonl") == 0
    rows = rows_of(capsys.readouterr().out)
    assert [row["text"] for row in rows] == texts
    first, second = models["names"].find_entities([texts[1], texts[3]], verbose=0)
    assert first and second
    assert rows[0]["entities"] == rows[2]["entities"] == ""
    for row, entities in zip(rows[1::2], [first, second], strict=True):
        found = json.loads(row["entities"])
        fields = ("type", "text", "start", "end")
        assert [[e[name] for name in fields] for e in found] == [
            [getattr(e, name) for name in fields] for e in entities
        ]


@pytest.mark.parametrize(
    "model, texts, flags, message",
    [
        ("pairs", "pairs.csv", OF_PAIRS[:2], "takes pairs of texts: name the columns of both, by"),
        ("questions", "pairs.csv", OF_PAIRS[:2], "takes questions with contexts: name the columns"),
        ("names", "pairs.csv", OF_PAIRS, "takes single texts. Received: a --pair_column"),
        ("pairs", "-", OF_PAIRS, "needs a file of ['.csv', '.tsv', '.jsonl']. Received: -"),
        ("pairs", "pairs.csv", ["--pair_column", "second"], "must have a column 'text'"),
    ],
)
def test_pairs_and_single_texts_are_told_apart(
    model, texts, flags, message, others, tmp_path, capsys
):
    folder, _ = others
    path = texts if texts == "-" else folder / texts
    output = tmp_path / "scores.csv"
    assert run(folder / model, path, *flags, "--output", output) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("xlnet: ") and message in line
    assert not output.exists()


@pytest.mark.parametrize(
    "row, message",
    [
        ('{"first": "a", "second": 3}', "must be a string. Received: 3"),
        ('{"first": "a"}', "second"),
    ],
)
def test_errors_of_second_texts_name_the_column(row, message, others, tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text(row + "\n")
    assert run(others[0] / "pairs", tmp_path / "a.jsonl", *OF_PAIRS) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "line 1, column 'second'" in line and message in line


ROWS = [
    {"id": 7, "text": "the river ran", "label": "spam", "tags": ["a", "b"], "": None},
    {"id": 8, "text": None, "label": "ham", "new": "caf\xe9"},
    {"id": 9, "text": "a stone, the old house", "label": "ham"},
]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_all_columns_are_kept(name, folder, tmp_path, capsys):
    columns = ["id", "text", "label", "tags", "", "new"]
    cells = [
        ["7", "the river ran", "spam", '["a", "b"]', "", ""],
        ["8", "", "ham", "", "", "caf\xe9"],
        ["9", "a stone, the old house", "ham", "", "", ""],
    ]
    with open(tmp_path / name, "w", encoding="utf-8", newline="") as file:
        if name.endswith("jsonl"):
            file.writelines(json.dumps(row) + "\n" for row in ROWS)
        elif name.endswith("csv"):
            csv.writer(file).writerows([columns, *cells])
        else:
            file.writelines("\t".join(row) + "\n" for row in [columns, *cells])
    assert run(folder[0] / "classifier", tmp_path / name) == 0
    header, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    # The file has labels: those of the model have another name.
    assert header == [*columns, "predicted_label", "score", "ham", "spam"]
    assert [row[:6] for row in rows] == cells
    expected = folder[1].classify([cells[0][1], cells[2][1]], verbose=0)
    assert [row[6] for row in rows] == [expected[0].label, "", expected[1].label]
    assert rows[1][6:] == [""] * 4


def test_two_columns_of_one_name_are_kept_unless_they_are_the_texts(folder, tmp_path, capsys):
    (tmp_path / "a.csv").write_text("x,text,x\n1,a river,2\n")
    assert run(folder[0] / "classifier", tmp_path / "a.csv") == 0
    header, row = csv.reader(io.StringIO(capsys.readouterr().out))
    assert (header[:3], row[:3]) == (["x", "text", "x"], ["1", "a river", "2"])


def test_pairs_with_an_empty_cell_have_an_empty_answer(others, tmp_path, capsys):
    folder, models = others
    rows = [("a", "b"), ("", "b"), ("a", " "), ("c", "d")]
    with open(tmp_path / "a.csv", "w", newline="") as file:
        csv.writer(file).writerows([["first", "second"], *rows])
    for name in ("pairs", "questions"):
        assert run(folder / name, tmp_path / "a.csv", *OF_PAIRS) == 0
        found = [*csv.reader(io.StringIO(capsys.readouterr().out))][1:]
        assert [any(row[2:]) for row in found] == [True, False, False, True]
        assert [tuple(row[:2]) for row in found] == rows


def test_numbers_from_stdin_to_stdout(folder, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(TEXTS)))
    assert run(folder[0] / "regressor", "-") == 0
    rows = rows_of(capsys.readouterr().out)
    assert [row["text"] for row in rows] == TEXTS
    assert np.isfinite([float(row["value"]) for row in rows if row["text"]]).all()


def test_several_tasks_have_columns_side_by_side(folder, tmp_path, capsys):
    topic = XLNetTextClassifier.from_preset(folder[0] / "classifier")
    marks = XLNetTextRegressor(topic.backbone, num_outputs=2)
    model = MultiTask({"topic": topic, "marks": marks})
    model.save_to_preset(tmp_path)
    assert run(tmp_path, folder[0] / "texts.txt", "--output", "-") == 0
    rows = rows_of(capsys.readouterr().out)
    columns = ["topic_label", "topic_score", "topic_ham", "topic_spam", "marks_value_0"]
    assert [*rows[0]] == ["text", *columns, "marks_value_1"]
    expected = model.predict(TEXTS, verbose=0)
    for i, row in enumerate(rows):
        if not row["text"]:
            continue
        assert float(row["topic_spam"]) == pytest.approx(expected["topic"][i, 1], rel=1e-4)
        assert float(row["marks_value_1"]) == pytest.approx(expected["marks"][i, 1], rel=1e-4)


@pytest.mark.parametrize(
    "model, texts, message",
    [
        (
            "backbone",
            "texts.txt",
            "must hold one of ['multi_task', 'question_answering', 'text_classifier', "
            "'text_regressor', 'token_classifier']",
        ),
        (
            "classifier",
            "table.csv",
            "line 1: must have a column 'text'. Received: the columns 'id', 'body'",
        ),
        ("classifier", "none.txt", "No such file"),
        ("none", "texts.txt", "none"),
    ],
)
def test_errors_are_one_line(model, texts, message, folder, capsys):
    assert run(folder[0] / model, folder[0] / texts) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("xlnet: ") and message in line


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.tsv", b"", "line 1: must be a header. Received: an empty file"),
        ("a.tsv", b"text\n", "must have at least one row. Received: none"),
        ("a.txt", b"", "must have at least one row. Received: none"),
        ("a.tsv", b"text\ta\nb\n", "line 2: must have as many columns as the header, 2"),
        ("a.tsv", b"a\ttext\nb\n", "line 2: must have as many columns as the header, 2"),
        ("a.tsv", b"text\ta\nb\tc\td\n", "line 2: must have as many columns as the header, 2"),
        ("a.tsv", b"text\ttext\na\tb\n", "line 1: must have one column 'text'"),
        ("a.csv", b'text\n"a\n', "line 2: must be a row of a CSV file"),
        ("a.csv", b'text\n"a"b\n', "line 2: must be a row of a CSV file"),
        ("a.csv", "text\ncaf\xe9\n".encode("latin-1"), "line 2: must be UTF-8 text"),
        ("a.txt", "a\ncaf\xe9\n".encode("latin-1"), "line 2: must be UTF-8 text"),
        ("a.tsv", "text\na\n".encode("utf-16"), "must be UTF-8 text. Received: UTF-16 text"),
        ("a.tsv.gz", b"\x1f\x8b\x08", "must be UTF-8 text. Received: a gzip file"),
        ("a.jsonl", b'{"text": 3}\n', "line 1, column 'text': must be a string. Received: 3"),
        ("a.jsonl", b'{"text": "a"}\n{"b": "a"}\n', "line 2, column 'text': must be there"),
    ],
)
def test_errors_of_files_name_file_and_line(name, content, message, folder, tmp_path, capsys):
    (tmp_path / name).write_bytes(content)
    output = tmp_path / "scores.csv"
    assert run(folder[0] / "classifier", tmp_path / name, "--output", output) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"xlnet: {tmp_path / name}") and message in line
    assert not output.exists()


# Quotation marks at the start of a cell, carriage returns inside, and more than csv's field limit.
HARD_TEXTS = ['"She said', 'no".', '"', "a\rb", "x" * 131_073, "", "\u2028a\x85b\x1c"]
FILES = {
    "a.tsv": "text\tid\n" + "".join(f"{text}\t1\n" for text in HARD_TEXTS),
    "a.TSV": "id\ttext\r\n" + "".join(f"1\t{text}\r\n" for text in HARD_TEXTS),
    "a.csv": "text,id\n" + "".join('"{}",1\n'.format(t.replace('"', '""')) for t in HARD_TEXTS),
    "a.CSV": "id,text\r\n" + "".join('1,"{}"\r\n'.format(t.replace('"', '""')) for t in HARD_TEXTS),
    "a.jsonl": "".join(json.dumps({"text": text}) + "\n" for text in HARD_TEXTS),
    "a.JSONL": "".join(
        json.dumps({"text": text}, ensure_ascii=False) + "\r\n" for text in HARD_TEXTS
    ),
    "a.txt": "".join(f"{text}\n" for text in HARD_TEXTS),
}


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("name", FILES)
def test_every_row_of_every_kind_of_file_is_read(name, mark, tmp_path):
    path = tmp_path / name
    path.write_bytes((mark + FILES[name]).encode())
    assert predict.read_texts(str(path), "text").texts == HARD_TEXTS


def test_rows_in_are_rows_out(folder, tmp_path, monkeypatch):
    # Over its own input: the texts are read before the output is opened.
    path = tmp_path / "a.csv"
    path.write_bytes(FILES["a.csv"].encode())
    monkeypatch.setattr(
        predict, "predict", lambda model, texts: [["ham", "1", "1", "0"]] * len(texts)
    )
    assert run(folder[0] / "classifier", path, "--output", path) == 0
    with path.open(encoding="utf-8", newline="") as file:
        assert sum(1 for _ in file) >= len(HARD_TEXTS) + 1
    assert read_table(path, {"text": "text"}, allow_empty=["text"])["text"] == HARD_TEXTS


CELL = st.text(st.characters(exclude_characters="\n\0\ufeff", codec="utf-8"), max_size=5)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(CELL, min_size=1, max_size=6), mark=st.sampled_from(["", "\ufeff"]))
def test_no_row_is_lost(tmp_path, texts, mark):
    # Tables of tabs are written without quotes, so a text has no tab, and no "\r" at its end.
    plain = [text.replace("\t", " ") + "." for text in texts]
    tables = {
        "a.tsv": "id\ttext\n" + "".join(f"{i}\t{text}\n" for i, text in enumerate(plain)),
        "a.txt": "".join(f"{text}\n" for text in plain),
    }
    for name, content in tables.items():
        (tmp_path / name).write_bytes((mark + content).encode())
        assert predict.read_texts(str(tmp_path / name), "text").texts == plain
    # What `xlnet predict` writes, it can read.
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as file:
        file.write(mark)
        for row in (["text", "id"], *([text, "1"] for text in texts)):
            predict.write_row(file, row)
    assert predict.read_texts(str(tmp_path / "a.csv"), "text").texts == texts


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_stdin_is_utf8_whatever_the_system_says(encoding, folder, capsys, monkeypatch):
    content = io.BytesIO("one\r\ncaf\xe9\n".encode(encoding))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(content, encoding="latin-1"))
    status = run(folder[0] / "regressor", "-")
    captured = capsys.readouterr()
    if encoding == "latin-1":
        (line,) = captured.err.splitlines()
        assert status == 1 and line.startswith("xlnet: stdin, line 2: must be UTF-8 text.")
    else:
        assert status == 0
        assert [row["text"] for row in rows_of(captured.out)] == ["one", "caf\xe9"]
