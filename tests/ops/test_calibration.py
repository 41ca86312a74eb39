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


def test_ends_of_the_temperature():
    logits = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert fit_temperature(logits, np.array([0, 1])) == pytest.approx(0.01)
    assert fit_temperature(logits, np.array([1, 0])) == pytest.approx(100)


@settings(max_examples=60)
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
