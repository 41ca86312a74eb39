import os
import pathlib
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.models import XLNetTextRegressor
from keras_xlnet.preprocessing import (
    XLNetTextClassifierPreprocessor,
    XLNetTextRegressorPreprocessor,
)
from keras_xlnet.serving import export
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.serving.conftest import PAIRS, TEXTS, make_classifier
from tests.serving.fresh_process import run_in_a_fresh_process

DOCS = pathlib.Path(__file__).parents[2] / "docs"

# Half precision rounds otherwise where operations are joined, as in the process that serves.
pytestmark = pytest.mark.optimized_graphs


@pytest.fixture(scope="module")
def short(preprocessor):
    """A preprocessor with a sequence length too short for pairs, so that exports are faster."""
    return XLNetTextClassifierPreprocessor(
        preprocessor.tokenizer, sequence_length=4, padding_side="right"
    )


@pytest.fixture(scope="module")
def exported(spam, short, tmp_path_factory):
    """Models, and the directories to which they were exported."""
    parent = tmp_path_factory.mktemp("models")
    names = ["prize", "call", "lunch"]
    quantized = make_classifier(short, 3)
    quantized.quantize("int8")
    models = {
        "sigmoid": (
            make_classifier(short, 3, "mixed_float16", activation="sigmoid", class_names=names),
            {"threshold": 0.4},
        ),
        "linear": (make_classifier(short, 1, "mixed_bfloat16", 8, activation="linear"), {}),
        "static": (quantized, {"batch_size": len(TEXTS)}),
    }
    exports = {"spam": (spam.model, spam.directory)}
    for name, (model, options) in models.items():
        # Exports to an empty directory.
        (parent / name).mkdir()
        exports[name] = (model, export(model, str(parent / name), **options))
        assert exports[name][1] == parent / name
    return exports


