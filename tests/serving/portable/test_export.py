"""`export` to ONNX and LiteRT, whose files are read in processes without this package."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from keras_xlnet.models import XLNetTextClassifier, XLNetTextEmbedder, XLNetTextRegressor
from keras_xlnet.preprocessing import (
    XLNetTextEmbedderPreprocessor,
    XLNetTextRegressorPreprocessor,
)
from keras_xlnet.serving import export
from keras_xlnet.serving.portable.predict import TextModel
from tests.serving.portable.conftest import PAIRS, TEXTS, make_backbone

# Each conversion is a process of 10 to 20 seconds.
pytestmark = pytest.mark.slow
SENTENCES = [
    "a moving and beautiful film",
    "two hours that never end , and a plot without sense",
    "the actors are wonderful",
    "it is dull",
    "i laughed from the first scene to the last one",
    "a waste of time and talent",
]


@pytest.fixture(params=["onnx", "litert"])
def format(request):
    modules = ("torch", "onnx", "onnxscript", "onnxruntime") if request.param == "onnx" else ()
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    return request.param


def test_a_classifier(classifier, tmp_path, format):
    directory = export(classifier, tmp_path / "model", format=format)
    files = {path.name for path in directory.iterdir()}
    network = {"onnx": "model.onnx", "litert": "model.tflite"}[format]
    programs = {"predict.py", "xlnet_text"}
    assert files == {network, "model.json", "model_details.json", "spiece.model"} | programs
    check_versions(directory / network)

    text_model = TextModel(directory)
    expected = classifier.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(text_model(TEXTS), expected, atol=1e-5)
    # Other numbers of rows, and lengths from 16 to 24.
    for row, text in enumerate(TEXTS):
        np.testing.assert_allclose(text_model([text]), expected[row : row + 1], atol=1e-5)
    pairs = classifier.predict((TEXTS, PAIRS), verbose=0)
    np.testing.assert_allclose(text_model(TEXTS, PAIRS), pairs, atol=1e-5)

    answers = run_alone(directory, TEXTS)
    assert [answer["text"] for answer in answers] == TEXTS
    assert [answer["label"] for answer in answers] == text_model.labels(expected)
    found = [answer["probabilities"] for answer in answers]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def check_versions(file):
    """Checks that ONNX Runtime 1.17 reads the version of a file."""
    if file.suffix == ".onnx":
        model = importlib.import_module("onnx").load(file)
        assert (model.ir_version, [x.version for x in model.opset_import]) == (9, [20])


def run_alone(directory, texts):
    """What `predict.py` prints in a process that cannot import Keras and this package."""
    code = (
        "import runpy, sys; sys.modules.update(keras=None, keras_xlnet=None); "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    # Python takes the rest of the command line for `sys.argv[1:]`.
    code = f"import sys; sys.argv = sys.argv[1:]; {code}"
    environment = {key: os.environ[key] for key in os.environ if key != "PYTHONPATH"}
    result = subprocess.run(
        [sys.executable, "-c", code, directory / "predict.py", *texts],
        env={**environment, "PYTHONIOENCODING": "utf-8"},
        cwd=directory,
        stdout=subprocess.PIPE,
        check=True,
        encoding="utf-8",
    )
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_pooling_of_pairs_and_lora(preprocessor, tmp_path, format):
    model = XLNetTextClassifier(make_backbone(), 2, preprocessor, pooling="pair")
    model.enable_lora(2)
    for weight in model.trainable_variables:
        weight.assign(weight + 0.1)
    text_model = TextModel(export(model, tmp_path / "model", format=format))
    expected = model.predict((TEXTS, PAIRS), verbose=0)
    np.testing.assert_allclose(text_model(TEXTS, PAIRS), expected, atol=1e-5)


def test_a_regressor_of_half_precision(tokenizer, tmp_path, format):
    preprocessor = XLNetTextRegressorPreprocessor(tokenizer, sequence_length=24)
    model = XLNetTextRegressor(make_backbone(dtype="mixed_bfloat16"), preprocessor)
    text_model = TextModel(export(model, tmp_path / "model", format=format))
    # The file computes in float32.
    model.save_to_preset(tmp_path / "preset")
    full = XLNetTextRegressor.from_preset(tmp_path / "preset", dtype="float32")
    expected = full.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(text_model(TEXTS), expected, atol=1e-5)


def test_an_embedder(tokenizer, tmp_path, format):
    preprocessor = XLNetTextEmbedderPreprocessor(tokenizer, sequence_length=24)
    model = XLNetTextEmbedder(make_backbone(2), preprocessor)
    text_model = TextModel(export(model, tmp_path / "model", format=format))
    np.testing.assert_allclose(text_model(TEXTS), model.embed(TEXTS), atol=1e-5)


def test_int8_of_a_trained_model(tmp_path, format):
    model = XLNetTextClassifier.from_preset("xlnet_mini_en", adapter="sentiment")
    directory = export(model, tmp_path / "model", format=format, quantization="int8")
    text_model = TextModel(directory)
    expected = model.predict(SENTENCES, verbose=0)
    found = text_model(SENTENCES)
    assert text_model.labels(found) == text_model.labels(expected)
    difference = np.abs(found - expected).max()
    assert 1e-5 < difference < 0.1
    (network,) = directory.glob("model.[ot]*")
    check_versions(network)
    assert network.stat().st_size < 0.3 * 4 * model.count_params()
