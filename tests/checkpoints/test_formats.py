"""Every task in every format, through the functions that take any format."""

import keras
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
from keras_xlnet.checkpoints.formats import FAMILIES, not_in_format
from keras_xlnet.checkpoints.tasks import BACKBONE
from keras_xlnet.models import (
    TransformerXLLanguageModel,
    XLNetBackbone,
    XLNetTextClassifier,
    XLNetTextRegressor,
)
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.checkpoints.new_models import new_model
from tests.small_models import PUBLIC_MODELS

# What other implementations do not have is refused by name.
NOT_THERE = [("huggingface", task) for task in ("ranker", "multi_task")] + [
    ("original", task) for task in ("token_classifier", "ranker", "text_embedder", "multi_task")
]


@pytest.mark.parametrize("cls", PUBLIC_MODELS)
def test_every_public_model_is_in_the_table(cls):
    assert [task.model for task in (BACKBONE, *TASKS.values())].count(cls) == 1


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("task", [None, *TASKS])
def test_models_come_back_with_every_weight(task, format, rng, tmp_path):
    model = new_model(task)
    if (format, task) in NOT_THERE:
        message = f"has no model for the task '{task}' .{type(model).__name__}"
        with pytest.raises(ValueError, match=message):
            save_checkpoint(model, tmp_path / "out", format)
        with pytest.raises((ValueError, FileNotFoundError), match=f"{message}|is missing"):
            load_checkpoint(tmp_path, format, task=task)
        assert not (tmp_path / "out").exists()
        return
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
    if task not in ("permutation_lm", "language_model", "text_classifier"):
        return
    encoder = load_checkpoint(tmp_path)
    for weight in encoder.weights:
        np.testing.assert_array_equal(weight, expected[weight.path], err_msg=weight.path)


@pytest.mark.parametrize("format", FORMATS)
def test_tokenizers_come_back(format, golden_dir, tmp_path):
    tokenizer = XLNetTokenizer(golden_dir / "spiece.model", remove_accents=True)
    backbone = XLNetBackbone(200, 1, 2, 8, 12)
    save_checkpoint(backbone, tmp_path / "alone", format, tokenizer=tokenizer)
    model = XLNetTextClassifier(
        backbone, 2, preprocessor=XLNetTextClassifierPreprocessor(tokenizer, 8)
    )
    # The preprocessor's is the one that is written.
    other = XLNetTokenizer(golden_dir / "spiece.model", lowercase=True, remove_accents=True)
    save_checkpoint(model, tmp_path / "model", format, tokenizer=other)
    for name in ("alone", "model"):
        assert load_tokenizer(tmp_path / name)("A é").numpy().tolist() == (
            tokenizer("A é").numpy().tolist()
        )
    assert load_tokenizer(tmp_path / "model").lowercase is False


def test_a_preset_of_another_class_is_refused_by_name(tmp_path):
    @keras.saving.register_keras_serializable("tests")
    class Own(XLNetTextClassifier):
        pass

    backbone = XLNetBackbone(20, 1, 2, 8, 12)
    Own(backbone, 2).save_to_preset(tmp_path)
    message = "config.json holds a 'tests>Own', expected one of .*XLNetBackbone.*--task backbone"
    with pytest.raises(ValueError, match=message):
        detect_task(tmp_path)
    with pytest.raises(ValueError, match=message):
        load_checkpoint(tmp_path, task="text_classifier")
    copy = load_checkpoint(tmp_path)
    np.testing.assert_array_equal(copy.weights[0], backbone.weights[0])


def test_what_a_format_cannot_say(tokenizer):
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 8)
    model = XLNetTextClassifier(
        XLNetBackbone(200, 1, 2, 8, 12),
        2,
        class_names=["a", "b"],
        pooling="first",
        long_document="windows",
        segment_length=8,
        preprocessor=preprocessor,
    )
    assert not_in_format(model, "preset") == []
    kept = "preprocessor (its tokenizer is kept)"
    expected = ["long_document='windows'", "segment_length=8", kept]
    assert not_in_format(model, "huggingface") == expected
    more = ["class_names=['a', 'b']", "long_document='windows'", "pooling='first'"]
    assert not_in_format(model, "original") == [*more, "segment_length=8", kept]
    model.backbone.blocks[0].trainable = False
    assert not_in_format(model, "huggingface") == [*expected, "trainability"]
    assert not_in_format(model.backbone, "huggingface") == ["trainability"]
    regressor = XLNetTextRegressor(XLNetBackbone(20, 1, 2, 8, 12), pooling="mean")
    assert not_in_format(regressor, "huggingface") == ["pooling='mean' over real tokens only"]
    backbone = XLNetBackbone(20, 1, 2, 8, 12, memory_length=4, activation="relu")
    assert not_in_format(backbone, "original") == ["memory_length=4"]
    lm = TransformerXLLanguageModel(20, 1, 2, 8, 12, activation="gelu_tanh")
    expected = ["layer_norm_epsilon=1e-05", "activation='gelu_tanh'"]
    assert not_in_format(lm, "original") == expected


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


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_is_opened_as_it_is_loaded(format, tmp_path):
    model = new_model("permutation_lm")
    save_checkpoint(model, tmp_path, format)
    opened = FAMILIES[format].open(tmp_path, "permutation_lm")
    assert not opened.missing_of_encoder() + opened.missing_of_head() + opened.unused()
    assert opened.load() is opened.model
    for ours, theirs in zip(opened.model.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
