"""Temperatures and thresholds: equal to a search over all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from keras_xlnet.ops.calibration import (
    best_threshold,
    fit_temperature,
    negative_log_likelihood,
)

SKLEARN = {
    "f1": lambda y, found: metrics.f1_score(y, found, zero_division=0),
    "accuracy": metrics.accuracy_score,
    "mcc": metrics.matthews_corrcoef,
}


def loss(logits, labels, temperature):
    scaled = logits / temperature
    return negative_log_likelihood(scaled - np.logaddexp.reduce(scaled, 1, keepdims=True), labels)


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
def test_temperature_has_the_least_loss(scale):
    rng = np.random.default_rng(1)
    true = rng.normal(size=(400, 4)) * 2
    labels = np.array([rng.choice(4, p=np.exp(z) / np.exp(z).sum()) for z in true])
    found = fit_temperature(true * scale, labels)
    # The labels were drawn with temperature 1.
    assert found == pytest.approx(scale, rel=0.2)
    grid = np.geomspace(0.01, 100, 4001)
    best = grid[np.argmin([loss(true * scale, labels, t) for t in grid])]
    assert found == pytest.approx(best, rel=3e-3)
    # A constant in each row makes no difference.
    assert fit_temperature(true * scale + rng.normal(size=(400, 1)), labels) == pytest.approx(found)


def test_no_temperature_is_best():
    """All rows are right, all are wrong, or the logits say nothing."""
    logits = np.array([[1.0, 0.0], [0.0, 1.0]])
    for each, labels in ((logits, [0, 1]), (logits, [1, 0]), (0 * logits, [0, 1])):
        assert fit_temperature(each, np.array(labels)) is None


def test_probabilities_as_labels():
    """The best temperature gives back the temperature that the labels were made with."""
    logits = np.random.default_rng(1).normal(size=(50, 3)) * 100
    probabilities = np.exp(logits / 25.4)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    assert fit_temperature(logits, probabilities) == pytest.approx(25.4)
    assert negative_log_likelihood(logits / 25.4, probabilities) == pytest.approx(
        -(probabilities * np.log(probabilities)).sum(axis=1).mean()
    )


def test_thresholds_are_not_rounded_onto_a_score():
    low = np.float32(0.3)
    high = np.nextafter(low, np.float32(1))
    for scores in ([low, high], [np.float32(1 - 2**-24), np.float32(1)], [0, 1e-45]):
        scores = np.array(scores, "float32")
        threshold, value = best_threshold(scores, np.array([0, 1]), "accuracy")
        assert value == 1
        np.testing.assert_array_equal(scores >= np.float32(threshold), [False, True])


def test_all_are_positive_at_0_and_none_is_above_1():
    assert best_threshold(np.array([0.0, 0.0]), np.array([1, 1]), "f1") == (0.0, 1.0)
    assert best_threshold(np.array([0.0, 0.2]), np.array([1, 1]), "accuracy") == (0.0, 1.0)
    threshold, value = best_threshold(np.array([0.9, 0.8]), np.array([0, 0]), "accuracy")
    assert threshold > 0.9 and value == 1
    assert best_threshold(np.array([1.0, 1.0]), np.array([0, 0]), "accuracy")[1] == 0


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=30))
def test_threshold_is_the_best_of_all(rows):
    scores, labels = np.array([s / 20 for s, _ in rows]), np.array([int(y) for _, y in rows])
    for metric, of_sklearn in SKLEARN.items():
        threshold, value = best_threshold(scores, labels, metric)
        assert 0 <= threshold <= 1
        assert of_sklearn(labels, scores >= threshold) == pytest.approx(value)
        # Between two neighbouring scores, all thresholds decide alike.
        others = (of_sklearn(labels, scores >= k / 40) for k in range(1, 41, 2))
        assert value >= max(others) - 1e-12
