"""Probabilities that are right as often as they say, and the threshold of a decision.

    p = softmax(z / T),  with the temperature T > 0 of the least mean of -log p[y]

The order of the classes stays as it is. The loss is convex in 1 / T.

Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", section 4.2.
"""

from collections.abc import Callable

import numpy as np

_LOWEST, _HIGHEST = 0.01, 100.0
_NUM_HALVINGS = 60


def fit_temperature(logits: np.ndarray, labels: np.ndarray) -> float:
    """Returns the temperature of exclusive classes.

    Args:
        logits: Float array `(rows, classes)`. A constant may be added to each row, so
            log-probabilities will do.
        labels: Int array `(rows,)`.

    Returns:
        A float from 0.01 to 100. At the ends no temperature is best: all rows are right, or the
        logits say nothing of the labels.

    Example:

    Of four rows with a probability of 0.9, three are right:

    >>> from keras_xlnet.ops.calibration import fit_temperature
    >>> logits = np.log([[0.9, 0.1]] * 4)
    >>> temperature = fit_temperature(logits, np.array([0, 0, 0, 1]))
    >>> scaled = np.exp(logits / temperature)
    >>> (scaled / scaled.sum(1, keepdims=True))[0].round(3).tolist()
    [0.75, 0.25]
    """
    logits = np.asarray(logits, "float64")
    logits = logits - logits.max(axis=1, keepdims=True)
    of_label = logits[np.arange(len(logits)), labels].mean()
    # Of the logarithm of 1 / T: the derivative of the loss by 1 / T has the sign of its difference
    # from the best one.
    low, high = -np.log(_HIGHEST), -np.log(_LOWEST)
    for _ in range(_NUM_HALVINGS):
        middle = (low + high) / 2
        weights = np.exp(logits * np.exp(middle))
        expected = (weights * logits).sum(axis=1) / weights.sum(axis=1)
        is_above = expected.mean() > of_label
        low, high = (low, middle) if is_above else (middle, high)
    return float(np.exp(-(low + high) / 2))


def negative_log_likelihood(log_probs: np.ndarray, labels: np.ndarray) -> float:
    """Returns the mean of -log p[y] in nats, of `(rows, classes)` and `(rows,)`."""
    return float(-log_probs[np.arange(len(log_probs)), labels].mean())


def _f1(tp, fp, fn, tn):
    return 2 * tp / np.maximum(2 * tp + fp + fn, 1)


def _accuracy(tp, fp, fn, tn):
    return (tp + tn) / (tp + fp + fn + tn)


def _matthews_correlation(tp, fp, fn, tn):
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / np.sqrt(np.maximum(product, 1))


THRESHOLD_METRICS: dict[str, Callable[..., np.ndarray]] = {
    "f1": _f1,
    "accuracy": _accuracy,
    "mcc": _matthews_correlation,
}


def best_threshold(scores: np.ndarray, labels: np.ndarray, metric: str) -> tuple[float, float]:
    """Returns the threshold with the highest metric, and this metric.

    What has at least the threshold as score is called positive.

    Args:
        scores: Float array `(rows,)`, from 0 to 1.
        labels: Array of 0 and 1, `(rows,)`.
        metric: `"f1"`, `"accuracy"` or `"mcc"`.

    Returns:
        Two floats. The threshold is 0.5 if that is one of the best, otherwise the middle between
        two scores, of several the one nearest to 0.5.

    Example:

    >>> from keras_xlnet.ops.calibration import best_threshold
    >>> best_threshold(np.array([0.1, 0.3, 0.2, 0.8]), np.array([0, 1, 0, 1]), "f1")
    (0.25, 1.0)
    """
    order = np.argsort(-np.asarray(scores, "float64"), kind="stable")
    scores, labels = np.asarray(scores, "float64")[order], np.asarray(labels, "float64")[order]
    # With 0, 1, 2, ... of the highest scores called positive.
    tp = np.concatenate([[0.0], np.cumsum(labels)])
    fp = np.arange(len(scores) + 1) - tp
    values = THRESHOLD_METRICS[metric](tp, fp, tp[-1] - tp, fp[-1] - fp)
    edges = np.concatenate([[1.0], scores, [0.0]])
    is_even = (edges[1:] < 0.5) & (edges[:-1] >= 0.5)
    thresholds = np.where(is_even, 0.5, (edges[:-1] + edges[1:]) / 2)
    # Equal scores are on one side.
    is_possible = edges[:-1] > edges[1:]
    values = np.where(is_possible, values, -np.inf)
    best = np.flatnonzero(values == values.max())
    nearest = best[np.argmin(np.abs(thresholds[best] - 0.5))]
    return float(thresholds[nearest]), float(values[nearest])
