"""`predict`: what is a label is told by its place, and an untrained head is."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor

TEXTS = ["win a free prize", "see you at six", "free cash, call now"]
OTHERS = ["spam", "ham", "eggs"]


@pytest.fixture(scope="module")
def classifier(tokenizer):
    keras.utils.set_random_seed(3)
    backbone = XLNetBackbone(200, 1, 2, 16, 32, kernel_initializer="glorot_normal")
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 24)
    return XLNetTextClassifier(backbone, 3, preprocessor)


LABELS = {"names": OTHERS, "numbers": [0, 1, 2], "vectors": np.eye(3, dtype="float32")}


def batches(*parts):
    return tf.data.Dataset.from_tensor_slices(parts).batch(2)


def generated(*parts):
    yield tuple(np.asarray(part, object)[:2] for part in parts)
    yield tuple(np.asarray(part, object)[2:] for part in parts)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("form", [batches, generated])
def test_labels_in_a_dataset_change_nothing(form, labels, classifier):
    expected = classifier.predict(TEXTS, verbose=0)
    for others in ((LABELS[labels],), (LABELS[labels], np.ones(3, "float32"))):
        found = classifier.predict(form(TEXTS, *others), verbose=0)
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("labels", [None, *LABELS])
@pytest.mark.parametrize(
    "pairs", [(TEXTS, OTHERS), {"text": TEXTS, "pair": OTHERS}], ids=["tuple", "dict"]
)
def test_pairs_in_a_dataset_are_one_part_of_it(pairs, labels, classifier):
    expected = classifier.predict((TEXTS, OTHERS), verbose=0)
    assert np.abs(expected - classifier.predict(TEXTS, verbose=0)).max() > 1e-3
    found = classifier.predict(batches(pairs, *([LABELS[labels]] if labels else [])), verbose=0)
    np.testing.assert_allclose(found, expected, atol=1e-6)


# === A head that was not trained ===


def warnings_of(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [str(w.message) for w in caught if "head of this" in str(w.message)]


def new_classifier(tokenizer):
    backbone = XLNetBackbone(200, 1, 2, 16, 32)
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 24)
    model = XLNetTextClassifier(backbone, 3, preprocessor)
    model.compile(keras.optimizers.SGD(0.1))
    return model


def test_predict_warns_once_if_the_head_is_untrained(tokenizer):
    model = new_classifier(tokenizer)
    (message,) = warnings_of(lambda: model.predict(TEXTS, verbose=0))
    assert "XLNetTextClassifier" in message and "Call `fit`" in message
    assert not warnings_of(lambda: model.predict(TEXTS, verbose=0))
    model = new_classifier(tokenizer)
    assert warnings_of(lambda: model.predict(batches(TEXTS), verbose=0))
    assert warnings_of(lambda: new_classifier(tokenizer).classify(TEXTS))


def test_a_preset_of_another_model_has_an_untrained_head(tokenizer, tmp_path):
    new_classifier(tokenizer).backbone.save_to_preset(tmp_path)
    model = XLNetTextClassifier.from_preset(tmp_path, num_classes=2)
    features = {"token_ids": np.array([[9, 17]])}
    assert warnings_of(lambda: model.predict(features, verbose=0))


def test_no_warning_of_a_head_that_was_trained_or_loaded(tokenizer, tmp_path):
    model = new_classifier(tokenizer)
    model.fit(TEXTS, [0, 1, 2], verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    model.save_to_preset(tmp_path / "preset")
    other = new_classifier(tokenizer)
    other.load_weights(tmp_path / "model.weights.h5")
    assigned = new_classifier(tokenizer)
    assigned.set_weights(model.get_weights())
    for loaded in (
        model,
        other,
        assigned,
        model.with_arguments(dropout=0.0),
        keras.models.load_model(tmp_path / "model.keras"),
        XLNetTextClassifier.from_preset(tmp_path / "preset"),
    ):
        assert not warnings_of(lambda m=loaded: m.predict(TEXTS, verbose=0))
    assert warnings_of(lambda: model.clone().predict(TEXTS, verbose=0))
