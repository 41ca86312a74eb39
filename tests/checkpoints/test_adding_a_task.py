"""The worked example of CONTRIBUTING.md, "Adding a task", block by block."""

import csv
import io
import json
import pathlib
import re
import shlex

import keras
import numpy as np
import pytest
import tensorflow as tf

import xlnet_command
from keras_xlnet.checkpoints import (
    TASKS,
    detect_task,
    load_checkpoint,
    load_original,
    save_checkpoint,
    save_original,
)
from keras_xlnet.models import XLNetBackbone

PAGE = pathlib.Path(__file__).parents[2] / "CONTRIBUTING.md"
IDS = {"token_ids": np.random.default_rng(4).integers(0, 100, (3, 7))}


def blocks(language):
    section = PAGE.read_text(encoding="utf-8").split("## Adding a task\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The names that the code blocks define; the folder is where they wrote."""
    names = {"__name__": "example"}
    objects = dict(keras.saving.get_custom_objects())
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path_factory.mktemp("example"))
            for block in blocks("python"):
                exec(block, names)
            yield names
    finally:
        keras.saving.get_custom_objects().clear()
        keras.saving.get_custom_objects().update(objects)


def test_saves_and_loads_every_weight(example):
    assert len(blocks("python")) == 3
    saved = type(example["model"]).from_preset("preset")
    model, *others = (
        saved,
        example["model"],
        load_checkpoint("preset", task="token_regressor"),
        load_checkpoint("huggingface", task="token_regressor"),
    )
    expected = np.asarray(model(IDS))
    assert expected.shape == (3, 7, 1) and expected.std() > 0
    for other in others:
        np.testing.assert_array_equal(other(IDS), expected)
    assert detect_task("preset") == detect_task("huggingface") == "token_regressor"


def test_takes_words(example):
    assert [len(row) for row in example["numbers"]] == [5, 2]
    assert all(isinstance(number, float) for row in example["numbers"] for number in row)


def test_more_labels_are_another_task(example):
    model = TASKS["token_classifier"].model(XLNetBackbone(100, 2, 2, 16, 32), num_classes=3)
    save_checkpoint(model, "three", "huggingface")
    assert detect_task("three") == "token_classifier"


def test_commands_find_it(example, capsys):
    (commands,) = blocks("sh")
    for command in commands.splitlines():
        if command.startswith("echo"):
            _, text, _, file = shlex.split(command)
            pathlib.Path(file).write_text(f"{text}\n")
        else:
            assert xlnet_command.run(xlnet_command.parse(command.split())) == 0, command
    report = capsys.readouterr().out
    assert "XLNetTokenRegressor (token_regressor)" in report
    assert "missing               nothing" in report
    assert "as token_regressor" in report and "worst difference 0," in report
    (row,) = csv.DictReader(io.StringIO(pathlib.Path("numbers.csv").read_text()))
    assert row["text"] == "a rose is a rose"
    np.testing.assert_allclose(json.loads(row["values"]), example["numbers"][0], atol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="SavedModels need TensorFlow")
def test_exports_take_texts_and_words(example):
    served = tf.saved_model.load("served").signatures
    texts = tf.constant([" ".join(words) for words in example["sentences"]])
    of_texts = served["serving_default"](text=texts)
    words = tf.ragged.constant(example["sentences"]).to_tensor()
    of_words = served["serving_words"](words=words)
    assert of_texts["num_words"].numpy().tolist() == [5, 2]
    np.testing.assert_array_equal(of_texts["word"], words)
    for outputs in (of_texts, of_words):
        assert outputs["values"].shape == (2, 5, 1)
        for row, numbers in zip(outputs["values"].numpy(), example["numbers"], strict=True):
            np.testing.assert_allclose(row[: len(numbers), 0], numbers, atol=1e-5)
            assert not row[len(numbers) :].any()


def test_other_formats_need_the_file_in_the_package(example):
    model = example["XLNetTokenRegressor"](XLNetBackbone(26, 2, 2, 16, 32), example["preprocessor"])
    with pytest.raises(ValueError, match="a class of this package for format='onnx'.*TokenRegr"):
        example["export"](model, "network", format="onnx")


def test_the_original_has_no_such_model(example, tmp_path, golden_dir):
    with pytest.raises(ValueError, match="no model for the task 'token_regressor'"):
        save_original(example["model"], tmp_path / "out")
    with pytest.raises(ValueError, match="no model for the task 'token_regressor'"):
        load_original(golden_dir / "tiny_ckpt", task="token_regressor")


def test_transformers_computes_the_same(example):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: transformers)")
    reason = "transformers is not installed (extra: transformers)"
    transformers = pytest.importorskip("transformers", reason=reason)
    theirs = transformers.XLNetForTokenClassification.from_pretrained("huggingface").eval()
    with torch.no_grad():
        logits = theirs(input_ids=torch.tensor(IDS["token_ids"])).logits
    np.testing.assert_allclose(example["model"](IDS), logits, rtol=0, atol=1e-5)
