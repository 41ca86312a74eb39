"""`xlnet inspect` of exports, with details and without, and of damaged ones."""

import json
import pathlib
import re
import shutil
import subprocess

import keras
import pytest
import tensorflow as tf
from keras import ops

from keras_xlnet.models import XLNetTextClassifier
from keras_xlnet.preset_files.export_details import FILE
from keras_xlnet.serving import export
from keras_xlnet.serving.portable.litert_format import write_litert
from tests.cli.test_cli import xlnet
from tests.serving.conftest import CLASS_NAMES, preprocessor, spam  # noqa: F401, fixtures


@pytest.fixture
def directory(spam, tmp_path):  # noqa: F811
    return shutil.copytree(spam.directory, tmp_path / "my models" / "spam" / "3")


def without_details(directory):
    (directory / FILE).unlink()


def edit(directory, **changes):
    details = json.loads((directory / FILE).read_text(encoding="utf-8"))
    (directory / FILE).write_text(json.dumps({**details, **changes}), encoding="utf-8")


def table(capsys):
    lines = capsys.readouterr().out.splitlines()
    return [(line[:22].strip(), line[22:]) for line in lines]


def test_the_details_as_a_table(directory, spam, capsys):  # noqa: F811
    edit(directory, trained_on={"notes": "5,574\nmessages\x1b[2J", "preset": None, "adapter": None})
    assert xlnet("inspect", directory) == 0
    rows = table(capsys)
    found = dict(rows)
    assert (found["format"], found["model"]) == ("SavedModel", "XLNetTextClassifier")
    assert found["classes"] == ", ".join(CLASS_NAMES)
    assert found["threshold"] == str(spam.threshold)
    assert found["sequence_length"] == "24"
    assert found["parameters"].startswith(f"{spam.model.count_params():,} (")
    assert ("signature", "serving_pair") in rows
    assert ("output", "probabilities: float32 (None, 2)") in rows
    assert "tensorflow " + tf.__version__ in found["written with"]
    # One line, and no control characters.
    assert found["trained on"] == "5,574 messages\ufffd[2J"
    # The commands fit the place.
    assert found["serve"] == f"xlnet serve '{directory.parents[1]}'"
    assert '/v1/models/spam:predict -d \'{"instances": ' in found["ask"]
    assert any(value.startswith("3/saved_model.pb (") for _, value in rows)


def page():
    docs = pathlib.Path(__file__).parents[2] / "docs"
    text = (docs / "serving.md").read_text(encoding="utf-8")
    return text.partition("## What is in an export")[2].partition("\n## ")[0]


def test_all_keys_are_on_the_page(directory):
    keys = json.loads((directory / FILE).read_text(encoding="utf-8"))
    assert [key for key in keys if f"`{key}`" not in page()] == []


@pytest.mark.slow
def test_the_table_of_the_page(tmp_path, capsys):
    model = XLNetTextClassifier.from_preset(adapter="spam")
    directory = export(model, tmp_path / "spam" / "1", trained_on="SMS Spam Collection")
    assert 'trained_on="SMS Spam Collection"' in page()
    assert xlnet("inspect", directory) == 0
    shown = "    " + capsys.readouterr().out.replace("\n", "\n    ")
    expected = re.findall("^ {4}.*", page().partition("the table begins with")[2], re.MULTILINE)
    assert len(expected) == 5 and shown.startswith("\n".join(expected) + "\n")
    assert "\n    adapter               spam: " in shown


def test_a_place_that_is_not_served(directory, capsys):
    other = shutil.move(directory, directory.with_name("spam"))
    assert xlnet("inspect", other) == 0
    found = dict(table(capsys))
    assert found["to serve it, copy to"] == "MODELS/NAME/1"
    assert found["serve"] == "xlnet serve MODELS"


