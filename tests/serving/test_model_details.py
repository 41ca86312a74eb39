"""The details beside an export: they are those of the model, and of no machine."""

import json
import os

import numpy as np
import pytest
import tensorflow as tf

import keras_xlnet
from keras_xlnet import models, preprocessing
from keras_xlnet.preset_files.adapter_weights import sha256_of_weights
from keras_xlnet.preset_files.export_details import FILE
from keras_xlnet.preset_files.files import sha256_of
from keras_xlnet.preset_files.weights import model_weights
from keras_xlnet.server.json_tensors import parse_request
from keras_xlnet.serving import export
from keras_xlnet.serving.saved_model import write_details
from keras_xlnet.tokenizers import VocabularyTokenizer
from tests.serving.conftest import CLASS_NAMES, make_classifier

SERVED = [x for x in vars(models).values() if getattr(x, "signatures", None)]


def details_of(directory):
    return json.loads((directory / FILE).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def details(spam):
    return details_of(spam.directory)


def test_classes_and_options_are_those_of_the_export(details, spam):
    assert details["model"] == "XLNetTextClassifier"
    assert (details["class_names"], details["multi_label"]) == (CLASS_NAMES, False)
    # That of the argument: the model has the default.
    assert details["options"] == {"threshold": spam.threshold}
    assert details["lengths"] == {"sequence_length": 24, "memory_length": None}
    assert details["parameters"] == spam.model.count_params()
    assert details["dtype_policy"] == "float32"


def test_signatures_are_those_of_the_graph(details, spam):
    loaded = tf.saved_model.load(spam.directory).signatures
    assert set(details["signatures"]) == set(loaded)
    for name, signature in details["signatures"].items():
        specs = loaded[name].structured_input_signature[1], loaded[name].structured_outputs
        for kind, expected in zip(("inputs", "outputs"), specs, strict=True):
            assert signature[kind] == {
                key: {"dtype": spec.dtype.name, "shape": spec.shape.as_list()}
                for key, spec in expected.items()
            }


def test_versions(details):
    import keras
    import tensorflow_text

    assert details["versions"] == {
        "keras_xlnet": keras_xlnet.__version__,
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
        "tensorflow_text": tensorflow_text.__version__,
    }


def test_checksums(details, spam, golden_dir):
    assert details["vocabulary"] == {
        "file": "spiece.model",
        "size": 200,
        "sha256": sha256_of(golden_dir / "spiece.model"),
        "preset": None,
    }
    expected = sha256_of_weights(model_weights(spam.model))
    assert details["weights"] == {"sha256_as_float16": expected}


def test_the_config_makes_the_model(details, spam):
    made = models.XLNetTextClassifier.from_config(details["config"])
    assert [w.shape for w in made.weights] == [w.shape for w in spam.model.weights]
    assert made.class_names == CLASS_NAMES


def test_no_path_of_the_machine_is_in_the_file(spam):
    text = (spam.directory / FILE).read_text(encoding="utf-8")
    for place in (os.getcwd(), os.path.expanduser("~"), str(spam.directory.parent)):
        assert place == "/" or place not in text


def test_the_same_model_has_the_same_details(spam, preprocessor, tmp_path):
    other = tmp_path / "other"
    (other / "assets.extra").mkdir(parents=True)
    (other / "saved_model.pb").write_bytes((spam.directory / "saved_model.pb").read_bytes())
    write_details(spam.model, other, {"threshold": spam.threshold})
    assert (other / FILE).read_bytes() == (spam.directory / FILE).read_bytes()
    # Other weights have another checksum.
    weight = spam.model.weights[-1]
    value = weight.numpy()
    weight.assign(value + 1)
    try:
        write_details(spam.model, other, {"threshold": spam.threshold})
    finally:
        weight.assign(value)
    assert details_of(other)["weights"] != details_of(spam.directory)["weights"]


@pytest.fixture(scope="module")
def made(preprocessor):
    """A small model of each class that is exported, with options of NumPy and of Python."""
    tokenizer = preprocessor.tokenizer
    backbone = models.XLNetBackbone(200, 1, 2, 16, 32)
    words = VocabularyTokenizer.train(["see you now"] * 3, unknown_token="<unk>", min_count=1)
    language_model = models.TransformerXLLanguageModel(
        words.vocabulary_size(), 1, 2, 16, 24, tokenizer=words
    )
    names = ["O", "B-person", "I-person", "B-place", "I-place"]
    found = [
        (make_classifier(preprocessor, 3, activation="sigmoid"), {"threshold": np.float32(0.25)}),
        (
            models.XLNetTextRegressor(
                backbone, preprocessing.XLNetTextRegressorPreprocessor(tokenizer, 4)
            ),
            {"batch_size": 2},
        ),
        (
            models.XLNetTextEmbedder(
                backbone, preprocessing.XLNetTextEmbedderPreprocessor(tokenizer, 24)
            ),
            {},
        ),
        (
            models.XLNetTokenClassifier(
                backbone,
                5,
                preprocessing.XLNetTokenClassifierPreprocessor(tokenizer, 16),
                class_names=names,
            ),
            {},
        ),
        (
            models.XLNetQuestionAnswering(
                backbone,
                preprocessing.XLNetQuestionAnsweringPreprocessor(
                    tokenizer, 32, doc_stride=8, max_question_length=12
                ),
                null_threshold=-1.5,
                start_n_top=2,
                end_n_top=2,
            ),
            {"num_answers": 2},
        ),
        (
            models.XLNetMultipleChoice(
                backbone, preprocessing.XLNetMultipleChoicePreprocessor(tokenizer, 32, 12)
            ),
            {},
        ),
        (
            models.XLNetRanker(backbone, preprocessing.XLNetRankerPreprocessor(tokenizer, 24)),
            {"batch_size": 2},
        ),
        (models.XLNetPermutationLM(backbone, tokenizer=tokenizer), {"stop_token_ids": {3}}),
        (
            models.MultiTask(
                {
                    "number": models.XLNetTextRegressor(
                        backbone, preprocessing.XLNetTextRegressorPreprocessor(tokenizer, 24)
                    )
                }
            ),
            {},
        ),
        (language_model, {"max_new_tokens": 4}),
    ]
    return {type(model): (model, options) for model, options in found}


# What the details of some models have besides those of all.
EXPECTED = {
    models.XLNetTextClassifier: {"multi_label": True, "class_names": None}
    | {"options": {"threshold": 0.25}},
    models.XLNetTokenClassifier: {"entity_types": ["person", "place"], "multi_label": False},
    models.XLNetQuestionAnswering: {
        "options": {"num_answers": 2, "max_answer_length": 64, "null_threshold": -1.5},
        "lengths": {
            "sequence_length": 32,
            "max_question_length": 12,
            "doc_stride": 8,
            "memory_length": None,
        },
    },
    models.XLNetPermutationLM: {"options": {"max_new_tokens": 256, "stop_token_ids": [3]}},
}


@pytest.mark.slow
@pytest.mark.parametrize("cls", SERVED, ids=lambda cls: cls.__name__)
def test_the_request_runs_for_every_class(cls, made, tmp_path):
    model, options = made[cls]
    directory = export(model, tmp_path / "1", **options)
    details = details_of(directory)
    assert {key: details[key] for key in EXPECTED.get(cls, {})} == EXPECTED.get(cls, {})
    signature = tf.saved_model.load(directory).signatures["serving_default"]
    specs = signature.structured_input_signature[1]
    body = json.dumps(details["run"]["request"]).encode()
    request = parse_request(body, lambda name: specs)
    assert request.signature_name == "serving_default"
    outputs = signature(**{name: tf.constant(value) for name, value in request.inputs.items()})
    rows = {len(value) for value in outputs.values()}
    assert rows == {options.get("batch_size", 1)}
    # The same request is in the command line.
    assert f"-d '{body.decode()}'" in details["run"]["ask"]


def test_every_class_is_tried(made):
    assert set(made) == set(SERVED)


def test_what_it_was_trained_on(spam, details, tmp_path):
    assert details["trained_on"] == {"notes": None, "preset": None, "adapter": None}
    (tmp_path / "saved_model.pb").write_bytes((spam.directory / "saved_model.pb").read_bytes())
    write_details(spam.model, tmp_path, {}, trained_on="5,574 messages\u2026")
    assert details_of(tmp_path)["trained_on"]["notes"] == "5,574 messages\u2026"


@pytest.mark.parametrize("value", [5, ["messages"], b"messages"])
def test_what_it_was_trained_on_is_a_string(value, spam, tmp_path):
    with pytest.raises(ValueError, match="`trained_on` must be a string. Received: trained_on="):
        export(spam.model, tmp_path / "1", trained_on=value)
