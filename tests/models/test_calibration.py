"""`calibrate`: probabilities, decisions, and that they are stored with the model."""

import keras
import numpy as np
import pytest
from sklearn import metrics

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor

WORDS = "win a free prize now see you at lunch call tonight ok six pounds".split()


def texts_of(count, seed):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 7))) for _ in range(count)]


@pytest.fixture(scope="module")
def preprocessor(tokenizer):
    return XLNetTextClassifierPreprocessor(tokenizer, 16)


def classifier_of(preprocessor, num_classes=2, activation="softmax", **kwargs):
    """A classifier that is much too sure."""
    keras.utils.set_random_seed(5)
    backbone = XLNetBackbone(preprocessor.tokenizer.vocabulary_size(), 1, 2, 8, 16)
    model = XLNetTextClassifier(backbone, num_classes, preprocessor, activation, **kwargs)
    model.logits_dense.kernel.assign(20 * model.logits_dense.kernel)
    model.logits_dense.bias.assign(np.linspace(-1.0, 1.0, num_classes))
    return model


def labels_of(probabilities, activation="softmax", seed=3):
    """Labels that are much less sure than the probabilities."""
    rng = np.random.default_rng(seed)
    p = 0.6 * probabilities + 0.4 / probabilities.shape[1]
    if activation == "sigmoid":
        return (rng.random(p.shape) < p).astype("int32")
    return np.array([rng.choice(len(row), p=row / row.sum()) for row in p.astype("float64")])


@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
def test_the_loss_falls_and_the_order_of_classes_stays(preprocessor, activation):
    model = classifier_of(preprocessor, 3, activation)
    texts = texts_of(300, 0)
    before = model.predict(texts, verbose=0)
    labels = labels_of(before, activation)
    loss = model.evaluate(texts, labels, verbose=0)[0]
    found = model.calibrate(texts, labels, verbose=0)
    after = model.predict(texts, verbose=0)
    assert found.temperature > 1 and found.threshold is None
    assert found.loss_before == pytest.approx(loss, rel=1e-3)
    loss = model.evaluate(texts, labels, verbose=0)[0]
    assert loss == pytest.approx(found.loss_after, rel=1e-3)
    assert found.loss_after < found.loss_before
    if activation == "softmax":
        np.testing.assert_array_equal(after.argmax(1), before.argmax(1))
        expected = before.astype("float64") ** (1 / found.temperature)
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(after, expected, atol=1e-5)
    # Nothing is left to do.
    again = model.calibrate(texts, labels, verbose=0)
    assert again.temperature == pytest.approx(1, rel=1e-2)


def test_the_threshold_decides_in_classify(preprocessor):
    model = classifier_of(preprocessor, class_names=["ham", "spam"])
    texts = texts_of(200, 1)
    # The second class is rarer than the model says.
    p = model.predict(texts, verbose=0)[:, 1]
    labels = (np.random.default_rng(4).random(len(p)) < 0.5 * p).astype(int)
    names = [model.class_names[label] for label in labels]
    found = model.calibrate(texts, names, metric="f1", verbose=0)
    assert model.threshold == found.threshold != 0.5
    decided = [x.label == "spam" for x in model.classify(texts, verbose=0)]
    assert metrics.f1_score(labels, decided) == pytest.approx(found.value)
    even = [x.label == "spam" for x in model.classify(texts, threshold=0.5, verbose=0)]
    assert metrics.f1_score(labels, even) < found.value