def test_the_origin_of_a_model(directory, capsys):
    facts = {"name": "mini", "description": "English", "figures": {"F1": 0.5}}
    preset, adapter = {**facts, "data": "word " * 99}, {**facts, "data": None}
    edit(directory, trained_on={"notes": None, "preset": preset, "adapter": adapter})
    assert xlnet("inspect", directory) == 0
    found = table(capsys)
    assert ("trained on", "not said") in found
    assert found.count(("figures", "F1 0.5")) == 2
    assert ("preset", "mini: English") in found and ("adapter", "mini: English") in found
    (data,) = (value for label, value in found if label == "data")
    assert data.endswith("word ...") and len(data) <= 200


def test_json_is_the_file(directory, capsys):
    assert xlnet("inspect", "--json", directory) == 0
    report = json.loads(capsys.readouterr().out)
    files = report.pop("files")
    assert report.pop("format") == "saved_model"
    assert report == json.loads((directory / FILE).read_text(encoding="utf-8"))
    assert files["3/saved_model.pb"] == (directory / "saved_model.pb").stat().st_size


def test_without_details(directory, spam, capsys):  # noqa: F811
    details = json.loads((directory / FILE).read_text(encoding="utf-8"))
    without_details(directory)
    assert xlnet("inspect", "--json", directory) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["signatures"] == details["signatures"]
    assert report["parameters"] == spam.model.count_params()
    assert report["versions"] == {"tensorflow": tf.__version__}
    assert xlnet("inspect", directory) == 0
    found = dict(table(capsys))
    assert found["details"] == f"none: there is no {FILE}"
    assert found["written with"] == f"tensorflow {tf.__version__}"


def test_a_model_of_another_program_without_weights(tmp_path, capsys):
    model = tf.Module()
    spec = tf.TensorSpec(None, tf.float32, "x")
    model.half = tf.function(lambda x: {"y": x / 2}, input_signature=[spec])
    tf.saved_model.save(model, str(tmp_path / "1"), {"half": model.half})
    assert xlnet("inspect", tmp_path / "1") == 0
    found = dict(table(capsys))
    assert found["signature"] == "half" and found["input"] == "x: float32 any shape"
    assert found["parameters"].startswith("0 (")


def cut_details(directory):
    (directory / FILE).write_bytes((directory / FILE).read_bytes()[:-9])


def binary_details(directory):
    (directory / FILE).write_bytes(b"\xff\x00")


def details_of_another_format(directory):
    edit(directory, format_version=2)


def details_of_other_types(directory):
    edit(directory, signatures=["serving_default"])


def missing_details(directory):
    (directory / FILE).write_text('{"format_version": 1}')


def link_out_of_the_directory(directory):
    without_details(directory)
    (directory / FILE).symlink_to(directory / "../../../other.json")
    (directory / "../../../other.json").write_text("{}")


def cut_graph(directory):
    without_details(directory)
    file = directory / "saved_model.pb"
    file.write_bytes(file.read_bytes()[:-50])


def empty_graph(directory):
    without_details(directory)
    (directory / "saved_model.pb").write_bytes(b"")


def cut_weights(directory):
    without_details(directory)
    file = directory / "variables" / "variables.index"
    file.write_bytes(file.read_bytes()[:50])


