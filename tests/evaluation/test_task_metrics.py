"""Metrics of tasks over batches equal scikit-learn and NumPy over all rows."""

import itertools

import keras
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score, matthews_corrcoef

from keras_xlnet.evaluation import (
    ClassF1,
    MatthewsCorrelation,
    PearsonCorrelation,
    QuadraticWeightedKappa,
    fit_rating_thresholds,
)

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


@pytest.mark.parametrize(
    "metric",
    [MatthewsCorrelation(3), ClassF1(2, 3), PearsonCorrelation(), QuadraticWeightedKappa(0, 2)],
)
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


# === Ratings ===


def kappa_of(true, found, weights=None, ratings=range(1, 7)):
    return cohen_kappa_score(
        true, found, labels=[*ratings], weights="quadratic", sample_weight=weights
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(60,), (60, 1), (20, 3)])
def test_kappa_of_numbers(shape, weighted):
    rng = np.random.default_rng(len(shape))
    true = rng.integers(1, 7, 60)
    values = true + rng.normal(scale=1.5, size=60)  # Some are out of range.
    weights = rng.uniform(size=60) if weighted and shape[-1] != 3 else None
    y_true, y_pred = true.reshape(shape), values.reshape(shape)
    value = in_batches(QuadraticWeightedKappa(1, 6), y_true, y_pred, weights)
    found = np.clip(np.round(values), 1, 6).astype(int)
    assert value == pytest.approx(kappa_of(true, found, weights), abs=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_kappa_of_classes(weighted):
    rng = np.random.default_rng(1)
    index = rng.integers(6, size=60)
    scores = rng.normal(size=(60, 6)) + np.eye(6)[index]
    weights = rng.uniform(size=60) if weighted else None
    value = in_batches(QuadraticWeightedKappa(1, 6), index, scores, weights)
    expected = kappa_of(index + 1, scores.argmax(axis=1) + 1, weights)
    assert value == pytest.approx(expected, abs=1e-5)


def test_ratings_out_of_range_do_not_count():
    true, found = np.array([[0.0], [7.0], [-3.0], [2.0], [5.0]]), np.array([[1.0]] * 4 + [[6.0]])
    value = in_batches(QuadraticWeightedKappa(1, 6), true, found)
    assert value == pytest.approx(kappa_of([2, 5], [1, 6]), abs=1e-6)
    assert in_batches(QuadraticWeightedKappa(1, 6), true[:3], found[:3]) == 0.0
    for ratings in (6, 1), (3, 3), (1.0, 6.0):
        with pytest.raises(ValueError, match="`max_rating`"):
            QuadraticWeightedKappa(*ratings)


def test_kappa_on_two_replicas(two_replicas):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(40, 3)).astype("float32")
    y = np.clip(np.round(3 + 2 * x[:, :1]), 1, 6)
    with two_replicas.scope():
        model = keras.Sequential([keras.layers.Dense(1, bias_initializer="ones")])
        model.compile("sgd", "mse", metrics=[QuadraticWeightedKappa(1, 6)])
    found = model.evaluate(x, y, batch_size=8, verbose=0, return_dict=True)
    ratings = np.clip(np.round(model.predict(x, verbose=0)), 1, 6).astype(int)
    expected = kappa_of(y[:, 0].astype(int), ratings[:, 0])
    assert found["quadratic_weighted_kappa"] == pytest.approx(expected, abs=1e-5)


def test_no_other_thresholds_have_a_better_kappa():
    rng = np.random.default_rng(3)
    for _ in range(60):
        ratings = rng.integers(1, 5, rng.integers(4, 9))
        if len(set(ratings)) < 2:
            continue
        values = np.round(ratings + rng.normal(scale=rng.choice([0.5, 2.0]), size=len(ratings)), 1)
        low, levels = ratings.min(), range(ratings.min(), ratings.max() + 1)

        def kappa(thresholds, ratings=ratings, values=values, low=low, levels=levels):
            found = low + np.digitize(values, thresholds)
            # Of ratings that are all the same it is not a number.
            return np.nan_to_num(kappa_of(ratings, found, ratings=levels))

        different = np.unique(values)
        places = [-np.inf, *(different[1:] + different[:-1]) / 2, np.inf]
        sets = itertools.combinations_with_replacement(places, len(levels) - 1)
        thresholds = fit_rating_thresholds(values[:, None], ratings)
        assert (np.sort(thresholds) == thresholds).all()
        assert kappa(thresholds) == pytest.approx(max(map(kappa, map(list, sets))), abs=1e-9)


def test_thresholds_of_wrong_ratings():
    for values, ratings in ([1.0], [1, 2]), ([1.0, np.nan], [1, 2]):
        with pytest.raises(ValueError, match="finite numbers, equally many"):
            fit_rating_thresholds(values, ratings)
    for ratings in [1, 1.5], [2, 2]:
        with pytest.raises(ValueError, match="whole numbers, at least two"):
            fit_rating_thresholds([0.0, 1.0], ratings)