def test_what_is_found_is_saved(preprocessor, tmp_path):
    model = classifier_of(preprocessor)
    texts = texts_of(80, 2)
    model.calibrate(texts, labels_of(model.predict(texts, verbose=0)), "accuracy", verbose=0)
    model.threshold = 0.3
    expected = model.predict(texts, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_to_preset(tmp_path / "preset")
    copies = [
        keras.saving.load_model(tmp_path / "model.keras"),
        XLNetTextClassifier.from_preset(tmp_path / "preset"),
        model.with_arguments(dropout=0.0),
    ]
    for copy in copies:
        assert copy.threshold == 0.3
        np.testing.assert_allclose(copy.predict(texts, verbose=0), expected, atol=1e-6)


@pytest.mark.parametrize(
    "arguments, metric, message",
    [
        ({"activation": "linear"}, None, "`calibrate` needs classes"),
        ({"num_classes": 3}, "f1", "`metric` can only be given for two classes"),
        ({}, "recall", "`metric` must be"),
        ({}, None, "row 1"),
    ],
)
def test_wrong_arguments(preprocessor, arguments, metric, message):
    model = classifier_of(preprocessor, **arguments)
    with pytest.raises(ValueError, match=message):
        model.calibrate(["a", "b"], [0, 7], metric, verbose=0)


def test_a_quantized_head_is_refused(preprocessor):
    model = classifier_of(preprocessor)
    model.quantize("int8")
    with pytest.raises(ValueError, match="`calibrate` before `quantize`"):
        model.calibrate(["a", "b"], [0, 1], verbose=0)


@pytest.mark.parametrize("threshold, num_classes", [(1.5, 2), ("a", 2), (0.3, 3)])
def test_wrong_thresholds(preprocessor, threshold, num_classes):
    with pytest.raises(ValueError, match="`threshold`"):
        classifier_of(preprocessor, num_classes, threshold=threshold)


@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
def test_probabilities_of_0_and_1_are_calibrated_too(preprocessor, activation):
    """The temperature is that of the logits, which float32 probabilities do not have any more."""
    texts = texts_of(200, 3)
    model = classifier_of(preprocessor, 2, activation)
    labels = labels_of(model.predict(texts, verbose=0), activation)
    expected = model.calibrate(texts, labels, verbose=0)
    model.logits_dense.kernel.assign(100 * model.logits_dense.kernel)
    model.logits_dense.bias.assign(100 * model.logits_dense.bias)
    found = model.calibrate(texts, labels, verbose=0)
    assert found.temperature == pytest.approx(100, rel=1e-2)
    assert found.loss_after == pytest.approx(expected.loss_after, rel=1e-3)
    assert found.loss_after == pytest.approx(model.evaluate(texts, labels, verbose=0)[0], rel=1e-3)


@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
def test_texts_that_are_all_right_say_no_temperature(preprocessor, activation):
    model = classifier_of(preprocessor, 3, activation)
    texts = texts_of(12, 4)
    before = model.predict(texts, verbose=0)
    labels = before.argmax(1) if activation == "softmax" else (before > 0.5).astype(int)
    with pytest.warns(UserWarning, match="12 texts, of which hardly any of the labels is wrong"):
        found = model.calibrate(texts, labels, verbose=0)
    assert found.temperature == 1 and found.loss_after == found.loss_before
    np.testing.assert_array_equal(model.predict(texts, verbose=0), before)


def test_labels_are_those_of_evaluate(preprocessor):
    model = classifier_of(preprocessor)
    texts, features = texts_of(40, 5), preprocessor.encode(texts_of(40, 5)).features
    for x in (texts, features):
        for labels in (np.zeros(80, int), np.zeros((40, 2))):
            with pytest.raises(ValueError, match="`y` must"):
                model.calibrate(x, labels, verbose=0)
    with pytest.raises(ValueError, match="`calibrate` needs arrays or lists"):
        model.calibrate(iter([(texts, [0] * 40)]), None, verbose=0)
    # Ignored rows do not count.
    labels = labels_of(model.predict(texts, verbose=0))
    expected = classifier_of(preprocessor).calibrate(texts[:30], labels[:30], verbose=0)
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(ignore_class=-1))
    found = model.calibrate(features, np.r_[labels[:30], [-1] * 10], verbose=0)
    assert found.temperature == pytest.approx(expected.temperature, rel=1e-3)


def test_thresholds_of_saturated_probabilities(preprocessor):
    model = classifier_of(preprocessor)
    model.logits_dense.bias.assign([200.0, -200.0])
    texts = texts_of(20, 6)
    with pytest.warns(UserWarning, match="hardly any is right"):
        found = model.calibrate(texts, np.ones(20, int), metric="f1", verbose=0)
    assert (found.threshold, found.value) == (0.0, 1.0)
    assert {x.label for x in model.classify(texts, verbose=0)} == {"1"}
