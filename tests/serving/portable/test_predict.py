"""`predict.py`, which is written next to a network, makes the token ids of the preprocessor."""

import re
import runpy
import subprocess

import hypothesis
import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from keras_xlnet.models import XLNetTextClassifier, XLNetTextRegressor
from keras_xlnet.preprocessing import (
    XLNetTextClassifierPreprocessor,
    XLNetTextRegressorPreprocessor,
)
from keras_xlnet.serving import export
from keras_xlnet.serving.portable.predict import TextModel
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.serving.portable.conftest import PAIRS, TEXTS, make_backbone

SOME_TEXTS = st.text(max_size=30) | st.sampled_from(
    ["a ship, 9, 12,3 " * 4, "``\u00bd'' \u0130\u03a3 " * 5]
)


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
        features = text_model.encode(*given).features
        assert features.keys() == expected.keys()
        for name, values in expected.items():
            assert features[name].dtype == values.dtype
            np.testing.assert_array_equal(features[name], values)


@pytest.fixture
def program(export_text_model, classifier, tmp_path, monkeypatch):
    """The `TextModel` of the written program, with copies of the files of this package."""
    export_text_model(classifier)
    monkeypatch.syspath_prepend(tmp_path / "model")
    program = runpy.run_path(str(tmp_path / "model" / "predict.py"))
    return program["TextModel"](tmp_path / "model")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@hypothesis.given(
    pairs=st.lists(st.tuples(SOME_TEXTS, SOME_TEXTS), min_size=1, max_size=4),
    length=st.integers(5, 40),
    side=st.sampled_from(["left", "right"]),
    truncation=st.sampled_from(["end", "middle"]),
)
def test_any_rows_of_the_program(program, classifier, pairs, length, side, truncation):
    tokenizer = classifier.preprocessor.tokenizer
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, length, side, truncation=truncation)
    program.settings["layout"] = preprocessor.layout._asdict()
    columns = tuple(map(list, zip(*pairs, strict=True)))
    for x, given in [(columns, columns), (columns[0], columns[:1])]:
        expected = preprocessor.encode(x).features
        features = program.encode(*given).features
        for name, values in expected.items():
            np.testing.assert_array_equal(features[name], values)


@pytest.mark.parametrize(
    "convert",
    [
        tuple,
        np.array,
        iter,
        pandas.Series,
        lambda texts: np.array(texts, object),
        lambda texts: [text.encode() for text in texts],
        lambda texts: pandas.Series(texts, dtype="string", index=range(7, 7 + len(texts))),
    ],
)
def test_forms_of_texts(export_text_model, classifier, convert):
    text_model = export_text_model(classifier)
    expected = text_model.encode(TEXTS[:2], PAIRS[:2]).features
    found = text_model.encode(convert(TEXTS[:2]), convert(PAIRS[:2])).features
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_a_string_is_one_text(export_text_model, classifier):
    text_model = export_text_model(classifier)

    def ids(*texts):
        return text_model.encode(*texts).features["token_ids"]

    for text in ("win a prize", b"win a prize", np.str_("win a prize")):
        np.testing.assert_array_equal(ids(text), ids(["win a prize"]))
    np.testing.assert_array_equal(ids("a", "b"), ids(["a"], ["b"]))
    # Half of a surrogate pair, as in the tokenizer.
    np.testing.assert_array_equal(ids(["a \ud800b"]), ids(["a \ufffdb"]))


@pytest.mark.parametrize(
    "texts",
    [
        ({"body": ["a"]},),
        (["a", None],),
        ([["a"], ["b", "c", "d"]],),
        ([float("nan")],),
        (["a"], ["b", "c"]),
        (["a"], [None]),
        ([],),
    ],
)
def test_what_is_no_text_is_refused_as_by_the_model(export_text_model, classifier, texts):
    text_model = export_text_model(classifier)
    x = texts[0] if len(texts) == 1 else texts
    with pytest.raises(ValueError) as expected:
        classifier.preprocessor.encode(x)
    for method in (text_model, text_model.encode, text_model.results):
        with pytest.raises(ValueError, match=re.escape(str(expected.value))):
            method(*texts)


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
    text_model = export_text_model(classifier)
    assert text_model.labels(outputs) == ["bad", "n\u00e9ither"]
    for wrong in (outputs[0], outputs[:, :2]):
        with pytest.raises(ValueError, match=r"`outputs` must have shape \(texts, 3\)"):
            text_model.labels(wrong)


def test_labels_of_sigmoid(export_text_model, preprocessor):
    names = ["a", "b", "c"]
    model = XLNetTextClassifier(
        make_backbone(), 3, preprocessor, activation="sigmoid", class_names=names
    )
    outputs = np.array([[0.6, 0.4, 0.5], [0.1, 0.2, 0.3]], "float32")
    assert export_text_model(model).labels(outputs) == [["a", "c"], []]


def test_a_regressor_has_no_labels(export_text_model, tokenizer):
    preprocessor = XLNetTextRegressorPreprocessor(tokenizer, sequence_length=24)
    text_model = export_text_model(XLNetTextRegressor(make_backbone(), preprocessor))
    settings = text_model.settings
    assert settings["output"] == "values"
    assert "threshold" not in settings
    with pytest.raises(ValueError, match="A XLNetTextRegressor of values has no labels"):
        text_model.labels(np.ones((1, 1)))
