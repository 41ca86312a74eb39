"""The last layer of classifiers and regressors, fitted on frozen features."""

from contextlib import nullcontext

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


@pytest.mark.parametrize("case", ["preset", "many", "trained", "random", "told not to"])
def test_fit_begins_with_it_by_itself(preprocessor, case):
    """A new head on the backbone of a preset, and few texts."""
    texts, y = [*TEXTS] * 84, [1, 0, 1, 1, 0, 0] * 84
    number = 504 if case == "many" else 498
    texts, y = texts[:number], y[:number]
    model, expected = classifier_of(preprocessor), classifier_of(preprocessor)
    model.trained_from = None if case == "random" else "xlnet_mini_en"
    if case == "trained":
        weights = model.logits_dense.kernel
        weights.assign(weights + 0.1)
    before = head_of(model)[0]
    with pytest.warns(UserWarning, match="random weights") if case != "trained" else nullcontext():
        model.predict(TEXTS, verbose=0)
    model.compile(keras.optimizers.SGD(0.0))
    arguments = {"head_first": False} if case == "told not to" else {}
    model.fit(texts, y, batch_size=256, verbose=0, **arguments)
    if case == "preset":
        expected.fit_head(texts, y, verbose=0)
        before = head_of(expected)[0]
    np.testing.assert_allclose(head_of(model)[0], before, atol=1e-4)


def test_models_without_such_a_layer(preprocessor):
    backbone = classifier_of(preprocessor).backbone
    with pytest.raises(ValueError, match="`fit_head` is for XLNetTextClassifier and"):
        XLNetTokenClassifier(backbone, 2).fit_head({"token_ids": np.ones((2, 3), int)}, [0, 1])


@pytest.mark.parametrize("y", [None, [0, 1]])
def test_datasets_are_refused(preprocessor, y):
    batches = ((TEXTS[:2], [0, 1]) for _ in range(2))
    with pytest.raises(ValueError, match="`fit_head` needs arrays or lists"):
        classifier_of(preprocessor).fit_head(batches, y)


def head_of(model):
    return [keras.ops.convert_to_numpy(weight).copy() for weight in model.logits_dense.weights]


@pytest.mark.parametrize("by", ["fit_head", "head_first"])
def test_without_an_activation_it_fits_numbers(preprocessor, by, rng):
    model = classifier_of(preprocessor, 3, activation="linear")
    y = rng.normal(5, 2, size=(6, 3))
    if by == "fit_head":
        model.fit_head(TEXTS, y, l2=1e-5, verbose=0)
    else:
        model.compile(keras.optimizers.SGD(0.0))
        model.fit(TEXTS, y, head_first=True, verbose=0)
    found = model.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(found.mean(axis=0), y.mean(axis=0), atol=0.05)
    if by == "fit_head":
        np.testing.assert_allclose(found, y, atol=0.2)


def test_losses_of_logits(preprocessor):
    """A model without an activation and a loss of logits is the softmax with its own loss."""
    y = np.eye(2)[[1, 0, 1, 1, 0, 0]]
    found = []
    for activation in ("softmax", "linear"):
        model = classifier_of(preprocessor, activation=activation)
        is_logits = activation == "linear"
        model.compile(loss=keras.losses.CategoricalCrossentropy(from_logits=is_logits))
        model.fit_head(TEXTS, y, verbose=0)
        found.append(head_of(model)[0])
    np.testing.assert_allclose(*found, atol=1e-5)


def test_smoothed_labels_and_ignored_rows_are_those_of_the_loss(preprocessor):
    y = np.array([1, 0, 1, 1, 0, 0])
    smooth = classifier_of(preprocessor)
    smooth.compile(loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.2))
    smooth.fit_head(TEXTS, np.eye(2)[y], l2=1e-4, verbose=0)
    np.testing.assert_allclose(smooth.predict(TEXTS, verbose=0).max(axis=1), 0.9, atol=0.02)

    for ignored in (-1, 0):
        model, expected = classifier_of(preprocessor, 3), classifier_of(preprocessor, 3)
        model.compile(loss=keras.losses.SparseCategoricalCrossentropy(ignore_class=ignored))
        model.fit_head(TEXTS, np.array([1, 2, 1, 2, ignored, ignored]), verbose=0)
        expected.fit_head(TEXTS, np.array([1, 2, 1, 2, 0, 0]), [1, 1, 1, 1, 0, 0], verbose=0)
        for a, b in zip(head_of(model), head_of(expected), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)


