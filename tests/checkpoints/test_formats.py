"""Every task in every format, through the functions that take any format."""

import numpy as np
import pytest

from keras_xlnet.checkpoints import (
    FORMATS,
    TASKS,
    detect_format,
    detect_task,
    load_checkpoint,
    load_tokenizer,
    save_checkpoint,
)
from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.text import XLNetPreprocessor, XLNetTokenizer
from tests.checkpoints.new_models import new_model


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("task", [None, *TASKS])
def test_models_come_back_with_every_weight(task, format, rng, tmp_path):
    if format == "original" and task == "token_classifier":
        pytest.skip("the original has no such model")
    model = new_model(task)
    for weight in model.weights:
        weight.assign(rng.normal(size=weight.shape))
    save_checkpoint(model, tmp_path, format)
    assert (detect_format(tmp_path), detect_task(tmp_path)) == (format, task)
    copy = load_checkpoint(tmp_path, task=task)
    assert type(copy) is type(model)
    expected = {weight.path: weight for weight in model.weights}
    assert {weight.path for weight in copy.weights} == set(expected)
    for weight in copy.weights:
        np.testing.assert_array_equal(weight, expected[weight.path], err_msg=weight.path)
    encoder = load_checkpoint(tmp_path)
    for weight in encoder.weights:
        np.testing.assert_array_equal(weight, expected[weight.path], err_msg=weight.path)


@pytest.mark.parametrize("format", FORMATS)
def test_tokenizers_come_back(format, golden_dir, tmp_path):
    tokenizer = XLNetTokenizer(golden_dir / "spiece.model", remove_accents=True)
    backbone = XLNetBackbone(200, 1, 2, 8, 12)
    save_checkpoint(backbone, tmp_path / "alone", format, tokenizer=tokenizer)
    model = XLNetTextClassifier(backbone, 2, preprocessor=XLNetPreprocessor(tokenizer, 8))
    # The preprocessor's is the one that is written.
    other = XLNetTokenizer(golden_dir / "spiece.model", lowercase=True, remove_accents=True)
    save_checkpoint(model, tmp_path / "model", format, tokenizer=other)
    for name in ("alone", "model"):
        assert load_tokenizer(tmp_path / name)("A é").numpy().tolist() == (
            tokenizer("A é").numpy().tolist()
        )
    assert load_tokenizer(tmp_path / "model").lowercase is False


def test_no_tokenizer(tmp_path):
    for format in FORMATS:
        save_checkpoint(XLNetBackbone(20, 1, 2, 8, 12), tmp_path / format, format)
        assert load_tokenizer(tmp_path / format) is None


def test_bad_arguments(tmp_path):
    save_checkpoint(XLNetBackbone(20, 1, 2, 8, 12), tmp_path / "preset", "preset")
    with pytest.raises(ValueError, match="is a preset for the task None, not 'text_classifier'"):
        load_checkpoint(tmp_path / "preset", task="text_classifier")
    with pytest.raises(ValueError, match="`task` must be one of"):
        load_checkpoint(tmp_path / "preset", task="translation")
    for function in (load_checkpoint, detect_task, load_tokenizer):
        with pytest.raises(ValueError, match="`format` must be one of"):
            function(tmp_path / "preset", "onnx")
        with pytest.raises(FileNotFoundError, match="There is no .*none"):
            function(tmp_path / "none")
    with pytest.raises(ValueError, match="`format` must be one of"):
        save_checkpoint(XLNetBackbone(20, 1, 2, 8, 12), tmp_path / "out", "onnx")
    assert not (tmp_path / "out").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="contains no model"):
        detect_format(tmp_path / "empty")
