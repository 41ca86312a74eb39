"""The last layer of classifiers and regressors, fitted on frozen features."""

import keras
import numpy as np
import pytest

from keras_xlnet.models import (
    XLNetBackbone,
    XLNetTextClassifier,
    XLNetTextRegressor,
    XLNetTokenClassifier,
)
from keras_xlnet.ops.linear_probe import fit_linear
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor

TEXTS = ["a free lunch", "see you", "call now to win", "the prize is yours", "at six", "I am home"]


@pytest.fixture(scope="module")
def preprocessor(tokenizer):
    return XLNetTextClassifierPreprocessor(tokenizer, 16)


def classifier_of(preprocessor, num_classes=2, **kwargs):
    keras.utils.set_random_seed(3)
    backbone = XLNetBackbone(preprocessor.tokenizer.vocabulary_size(), 2, 2, 16, 24)
    arguments = {"pooling": "mean", "preprocessor": preprocessor, **kwargs}
    return XLNetTextClassifier(backbone, num_classes, **arguments)


def summaries(model, texts):
    """The slow twin: one text at a time, up to the last layer."""
    rows = []
    for text in texts:
        features = model.preprocessor.encode([text]).features
        states = model.backbone(features)["sequence_output"]
        summary = model.sequence_summary(states, padding_mask=features["padding_mask"])
        rows.append(keras.ops.convert_to_numpy(summary)[0])
    return np.array(rows)


def test_the_last_layer_is_the_linear_model_of_the_summaries(preprocessor):
    model = classifier_of(preprocessor, 3)
    y = np.array([0, 1, 2, 0, 1, 2])
    model.fit_head(TEXTS, y, verbose=0)
    kernel, bias = fit_linear(summaries(model, TEXTS), np.eye(3)[y], "softmax")
    logits = keras.ops.convert_to_numpy(model.logits_dense.kernel)
    np.testing.assert_allclose(logits, kernel, rtol=1e-2, atol=1e-2 * np.abs(kernel).max())
    np.testing.assert_allclose(keras.ops.convert_to_numpy(model.logits_dense.bias), bias, atol=0.02)


def test_nothing_else_changes(preprocessor):
    model = classifier_of(preprocessor)
    last = [id(weight) for weight in model.logits_dense.weights]
    others = [w for w in model.weights if id(w) not in last and "seed" not in w.path]
    before = [keras.ops.convert_to_numpy(w) for w in others]
    model.fit_head(TEXTS, ["spam", "ham"] * 3, verbose=0)
    for weight, value in zip(others, before, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(weight), value)
    assert model.label_names == ["ham", "spam"]


def test_it_separates_texts_that_it_has_read(preprocessor):
    model = classifier_of(preprocessor)
    model.fit_head(TEXTS, [1, 0, 1, 1, 0, 0], l2=1e-3, verbose=0)
    assert list(model.predict(TEXTS, verbose=0).argmax(axis=1)) == [1, 0, 1, 1, 0, 0]


def test_several_labels_of_a_text(preprocessor):
    model = classifier_of(preprocessor, activation="sigmoid")
    y = np.array([[1, 1], [0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])
    model.fit_head(TEXTS, y, l2=1e-3, verbose=0)
    np.testing.assert_array_equal(model.predict(TEXTS, verbose=0) > 0.5, y)


def test_a_regressor(preprocessor):
    model = XLNetTextRegressor(classifier_of(preprocessor).backbone, preprocessor=preprocessor)
    y = np.array([0.5, -1.0, 2.0, 1.5, 0.0, 3.0])
    model.fit_head(TEXTS, y, l2=1e-4, verbose=0)
    np.testing.assert_allclose(model.predict(TEXTS, verbose=0).ravel(), y, atol=0.15)


def test_weights_of_classes_and_rows_are_those_of_the_loss(preprocessor):
    y = np.array([1, 0, 1, 1, 0, 0])
    found = []
    for arguments in (
        {"class_weight": {0: 1.0, 1: 3.0}},
        {"sample_weight": np.where(y, 3.0, 1.0)},
        {},
    ):
        model = classifier_of(preprocessor)
        model.fit_head(TEXTS, y, verbose=0, **arguments)
        found.append(keras.ops.convert_to_numpy(model.logits_dense.kernel))
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
    assert np.abs(found[0] - found[2]).max() > 1e-3


def test_weights_of_classes_with_labels_that_are_vectors(preprocessor):
    y = np.array([1, 0, 1, 1, 0, 0])
    found = []
    for labels, loss in ((y, "auto"), (np.eye(2)[y], "categorical_crossentropy")):
        model = classifier_of(preprocessor)
        model.compile(loss=loss)
        model.fit_head(TEXTS, labels, class_weight={0: 1.0, 1: 3.0}, verbose=0)
        found.append(keras.ops.convert_to_numpy(model.logits_dense.kernel))
    np.testing.assert_allclose(*found, atol=1e-5)


@pytest.mark.parametrize("form", ["text", "arrays"])
def test_fit_begins_with_it_and_does_not_read_what_is_held_out(preprocessor, form):
    y = [1, 0, 1, 1, 0, 0]
    x = TEXTS if form == "text" else preprocessor.encode(TEXTS).features
    first = TEXTS[:3] if form == "text" else {key: value[:3] for key, value in x.items()}
    model, expected = classifier_of(preprocessor), classifier_of(preprocessor)
    model.compile(keras.optimizers.SGD(0.0))
    model.fit(
        x, y if form == "text" else np.array(y), head_first=True, validation_split=0.34, verbose=0
    )
    expected.fit_head(first, y[:3], verbose=0)
    np.testing.assert_allclose(*(m.logits_dense.kernel for m in (model, expected)), atol=1e-4)


def test_models_without_such_a_layer(preprocessor):
    backbone = classifier_of(preprocessor).backbone
    with pytest.raises(ValueError, match="`fit_head` is for XLNetTextClassifier and"):
        XLNetTokenClassifier(backbone, 2).fit_head({"token_ids": np.ones((2, 3), int)}, [0, 1])


def test_datasets_are_refused(preprocessor):
    batches = ((TEXTS[:2], [0, 1]) for _ in range(2))
    with pytest.raises(ValueError, match="`fit_head` needs arrays or lists"):
        classifier_of(preprocessor).fit_head(batches, None)