def test_a_head_with_lora_computes_what_one_without_does(preprocessor):
    y = [1, 0, 1, 1, 0, 0]
    model, expected = classifier_of(preprocessor), classifier_of(preprocessor)
    model.logits_dense.enable_lora(2)
    model.logits_dense.lora_kernel_b.assign(np.ones((2, 2)))
    for each in (model, expected):
        each.fit_head(TEXTS, y, verbose=0)
    np.testing.assert_allclose(*(m.predict(TEXTS, verbose=0) for m in (model, expected)), atol=1e-5)
    assert model.logits_dense.lora_kernel_b.trainable
    found = model.calibrate(TEXTS, [1, 1, 0, 1, 0, 0], verbose=0)
    assert model.evaluate(TEXTS, [1, 1, 0, 1, 0, 0], verbose=0)[0] == pytest.approx(
        found.loss_after, abs=1e-5
    )


def test_a_quantized_backbone_has_other_features(preprocessor):
    model = classifier_of(preprocessor)
    y = [1, 0, 1, 1, 0, 0]
    model.fit_head(TEXTS, y, verbose=0)  # With the floats.
    model.backbone.quantize("int8")
    model.fit_head(TEXTS, y, verbose=0)
    kernel, bias = fit_linear(summaries(model, TEXTS), np.eye(2)[y], "softmax")
    np.testing.assert_allclose(head_of(model)[0], kernel, atol=2e-2 * np.abs(kernel).max())


def test_omitted_inputs_are_those_of_fit(preprocessor):
    ids = preprocessor.encode(TEXTS).features["token_ids"]
    full = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones_like(ids, bool),
    }
    heads = []
    for x in ({"token_ids": ids.tolist()}, full):
        model = classifier_of(preprocessor)
        model.fit_head(x, [1, 0, 1, 1, 0, 0], verbose=0)
        heads.append(head_of(model)[0])
    np.testing.assert_allclose(*heads, atol=1e-5)


def test_rounded_kernels_predict_the_mean(preprocessor, rng):
    keras.utils.set_random_seed(3)
    size = preprocessor.tokenizer.vocabulary_size()
    backbone = XLNetBackbone(size, 2, 2, 16, 24, dtype="mixed_bfloat16")
    model = XLNetTextRegressor(backbone, preprocessor=preprocessor, pooling="mean")
    y = rng.normal(size=6)
    model.fit_head(TEXTS, y, l2=1e-3, verbose=0)
    np.testing.assert_allclose(model.predict(TEXTS, verbose=0).mean(), y.mean(), atol=0.1)


@pytest.mark.parametrize(
    "arguments, message",
    [
        *(({"l2": l2}, "`l2` must be") for l2 in (-1, 0, np.nan, np.inf, "0.1", True)),
        ({"sample_weight": [0.0] * 6}, "weights of at least 0 that are not all 0"),
        ({"sample_weight": [1, 1, -1, 1, 1, 1]}, "weights of at least 0"),
        ({"sample_weight": np.ones((6, 2))}, "a weight for each of 6 rows"),
        ({"sample_weight": keras.ops.convert_to_tensor([1.0, np.nan] * 3)}, "finite.*row 1"),
        ({"class_weight": {"a": 0, "b": 0}}, "weights of at least 0 that are not all 0"),
        ({"y": ["a", "b"] * 6}, "`y` must have a label for each of 6 rows"),
        ({"x": "arrays", "y": ["a", "b"] * 6}, "`y` must have a label for each of 6 rows"),
        ({"quantized": True}, "Call `fit_head` before `quantize`"),
    ],
)
def test_what_is_refused_changes_nothing(preprocessor, arguments, message):
    model = classifier_of(preprocessor)
    arguments = {"x": TEXTS, "y": ["a", "b"] * 3, **arguments}
    if arguments.pop("quantized", False):
        model.quantize("int8")
    if arguments["x"] == "arrays":
        arguments["x"] = preprocessor.encode(TEXTS).features
    before = head_of(model)
    with pytest.raises(ValueError, match=message):
        model.fit_head(**arguments, verbose=0)
    assert model.class_names is None
    for a, b in zip(before, head_of(model), strict=True):
        np.testing.assert_array_equal(a, b)
