"""Columns of Hugging Face datasets, polars and Arrow, and labels that are lists of names."""

import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier, XLNetTokenClassifier
from keras_xlnet.preprocessing import (
    XLNetTextClassifierPreprocessor,
    XLNetTokenClassifierPreprocessor,
)

TEXTS = ["win a free prize", "see you at six", "free cash, call now", "are you home"]
PAIRS = ["now", "then", "not now", "here"]
NAMES = ["spam", "ham", "spam", "ham"]
COLUMNS = {"text": TEXTS, "pair": PAIRS, "label": NAMES, "weight": [1.0, 2.0, 0.0, 1.0]}


def table_of(library):
    if library == "datasets":
        return pytest.importorskip("datasets").Dataset.from_dict(COLUMNS)
    if library == "polars":
        return pytest.importorskip("polars").DataFrame(COLUMNS)
    return pytest.importorskip("pyarrow").table(COLUMNS)


@pytest.fixture(params=["datasets", "polars", "pyarrow"])
def table(request):
    return table_of(request.param)


def classifier(tokenizer, **arguments):
    backbone = XLNetBackbone(200, 1, 2, 16, 32, dropout=0.0, attention_dropout=0.0, seed=1)
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 16)
    return XLNetTextClassifier(backbone, 2, preprocessor, dropout=0.0, **arguments)


def test_columns_are_what_lists_are(table, tokenizer):
    model = classifier(tokenizer, class_names=["ham", "spam"])
    expected = model.predict((TEXTS, PAIRS), verbose=0)
    found = model.predict((table["text"], table["pair"]), verbose=0)
    np.testing.assert_array_equal(found, expected)
    found = model.predict({"text": table["text"], "pair": table["pair"]}, verbose=0)
    np.testing.assert_array_equal(found, expected)
    kwargs = {"sample_weight": COLUMNS["weight"], "verbose": 0, "return_dict": True}
    expected = model.evaluate(TEXTS, NAMES, **kwargs)
    kwargs["sample_weight"] = table["weight"]
    assert model.evaluate(table["text"], table["label"], **kwargs) == expected


def test_fit_learns_names_of_a_column(table, tokenizer):
    model = classifier(tokenizer)
    model.fit(table["text"], table["label"], verbose=0)
    assert model.class_names == ["ham", "spam"]


def test_a_table_is_refused(table, tokenizer):
    with pytest.raises(ValueError, match="one column of a table.*'text', 'pair'"):
        classifier(tokenizer).fit(table, NAMES)


@pytest.mark.parametrize("library", ["datasets", "polars", "pyarrow"])
def test_lists_of_words_and_tags(library, tokenizer):
    words, tags = [["Ann", "is"], ["it", "is", "Ann"]], [["B-x", "O"], ["O", "O", "B-x"]]
    columns = {"words": words, "tags": tags}
    if library == "datasets":
        table = pytest.importorskip("datasets").Dataset.from_dict(columns)
    elif library == "polars":
        table = pytest.importorskip("polars").DataFrame(columns)
    else:
        table = pytest.importorskip("pyarrow").table(columns)
    model = XLNetTokenClassifier(
        XLNetBackbone(200, 1, 2, 16, 32), 2, XLNetTokenClassifierPreprocessor(tokenizer, 16)
    )
    model.fit(table["words"], table["tags"], verbose=0)
    assert model.class_names == ["B-x", "O"]
    assert model.tag(table["words"], verbose=0) == model.tag(words, verbose=0)


# === Several classes a text ===


def test_lists_of_names_are_vectors(tokenizer):
    lists = [["red"], [], {"blue", "red"}, ("blue",)]
    vectors = np.array([[0, 1], [0, 0], [1, 1], [1, 0]])
    model = classifier(tokenizer, activation="sigmoid")
    model.fit(TEXTS, lists, verbose=0)
    assert model.class_names == ["blue", "red"]
    kwargs = {"verbose": 0, "return_dict": True}
    assert model.evaluate(TEXTS, lists, **kwargs) == model.evaluate(TEXTS, vectors, **kwargs)
    # What comes out goes in again.
    found = [each.label for each in model.classify(TEXTS, threshold=0.4, verbose=0)]
    again = model.classes.encode(found) if any(found) else np.zeros((4, 2))
    np.testing.assert_array_equal(again, model.predict(TEXTS, verbose=0) >= 0.4)


def test_unknown_names_are_told(tokenizer):
    model = classifier(tokenizer, activation="sigmoid", class_names=["blue", "red"])
    with pytest.raises(ValueError, match="row 1: 'green'"):
        model.evaluate(TEXTS, [["red"], ["green"], [], []])
    with pytest.raises(ValueError, match="needs `class_names`"):
        classifier(tokenizer, activation="sigmoid").evaluate(TEXTS, [["red"], [], [], []])
