"""Calibration of probabilities, and the threshold of a decision.

    p = softmax(z / T),  where the temperature T > 0 minimizes the mean of -log p[y]

The order of the classes does not change. The loss is convex in 1 / T.

Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", section 4.2.
"""

from collections.abc import Callable

import numpy as np

_LOWEST, _HIGHEST = 1e-4, 1e4
_NUM_HALVINGS = 60


def fit_temperature(logits: np.ndarray, targets: np.ndarray) -> float | None:
    """Returns the temperature for classes that exclude each other.

    Args:
        logits: Float array `(rows, classes)`. A constant in each row changes nothing,
            so they may be log-probabilities.
        targets: Int array `(rows,)`, the classes, or float array `(rows, classes)`, their
            probabilities.

    Returns:
        A float from 0.0001 to 10,000. `None` if no temperature is the best one. If no row is wrong,
        a lower temperature is always better; if the logits are no better than equal logits, a
        higher one is.

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
    of_label = (_one_hot(targets, logits) * logits).sum(axis=1).mean()

    def is_too_cold(temperature):
        # The derivative of the loss with respect to 1 / T has the sign of this difference.
        weights = np.exp(logits / temperature)
        return ((weights * logits).sum(axis=1) / weights.sum(axis=1)).mean() > of_label

    low, high = np.log(_LOWEST), np.log(_HIGHEST)
    if of_label >= 0 or not is_too_cold(_LOWEST) or is_too_cold(_HIGHEST):
        return None
    for _ in range(_NUM_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_too_cold(np.exp(middle)) else (low, middle)
    return float(np.exp((low + high) / 2))


def negative_log_likelihood(logits: np.ndarray, targets: np.ndarray) -> float:
    """Returns the mean of -log p[y] in nats, for arrays as in `fit_temperature`."""
    log_probs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    return float(-(_one_hot(targets, logits) * log_probs).sum(axis=1).mean())


def _one_hot(targets, logits):
    """Returns the probabilities of the classes, one-hot rows for indices `(rows,)`."""
    return targets if targets.ndim == 2 else np.eye(logits.shape[1])[targets]


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

    Scores at or above the threshold are positive.

    Args:
        scores: Float array `(rows,)`, from 0 to 1.
        labels: Array of 0 and 1, `(rows,)`.
        metric: `"f1"`, `"accuracy"` or `"mcc"`.

    Returns:
        Two floats. The threshold is 0.5 if this is one of the best, otherwise the middle between
        two scores. If several are equally good, the one nearest to 0.5 is returned. Rounding it to
        the dtype of the scores changes no decision.

    Example:

    >>> from keras_xlnet.ops.calibration import best_threshold
    >>> best_threshold(np.array([0.1, 0.3, 0.2, 0.8]), np.array([0, 1, 0, 1]), "f1")
    (0.25, 1.0)
    """
    order = np.argsort(-np.asarray(scores), kind="stable")
    scores, labels = np.asarray(scores)[order], np.asarray(labels, "float64")[order]
    # Entry n: the n highest scores are positive.
    tp = np.concatenate([[0.0], np.cumsum(labels)])
    fp = np.arange(len(scores) + 1) - tp
    values = THRESHOLD_METRICS[metric](tp, fp, tp[-1] - tp, fp[-1] - fp)
    # Thresholds above `low` and up to `high` have this result. No score is above 1.
    one, zero = np.ones(1, scores.dtype), np.zeros(1, scores.dtype)
    high, low = np.concatenate([one, scores]), np.concatenate([scores, zero])
    is_possible = high > low
    is_possible[-1] = True  # At a threshold of 0 all are positive.
    middle = high / 2 + low / 2
    thresholds = np.where((middle > low) | (high == low), middle, high)  # Not rounded to `low`.
    thresholds = np.where((low < 0.5) & (high >= 0.5), 0.5, thresholds).astype(scores.dtype)
    values = np.where(is_possible, values, -np.inf)
    best = np.flatnonzero(values == values.max())
    nearest = best[np.argmin(np.abs(thresholds[best] - 0.5))]
    return float(thresholds[nearest]), float(values[nearest])
