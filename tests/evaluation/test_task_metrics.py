"""Metrics of tasks over batches equal scikit-learn and NumPy over all rows."""

import keras
import numpy as np
import pytest
from sklearn.metrics import f1_score, matthews_corrcoef

from keras_xlnet.evaluation import ClassF1, MatthewsCorrelation, PearsonCorrelation

BATCHES = [slice(0, 7), slice(7, 8), slice(8, 60)]


def in_batches(metric, y_true, y_pred, weights=None):
    for batch in BATCHES:
        given = None if weights is None else weights[batch]
        metric.update_state(y_true[batch], y_pred[batch], given)
    return float(metric.result())


@pytest.mark.parametrize("num_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_class_metrics(num_classes, weighted):
    rng = np.random.default_rng(num_classes)
    true = rng.integers(num_classes, size=60)
    scores = rng.normal(size=(60, num_classes)) + np.eye(num_classes)[true]
    weights = rng.uniform(size=60) if weighted else None
    found = scores.argmax(axis=1)
    value = in_batches(MatthewsCorrelation(num_classes), true, scores, weights)
    assert value == pytest.approx(matthews_corrcoef(true, found, sample_weight=weights), abs=1e-5)
    for index in range(num_classes):
        value = in_batches(ClassF1(index, num_classes), true, scores, weights)
        expected = f1_score(true == index, found == index, sample_weight=weights)
        assert value == pytest.approx(expected, abs=1e-5)


def test_one_class_alone_has_no_correlation():
    scores = np.eye(2)[[0] * 60]
    rng = np.random.default_rng(0)
    assert in_batches(MatthewsCorrelation(), rng.integers(2, size=60), scores) == 0.0
    assert (
        in_batches(MatthewsCorrelation(), np.zeros(60, int), np.eye(2)[rng.integers(2, size=60)])
        == 0
    )
    assert in_batches(ClassF1(1), np.zeros(60, int), scores) == 0.0


@pytest.mark.parametrize("weighted", [False, True])
def test_pearson_correlation(weighted):
    rng = np.random.default_rng(1)
    # Far from zero, where sums of squares lose their last digits in float32.
    true = 1000 + rng.normal(size=60)
    found = 2000 + true * 0.5 + rng.normal(size=60)
    weights = rng.uniform(size=60) if weighted else None
    value = in_batches(PearsonCorrelation(), true[:, None], found[:, None], weights)
    covariance = np.cov(true, found, aweights=weights, ddof=0)
    expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert value == pytest.approx(expected, abs=1e-3)


def test_keras_pearson_is_another_number():
    rng = np.random.default_rng(1)
    true, found = rng.normal(size=(2, 60))
    metric = keras.metrics.PearsonCorrelation(axis=0)
    for batch in BATCHES:
        metric.update_state(true[batch], found[batch])
    ours = in_batches(PearsonCorrelation(), true, found)
    assert ours == pytest.approx(np.corrcoef(true, found)[0, 1], abs=1e-5)
    # A batch of one row has no correlation.
    assert not abs(float(metric.result()) - ours) < 0.01


@pytest.mark.parametrize("metric", [MatthewsCorrelation(3), ClassF1(2, 3), PearsonCorrelation()])
def test_saved_and_reset(metric):
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(metric))
    assert again.get_config() == metric.get_config()
    y_pred = np.eye(3)[[0, 1, 2]]
    metric.update_state(y_pred if isinstance(metric, PearsonCorrelation) else np.arange(3), y_pred)
    assert float(metric.result()) == pytest.approx(1.0)
    metric.reset_state()
    assert float(metric.result()) == 0.0


def test_in_fit_with_early_stopping():
    model = keras.Sequential([keras.layers.Dense(2, activation="softmax")])
    model.compile(
        "sgd", "sparse_categorical_crossentropy", metrics=[MatthewsCorrelation(), ClassF1()]
    )
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3)).astype("float32")
    y = (x[:, 0] > 0).astype(int)
    stop = keras.callbacks.EarlyStopping("val_matthews_correlation", mode="max", patience=1)
    history = model.fit(x, y, epochs=3, validation_data=(x, y), callbacks=[stop], verbose=0).history
    found = model.predict(x, verbose=0).argmax(axis=1)
    assert history["val_matthews_correlation"][-1] == pytest.approx(
        matthews_corrcoef(y, found), abs=1e-5
    )
    assert history["val_f1"][-1] == pytest.approx(f1_score(y, found), abs=1e-5)


def test_bad_class_index():
    with pytest.raises(ValueError, match="`class_index` must be from 0 to 1"):
        ClassF1(2)
