"""The worked example of CONTRIBUTING.md, "Adding a task", block by block."""

import pathlib
import re

import keras
import numpy as np
import pytest

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


@pytest.fixture
def example(tmp_path, monkeypatch):
    """The names that the code blocks define; the folder is where they wrote."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "example"}
    tasks, objects = dict(TASKS), dict(keras.saving.get_custom_objects())
    try:
        for block in blocks("python"):
            exec(block, names)
        yield names
    finally:
        TASKS.clear()
        TASKS.update(tasks)
        keras.saving.get_custom_objects().clear()
        keras.saving.get_custom_objects().update(objects)


def test_saves_and_loads_every_weight(example):
    assert len(blocks("python")) == 4
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
        assert xlnet_command.run(xlnet_command.parse(command.split())) == 0, command
    report = capsys.readouterr().out
    assert "XLNetTokenRegressor (token_regressor)" in report
    assert "missing               nothing" in report
    assert "as token_regressor" in report and "worst difference 0," in report


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
