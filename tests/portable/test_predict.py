"""`predict.py`, which is copied beside a network, makes the token ids of the preprocessor."""

import subprocess

import numpy as np
import pytest

from keras_xlnet.models import XLNetTextClassifier, XLNetTextRegressor
from keras_xlnet.portable.predict import TextModel
from keras_xlnet.preprocessing import (
    XLNetTextClassifierPreprocessor,
    XLNetTextRegressorPreprocessor,
)
from keras_xlnet.serving import export
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.portable.conftest import PAIRS, TEXTS, make_backbone


@pytest.fixture
def without_network(monkeypatch):
    """Exports everything but the network, which another process would write."""

    def run(command, **options):
        return subprocess.CompletedProcess(command, returncode=0)

    monkeypatch.setattr(subprocess, "run", run)


@pytest.fixture
def export_text_model(without_network, tmp_path):
    return lambda model: TextModel(export(model, tmp_path / "model", format="litert"))


@pytest.mark.parametrize(
    ("flags", "packing"),
    [
        ({}, {}),
        ({"lowercase": True, "remove_accents": True}, {"padding_side": "right"}),
        ({"remove_space": False}, {"truncation": "middle", "padding_token_id": 5}),
    ],
    ids=["default", "uncased", "middle"],
)
def test_token_ids_are_those_of_the_preprocessor(golden_dir, export_text_model, flags, packing):
    tokenizer = XLNetTokenizer(golden_dir / "spiece.model", **flags)
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 21, **packing)
    text_model = export_text_model(XLNetTextClassifier(make_backbone(), 2, preprocessor))
    for x, given in [
        (TEXTS, (TEXTS,)),
        (TEXTS[:2], (TEXTS[:2],)),
        ((TEXTS, PAIRS), (TEXTS, PAIRS)),
        ((PAIRS, TEXTS), (PAIRS, TEXTS)),
    ]:
        expected = preprocessor.encode(x).features
        features = text_model.encode(*given)
        assert features.keys() == expected.keys()
        for name, values in expected.items():
            assert features[name].dtype == values.dtype
            np.testing.assert_array_equal(features[name], values)


def test_numbers_and_commas_are_apart(export_text_model, preprocessor, classifier):
    # The vocabulary has the piece "9,", which the rule of the original splits.
    text_model = export_text_model(classifier)
    assert text_model.settings["replaced_ids"]
    for index, row in text_model.settings["replaced_ids"].items():
        assert [int(index)] != row
        assert row[-1] == preprocessor.tokenizer.token_to_id(",")


def test_labels_are_those_of_the_model(export_text_model, preprocessor):
    names = ["ham", "spam"]
    model = XLNetTextClassifier(make_backbone(), 2, preprocessor, class_names=names, threshold=0.7)
    outputs = np.array([[0.4, 0.6], [0.3, 0.7]], "float32")
    assert export_text_model(model).labels(outputs) == names


def test_labels_of_several_classes(export_text_model, classifier):
    outputs = np.array([[0.1, 0.5, 0.4], [0.2, 0.3, 0.5]], "float32")
    assert export_text_model(classifier).labels(outputs) == ["bad", "n\u00e9ither"]


def test_labels_of_sigmoid(export_text_model, preprocessor):
    names = ["a", "b", "c"]
    model = XLNetTextClassifier(
        make_backbone(), 3, preprocessor, activation="sigmoid", class_names=names
    )
    outputs = np.array([[0.6, 0.4, 0.5], [0.1, 0.2, 0.3]], "float32")
    assert export_text_model(model).labels(outputs) == [["a", "c"], []]


def test_a_regressor_has_no_labels(export_text_model, tokenizer):
    preprocessor = XLNetTextRegressorPreprocessor(tokenizer, sequence_length=24)
    settings = export_text_model(XLNetTextRegressor(make_backbone(), preprocessor)).settings
    assert settings["output"] == "values"
    assert "class_names" not in settings
