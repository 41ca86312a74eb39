"""The temperature and the threshold that `XLNetTextClassifier.calibrate` finds."""

import dataclasses

import numpy as np

from keras_xlnet.ops.calibration import best_threshold, fit_temperature, negative_log_likelihood
from keras_xlnet.results import Result

# Probabilities are clipped to this before their logarithm is taken, float32.
_SMALLEST = 1e-7


@dataclasses.dataclass(frozen=True, repr=False)
class Calibration(Result):
    """The result of `XLNetTextClassifier.calibrate`.

    Args:
        temperature: Float, what the logits were divided by. Above 1, the model was too sure.
        loss_before, loss_after: Floats, the mean of the negative log-likelihood of the labels in
            nats, before and after.
        threshold: Float, the threshold that was chosen, or `None`.
        metric: String, what it was chosen for, or `None`.
        value: Float, this metric with the threshold, or `None`.

    Example:

    >>> from keras_xlnet.training import Calibration
    >>> Calibration(1.732, 0.41234, 0.30001)
    Calibration(temperature=1.732, loss_before=0.4123, loss_after=0.3)
    """

    temperature: float
    loss_before: float
    loss_after: float
    threshold: float | None = None
    metric: str | None = None
    value: float | None = None


def fit_temperature_of(
    probabilities: np.ndarray, labels: np.ndarray, activation: str
) -> Calibration:
    """Finds the temperature.

    Args:
        probabilities: Float array `(rows, num_classes)`.
        labels: Int array `(rows,)`; one-hot, or with `"sigmoid"` 0 and 1, `(rows, num_classes)`.
        activation: `"softmax"` or `"sigmoid"`.
    """
    probabilities, labels = _exclusive(probabilities, labels, activation)
    logits = np.log(np.clip(probabilities, _SMALLEST, 1.0))
    temperature = fit_temperature(logits, labels)
    before, after = _log_probs(logits), _log_probs(logits / temperature)
    loss_before, loss_after = (
        negative_log_likelihood(log_probs, labels) for log_probs in (before, after)
    )
    return Calibration(temperature, loss_before, loss_after)


def with_threshold(
    calibration: Calibration,
    probabilities: np.ndarray,
    labels: np.ndarray,
    activation: str,
    metric: str,
) -> Calibration:
    """Returns the calibration with the best threshold of probabilities that are calibrated.

    Args:
        calibration: A `Calibration`.
        probabilities, labels, activation: As in `fit_temperature_of`.
        metric: As in `best_threshold`.
    """
    probabilities, labels = _exclusive(probabilities, labels, activation)
    threshold, value = best_threshold(probabilities[:, 1], labels, metric)
    return dataclasses.replace(calibration, threshold=threshold, metric=metric, value=value)


def _exclusive(probabilities, labels, activation):
    """Probabilities `(rows, classes)` of exclusive classes, and labels `(rows,)`."""
    probabilities = np.asarray(probabilities, "float64")
    labels = np.reshape(labels, (len(probabilities), -1))
    if activation == "sigmoid":
        # Each class is a decision between two.
        p = probabilities.ravel()
        return np.stack([1 - p, p], axis=1), labels.ravel().astype(int)
    labels = labels[:, 0] if labels.shape[1] == 1 else labels.argmax(axis=1)
    return probabilities, labels.astype(int)


def _log_probs(logits):
    return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