@pytest.mark.parametrize(
    "damage, message",
    [
        (cut_details, "model_details.json is not JSON"),
        (binary_details, "model_details.json is not JSON"),
        (
            details_of_another_format,
            "has format_version=2, and this version of keras_xlnet reads 1",
        ),
        (details_of_other_types, "model_details.json is damaged: AttributeError"),
        (missing_details, "model_details.json is damaged: KeyError: 'model'"),
        (link_out_of_the_directory, "which is outside its directory"),
        (cut_graph, "saved_model.pb is damaged"),
        (empty_graph, "has no graph with the tag 'serve'"),
        (cut_weights, "variables.index is damaged"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_damaged_exports_are_one_line(damage, message, directory, capsys):
    damage(directory)
    assert xlnet("inspect", directory) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("xlnet: ") and message in captured.err
    assert captured.err.count("\n") == 1 and not captured.out


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--task", "text_classifier"], "--task is for checkpoints, and "),
        (["--num_heads", "2"], "['num_heads'] are for files of the old keras-xlnet, not for exp"),
        (["--format", "preset"], "config.json is missing"),
    ],
)
def test_flags_of_checkpoints(flags, message, directory, capsys):
    assert xlnet("inspect", *flags, directory) == 1
    assert message in capsys.readouterr().err


# === ONNX and LiteRT ===


@pytest.fixture
def networks(spam, tmp_path, monkeypatch):  # noqa: F811
    """A directory with the details of an export, and a small network in place of the model's."""
    done = subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(subprocess, "run", lambda command, **options: done)
    directory = export(spam.model, tmp_path / "spam", format="litert", trained_on="messages")
    x = keras.Input((None,), dtype="int32", name="ids")
    network = keras.Model({"ids": x}, {"y": ops.expand_dims(ops.cast(x, "float32") + 1, -1)})
    write_litert(network, directory / "model.tflite")
    return directory


def test_a_network_as_a_table(networks, capsys):
    for path in (networks, networks / "model.tflite"):
        assert xlnet("inspect", path) == 0
        rows = table(capsys)
        found = dict(rows)
        assert (found["format"], found["model"]) == ("LiteRT", "XLNetTextClassifier")
        assert found["classes"] == ", ".join(CLASS_NAMES)
        assert (found["quantization"], found["sequence_length"]) == ("none", "24")
        assert ("input", "token_ids: int32 (None, None)") in rows
        assert ("output", "probabilities: float32 (None, 2)") in rows
        assert found["trained on"] == "messages"
        assert found["command"].startswith("python predict.py ")


def test_a_network_without_details(networks, capsys):
    # The details are about the file of their name.
    other = shutil.copy(networks / "model.tflite", networks / "other.tflite")
    (networks / "model_details.json").unlink()
    for path in (other, networks):
        assert xlnet("inspect", path) == 0
        rows = table(capsys)
        assert dict(rows)["details"] == "none: there is no model_details.json"
        assert ("input", "ids: int32 (None, None)") in rows
        assert ("output", "y: float32 (None, None, 1)") in rows


def test_an_onnx_network(tmp_path, capsys):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    shapes = {"x": (1, ["batch", 3]), "y": (1, ["batch", 3])}
    x, y = (onnx.helper.make_tensor_value_info(name, *shape) for name, shape in shapes.items())
    graph = onnx.helper.make_graph([onnx.helper.make_node("Abs", ["x"], ["y"])], "g", [x], [y])
    opset = onnx.helper.make_opsetid("", 20)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10)
    onnx.save(model, tmp_path / "abs.onnx")
    assert xlnet("inspect", tmp_path / "abs.onnx") == 0
    rows = table(capsys)
    assert ("format", "ONNX") in rows
    assert ("input", "x: float32 (None, 3)") in rows and ("output", "y: float32 (None, 3)") in rows


@pytest.mark.parametrize("name", ["model.onnx", "model.tflite"])
def test_a_damaged_network(name, tmp_path, capsys):
    if name == "model.onnx":
        pytest.importorskip("onnxruntime")
    (tmp_path / name).write_bytes(b"\0" * 99)
    assert xlnet("inspect", tmp_path / name) == 1
    assert f"{name} is damaged" in capsys.readouterr().err


def test_damaged_details_of_a_network(networks, capsys):
    details = json.loads((networks / "model_details.json").read_text(encoding="utf-8"))
    del details["run"]
    (networks / "model_details.json").write_text(json.dumps(details), encoding="utf-8")
    assert xlnet("inspect", networks / "model.tflite") == 1
    assert "model_details.json is damaged: KeyError: 'run'" in capsys.readouterr().err
