"""The temperature and the threshold that `XLNetTextClassifier.calibrate` finds."""

import dataclasses
import warnings

import numpy as np

from keras_xlnet.ops.calibration import best_threshold, fit_temperature, negative_log_likelihood
from keras_xlnet.results import Result

# Rounding the logits to float32 changes them more than a temperature this close to 1.
_NOTHING_TO_DO = 1e-4


@dataclasses.dataclass(frozen=True, repr=False)
class Calibration(Result):
    """The result of `XLNetTextClassifier.calibrate`.

    Args:
        temperature: Float, the divisor of the logits. Above 1, the model was overconfident.
        loss_before, loss_after: Floats, the mean negative log-likelihood of the labels in nats,
            before and after.
        threshold: Float, the chosen threshold, or `None`.
        metric: String, the metric that the threshold maximizes, or `None`.
        value: Float, the value of the metric with the threshold, or `None`.

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


def fit_temperature_of(logits: np.ndarray, labels: np.ndarray, activation: str) -> Calibration:
    """Finds the best temperature. If there is none, warns and takes 1.

    Args:
        logits: Float array `(rows, num_classes)`.
        labels: Int array `(rows,)`, or probabilities `(rows, num_classes)`; with `"sigmoid"` 0 and
            1 of this shape.
        activation: `"softmax"` or `"sigmoid"`.
    """
    logits, targets = _exclusive(logits, labels, activation)
    temperature = fit_temperature(logits, targets)
    if temperature is None:
        is_right = negative_log_likelihood(logits, targets) < np.log(logits.shape[1])
        reason = "hardly any of the labels is wrong" if is_right else "hardly any is right"
        warnings.warn(
            f"No temperature is best for these {len(labels)} texts, of which {reason}: it stays 1. "
            "Use more texts, which the model was not trained on",
            stacklevel=3,
        )
        temperature = 1.0
    if abs(temperature - 1) < _NOTHING_TO_DO:
        temperature = 1.0
    before, after = (negative_log_likelihood(logits / t, targets) for t in (1.0, temperature))
    return Calibration(temperature, before, after)


def with_measured(
    calibration: Calibration,
    logits: np.ndarray,
    probabilities: np.ndarray,
    labels: np.ndarray,
    activation: str,
    metric: str | None,
) -> Calibration:
    """Returns the calibration with the loss of the calibrated model, and its best threshold.

    Args:
        calibration: A `Calibration`.
        logits, labels, activation: As in `fit_temperature_of`, of the calibrated model.
        probabilities: Its probabilities in the dtype in which they are compared with a threshold.
        metric: As in `best_threshold`, or `None`.
    """
    loss = negative_log_likelihood(*_exclusive(logits, labels, activation))
    calibration = dataclasses.replace(calibration, loss_after=loss)
    if metric is None:
        return calibration
    if activation == "sigmoid":
        scores, is_positive = probabilities.ravel(), labels.ravel()
    else:
        scores = probabilities[:, 1]
        is_positive = labels if labels.ndim == 1 else labels.argmax(axis=1)
    threshold, value = best_threshold(scores, is_positive, metric)
    return dataclasses.replace(calibration, threshold=threshold, metric=metric, value=value)


def _exclusive(logits, labels, activation):
    """Logits `(rows, classes)` of exclusive classes, and targets as in `fit_temperature`."""
    if activation == "softmax":
        return logits, labels if labels.ndim == 2 else labels.astype(int)
    # Each class is a decision between two.
    return np.stack([np.zeros(logits.size), logits.ravel()], axis=1), labels.ravel().astype(int)
