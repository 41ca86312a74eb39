"""What `export` refuses for ONNX and LiteRT, before it converts anything."""

import importlib.util

import pytest

from keras_xlnet.models import (
    TransformerXLLanguageModel,
    XLNetPermutationLM,
    XLNetTextClassifier,
)
from keras_xlnet.serving import export
from keras_xlnet.serving.portable import portable_writer
from keras_xlnet.tokenizers import VocabularyTokenizer
from tests.serving.portable.conftest import make_backbone


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "tflite"}, "`format` must be one of .*'litert'.*format='tflite'"),
        (
            {"format": "litert", "quantization": "int4"},
            "`quantization` must be one of .*'int8'.*quantization='int4'",
        ),
        ({"quantization": "int8"}, "`quantization` is no argument for format='saved_model'"),
        ({"format": "litert", "batch_size": 2}, "`batch_size` is no argument for format='litert'"),
        ({"format": "onnx", "warmup": ["a"]}, "`warmup` is no argument for format='onnx'"),
        ({"format": "onnx", "threshold": 0.3}, "`threshold` is no argument for format='onnx'"),
    ],
)
def test_arguments(classifier, tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        export(classifier, tmp_path / "model", **arguments)
    assert not [*tmp_path.iterdir()]


def test_other_models(tmp_path):
    with pytest.raises(TypeError, match="XLNetTextClassifier, .*'litert'.*XLNetBackbone"):
        export(make_backbone(), tmp_path / "model", format="litert")


def language_model(tokenizer, **arguments):
    return TransformerXLLanguageModel(200, 1, 2, 16, 32, tokenizer=tokenizer, **arguments)


def test_language_models(tokenizer, tmp_path):
    words = VocabularyTokenizer([f"w{i}" for i in range(200)])
    for model, message in [
        (language_model(tokenizer, memory_length=4, stateful=True, batch_size=2), "stateful=False"),
        (language_model(words), "XLNetTokenizer.*Received: tokenizer=<Vocab"),
        (language_model(None), "must have a tokenizer"),
        (
            XLNetPermutationLM(make_backbone(), objective="denoising", tokenizer=tokenizer),
            "objective='permutation'",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            export(model, tmp_path / "model", format="litert")


def test_long_documents(preprocessor, tmp_path):
    model = XLNetTextClassifier(
        make_backbone(), 2, preprocessor, long_document="windows", segment_length=8
    )
    with pytest.raises(ValueError, match="long_document='truncate'.*'windows'"):
        export(model, tmp_path / "model", format="litert")


def test_a_quantized_model(preprocessor, tmp_path):
    model = XLNetTextClassifier(make_backbone(), 2, preprocessor)
    model.quantize("int8")
    with pytest.raises(ValueError, match="`model` must not be quantized.*quantization='int8'"):
        export(model, tmp_path / "model", format="litert")


def test_a_package_is_missing(classifier, tmp_path, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "onnxscript" else find_spec(name)
    )
    monkeypatch.setitem(
        portable_writer._FORMATS,
        "onnx",
        portable_writer._Format("model.onnx", "torch", ("keras", "onnxscript"), "onnx", "onnx"),
    )
    with pytest.raises(ImportError, match=r"'onnxscript'.*pip install \"\.\[onnx\]\""):
        export(classifier, tmp_path / "model", format="onnx")


def test_a_failed_conversion_says_why_and_leaves_no_files(classifier, tmp_path, monkeypatch):
    monkeypatch.setitem(
        portable_writer._FORMATS,
        "litert",
        # No backend of Keras.
        portable_writer._Format("model.tflite", "none", (), "litert", "litert"),
    )
    with pytest.raises(RuntimeError, match="(?s)format='litert' failed.*Unable to import backend"):
        export(classifier, tmp_path / "model", format="litert")
    assert not [*tmp_path.iterdir()]