@pytest.fixture(scope="module")
def reloaded(tmp_path_factory):
    """The folder of the process without keras_xlnet, which `served` runs."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def served(exported, preprocessor, short, reloaded):
    """`served(model, signature, rows)` returns outputs of a process without keras_xlnet."""
    requests = {
        ("spam", "serving_default", None): {"text": TEXTS},
        ("spam", "serving_default", 1): {"text": TEXTS[:1]},
        ("spam", "serving_default", 0): {"text": np.empty(0, "S1")},
        ("spam", "serving_pair", None): {"text": TEXTS, "pair": PAIRS},
        ("spam", "serving_tokens", None): tokens(preprocessor, TEXTS),
    }
    for name in ("sigmoid", "linear", "static"):
        requests[name, "serving_default", None] = {"text": TEXTS}
        requests[name, "serving_tokens", None] = tokens(short, TEXTS)
    directories = {name: directory for name, (_, directory) in exported.items()}
    commands = saved_model_cli_commands(directories["spam"], reloaded)
    outputs = run_in_a_fresh_process(requests, directories, reloaded, commands)
    return lambda model, signature="serving_default", rows=None: outputs[model, signature, rows]


def tokens(preprocessor, texts):
    return {key: value.numpy() for key, value in preprocessor(list(map(to_bytes, texts))).items()}


def to_bytes(text):
    return text.encode() if isinstance(text, str) else text


def decoded(labels):
    return [label.decode() for label in labels]


def test_served_without_this_library_equals_predict(served, spam):
    outputs = served("spam")
    assert sorted(outputs) == ["label", "probabilities"]
    np.testing.assert_allclose(outputs["probabilities"], spam.probabilities, atol=1e-6)
    assert outputs["probabilities"].dtype == np.float32
    assert decoded(outputs["label"]) == spam.labels
    assert len(set(spam.labels)) == 2


def test_any_number_of_rows(served, spam):
    one = served("spam", rows=1)
    np.testing.assert_allclose(one["probabilities"], spam.probabilities[:1], atol=1e-6)
    assert served("spam", rows=0)["probabilities"].shape == (0, 2)


@pytest.mark.parametrize("name", ["spam", "static", "sigmoid", "linear"])
def test_tokens_give_the_same_as_their_texts(served, name):
    text, token = served(name), served(name, "serving_tokens")
    assert sorted(text) == sorted(token)
    for key, value in text.items():
        np.testing.assert_array_equal(token[key], value)


def test_pairs(served, spam):
    expected = spam.model.predict((TEXTS, PAIRS), verbose=0)
    outputs = served("spam", "serving_pair")
    np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-6)
    assert np.abs(expected - spam.probabilities).max() > 1e-3


def test_static_batch(exported):
    for signature in signatures(exported["static"][1]).values():
        for info in signature.inputs.values():
            assert shape_of(info)[0] == len(TEXTS)
        assert shape_of(signature.outputs["probabilities"]) == [len(TEXTS), 3]
        assert shape_of(signature.outputs["label"]) == [len(TEXTS)]


def test_sigmoid_labels_are_vectors_of_0_and_1(served, exported):
    probabilities = exported["sigmoid"][0].predict(TEXTS, verbose=0)
    outputs = served("sigmoid")
    np.testing.assert_allclose(outputs["probabilities"], probabilities, atol=1e-6)
    np.testing.assert_array_equal(outputs["label"], probabilities >= 0.4)
    assert outputs["label"].dtype == np.int32 and 0 < outputs["label"].mean() < 1


def test_linear_gives_only_values(served, exported):
    outputs = served("linear")
    assert list(outputs) == ["values"]
    expected = exported["linear"][0].predict(TEXTS, verbose=0)
    np.testing.assert_allclose(outputs["values"], expected, atol=1e-6)


def test_most_probable_of_three_classes_without_names(served, exported):
    probabilities = exported["static"][0].predict(TEXTS, verbose=0)
    outputs = served("static")
    np.testing.assert_allclose(outputs["probabilities"], probabilities, atol=1e-6)
    labels = decoded(outputs["label"])
    assert labels == [str(i) for i in probabilities.argmax(-1)] and len(set(labels)) > 1


def signatures(directory):
    (meta_graph,) = read_saved_model(directory).meta_graphs
    assert list(meta_graph.meta_info_def.tags) == ["serve"]
    return {k: v for k, v in meta_graph.signature_def.items() if k.startswith("serving")}


def read_saved_model(directory):
    from tensorflow.core.protobuf import saved_model_pb2

    return saved_model_pb2.SavedModel.FromString((directory / "saved_model.pb").read_bytes())


def shape_of(info):
    return [dim.size for dim in info.tensor_shape.dim]


def test_signatures(spam, exported):
    found = signatures(spam.directory)
    inputs = {name: sorted(signature.inputs) for name, signature in found.items()}
    assert inputs == {
        "serving_default": ["text"],
        "serving_pair": ["pair", "text"],
        "serving_tokens": ["padding_mask", "segment_ids", "token_ids"],
    }
    for name, info in found["serving_tokens"].inputs.items():
        assert info.dtype == (tf.bool if name == "padding_mask" else tf.int32).as_datatype_enum
        assert shape_of(info) == [-1, -1]
    for signature in found.values():
        assert shape_of(signature.outputs["probabilities"]) == [-1, 2]
        assert shape_of(signature.outputs["label"]) == [-1]
    # Pairs need 5 tokens.
    assert sorted(signatures(exported["static"][1])) == ["serving_default", "serving_tokens"]


def test_no_other_files_are_left(spam):
    assert os.listdir(spam.directory.parent) == ["1"]
    # A server often runs as another user.
    assert spam.directory.stat().st_mode & 0o777 == 0o777 & ~current_umask()
    names = {"assets", "assets.extra", "fingerprint.pb", "saved_model.pb", "variables"}
    assert set(os.listdir(spam.directory)) == names


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def saved_model_cli_commands(model, output):
    arguments = ["--dir", str(model), "--tag_set", "serve"]
    arguments += ["--signature_def", "serving_default"]
    expression = 'text=["win a free prize now", "see you at lunch"]'
    show = ["saved_model_cli", "show", *arguments]
    execute = ["saved_model_cli", "run", *arguments, "--input_exprs", expression]
    return [show, [*execute, "--outdir", str(output)]]


@pytest.mark.usefixtures("served")
def test_saved_model_cli(spam, reloaded):
    shown = (reloaded / "printed.txt").read_text()
    page = (
        (DOCS / "serving.md").read_text(encoding="utf-8").partition("prints, among other lines,")[2]
    )
    for line in re.findall("^ {4}.*", page.partition("To run the model")[0], re.MULTILINE):
        assert line.strip() in shown
    probabilities = np.load(reloaded / "probabilities.npy")
    np.testing.assert_allclose(probabilities, spam.probabilities[:2], atol=1e-6)
    labels = np.load(reloaded / "label.npy", allow_pickle=True)
    assert decoded(labels) == spam.labels[:2]


def test_a_non_empty_directory_is_refused(short, tmp_path):
    model = make_classifier(short, 2)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="`directory` must .* which is not empty"):
        export(model, tmp_path)
    with pytest.raises(FileExistsError, match="`directory` must .* which is a file"):
        export(model, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_failed_export_leaves_no_files(short, tmp_path, monkeypatch):
    def write_half(_, path, **kwargs):
        pathlib.Path(path).mkdir()
        (pathlib.Path(path) / "saved_model.pb").write_bytes(b"half")
        raise OSError("no space left on device")

    archive = type(keras.export.ExportArchive())
    monkeypatch.setattr(archive, "write_out", write_half)
    with pytest.raises(OSError, match="no space left"):
        export(make_classifier(short, 2), tmp_path / "spam" / "1")
    assert os.listdir(tmp_path / "spam") == []


@pytest.mark.parametrize(
    "make, error, message",
    [
        (
            lambda p: keras.Sequential(),
            TypeError,
            "`model` must be one of .*XLNetTextCl.*: Sequential",
        ),
        (lambda p: make_classifier(None, 2), ValueError, "`model` must have a preprocessor"),
        (
            lambda p: make_classifier(XLNetTextClassifierPreprocessor(XLNetTokenizer(None)), 2),
            ValueError,
            "`model` must have a tokenizer with a vocabulary",
        ),
    ],
)
def test_a_model_without_text_inputs_is_refused(short, tmp_path, make, error, message):
    with pytest.raises(error, match=message):
        export(make(short), tmp_path / "a" / "1")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"threshold": 1.5}, "`threshold` must be a number, from 0 to 1. Received: threshold=1.5"),
        ({"threshold": "0.5"}, "`threshold` must be a number"),
        ({"threshold": True}, "`threshold` must be a number"),
        ({"batch_size": 0}, "`batch_size` must be a positive integer"),
        ({"batch_size": 2.0}, "`batch_size` must be a positive integer"),
        ({"warmup": "one"}, "`warmup` must have a non-empty list"),
    ],
)
def test_wrong_arguments(short, tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        export(make_classifier(short, 2), tmp_path / "a" / "1", **arguments)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("arguments", [(3, "softmax"), (1, "linear")])
def test_a_threshold_without_effect_is_refused(short, tmp_path, arguments):
    model = make_classifier(short, arguments[0], activation=arguments[1])
    with pytest.raises(ValueError, match="`threshold` can only be given for two classes"):
        export(model, tmp_path / "a", threshold=0.7)


def test_a_task_without_options_takes_none(short, tmp_path):
    regressor = XLNetTextRegressor(
        make_classifier(short, 2).backbone, XLNetTextRegressorPreprocessor(short.tokenizer, 12)
    )
    with pytest.raises(ValueError, match="no argument 'threshold' for XLNetTextRegressor$"):
        export(regressor, tmp_path / "a" / "1", threshold=0.5)
