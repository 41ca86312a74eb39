"""Values of words: they add up, and are exact for models that add."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_xlnet.evaluation import explain
from keras_xlnet.models import (
    XLNetBackbone,
    XLNetTextClassifier,
    XLNetTextEmbedder,
    XLNetTextRegressor,
)
from keras_xlnet.preprocessing import (
    XLNetTextClassifierPreprocessor,
    XLNetTextRegressorPreprocessor,
)

WORTH = {"good": 2.0, "bad": -1.0, "very": 0.5, ",": 0.25}


def model_of(function):
    """A regressor whose output is a function of the words."""

    def predict(texts, **_):
        words = [text.replace(",", " , ").split() for text in texts]
        return np.array([[function(row)] for row in words], "float32")

    model = mock.Mock(spec=XLNetTextRegressor, label_names=["value"])
    model.predict = predict
    return model


@given(st.lists(st.sampled_from([*WORTH, "word"]), max_size=12), st.integers(1, 5))
def test_a_sum_is_explained_exactly(words, num_orders):
    model = model_of(lambda row: 3.0 + sum(WORTH.get(word, 0.0) for word in row))
    text = "  " + " ".join(words)
    (found,) = explain(model, [text], num_orders=num_orders)
    assert found.parts == words
    np.testing.assert_allclose(found.values, [WORTH.get(word, 0.0) for word in words], atol=1e-6)
    assert found.empty_score == 3.0 and found.label is None


def test_what_two_words_do_together_is_divided_equally():
    model = model_of(lambda row: float("good" in row and "very" in row))
    (found,) = explain(model, ["a very good one"], num_orders=2)
    np.testing.assert_allclose(found.values, [0, 0.5, 0.5, 0], atol=1e-6)


def test_long_texts_are_divided_into_runs():
    model = model_of(len)
    (found,) = explain(model, ["word " * 100], max_parts=7)
    assert len(found.values) == 7 and found.values.sum() == 100
    assert "".join(found.parts).count("word") == 100


@pytest.fixture(scope="module")
def classifier(tokenizer):
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 16)
    backbone = XLNetBackbone(200, 1, 2, 16, 32, kernel_initializer="glorot_normal", seed=2)
    return XLNetTextClassifier(backbone, 3, preprocessor, class_names=["x", "y", "z"])


def test_values_add_up_and_label_is_the_most_probable(classifier):
    texts = ["win a <b>free</b> prize", "see you at six", ""]
    scores = classifier.predict(texts, verbose=0)
    for text, row, found in zip(texts, scores, explain(classifier, texts, verbose=0), strict=True):
        assert found.text == text and found.label == "xyz"[row.argmax()]
        assert found.score == pytest.approx(float(row.max()), abs=1e-6)
        assert found.values.sum() == pytest.approx(found.score - found.empty_score, abs=1e-6)
        assert "<b>" not in found._repr_html_()
    (found,) = explain(classifier, texts[:1], label="y", verbose=0)
    assert found.score == pytest.approx(float(scores[0, 1]), abs=1e-6)
    assert found._repr_html_().count("<mark") == len(found.parts)
    assert repr(found).startswith("Explanation of y, ")


def test_numbers(tokenizer):
    preprocessor = XLNetTextRegressorPreprocessor(tokenizer, 16)
    model = XLNetTextRegressor(XLNetBackbone(200, 1, 2, 16, 32), preprocessor=preprocessor)
    (found,) = explain(model, ["win a prize"], verbose=0)
    assert found.label is None
    assert found.values.sum() == pytest.approx(found.score - found.empty_score, abs=1e-6)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"texts": "one text"}, "`texts` must be a batch of texts"),
        (
            {"texts": ["a", ("b", "c")]},
            r"`texts` must be strings. Received in row 1: \('b', 'c'\)",
        ),
        ({"texts": ["a"], "label": "w"}, r"`label` must be one of \['x', 'y', 'z'\]"),
        ({"texts": ["a"], "num_orders": 0}, "`num_orders`"),
    ],
)
def test_errors(arguments, message, classifier):
    with pytest.raises(ValueError, match=message):
        explain(classifier, **arguments)


def test_a_text_has_the_same_values_alone_and_among_others():
    # What words do together has a value that depends on the orders.
    model = model_of(lambda row: float(len({*row}) ** 2))
    texts = ["a good very bad word and others", "see you", "one two three one two four five six"]
    together = explain(model, texts, num_orders=2)
    for text, found in zip(texts, together, strict=True):
        (alone,) = explain(model, [text], num_orders=2)
        np.testing.assert_array_equal(alone.values, found.values)
    other = explain(model, texts, num_orders=2, seed=1)
    assert not np.array_equal(other[2].values, together[2].values)


def test_the_class_is_the_one_of_classify(tokenizer):
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 16)
    backbone = XLNetBackbone(200, 1, 2, 16, 32, kernel_initializer="glorot_normal", seed=2)
    model = XLNetTextClassifier(backbone, 2, preprocessor, class_names=["ham", "spam"])
    for threshold in (0.0, 1.0):
        model.threshold = threshold
        (found,) = explain(model, ["a free prize"], num_orders=1, verbose=0)
        assert found.label == model.classify(["a free prize"], verbose=0)[0].label
        assert found.label == ("spam" if threshold == 0 else "ham")


def test_models_with_other_outputs_are_refused(tokenizer):
    backbone = XLNetBackbone(200, 1, 2, 16, 32)
    with pytest.raises(ValueError, match="`model` must be.*XLNetTextEmbedder"):
        explain(XLNetTextEmbedder(backbone), ["a"])
    model = XLNetTextClassifier(backbone, 2, activation="linear")
    with pytest.raises(ValueError, match="`label` must say which"):
        explain(model, ["a"])
