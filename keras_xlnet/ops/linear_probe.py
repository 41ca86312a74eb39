"""Linear models on features x that stay as they are: the weights W with the least penalized loss.

    softmax:  mean of -log softmax(W x + b)[y]               + l2/2 |W|²
    sigmoid:  mean of the binary cross-entropies, summed     + l2/2 |W|²
    linear:   mean of (W x + b - y)² / 2                     + l2/2 |W|²

Features are centred and divided by their standard deviation first, one number for all of them. The
losses are convex. Each step solves for the minimum of a quadratic function that is nowhere below
the loss and touches it at the present weights, so no rate has to be chosen.

Source: Böhning 1992, "Multinomial logistic regression algorithm".
"""

import math
import numbers
from typing import Any

import numpy as np

# The curvature of the loss is at most this times the curvature of (W x)² / 2.
_CURVATURES = {"softmax": 0.5, "sigmoid": 0.25, "linear": 1.0}
_MOST_STEPS = 500
_TOLERANCE = 1e-5


def check_l2(l2: Any) -> None:
    """Raises `ValueError` if `l2` is not a finite number above 0."""
    if isinstance(l2, bool) or not isinstance(l2, numbers.Real) or not 0 < l2 < math.inf:
        raise ValueError(f"`l2` must be a finite number above 0. Received: l2={l2!r}")


def fit_linear(
    features: np.ndarray,
    targets: np.ndarray,
    kind: str,
    weights: np.ndarray | None = None,
    l2: float = 0.3,
) -> tuple[np.ndarray, np.ndarray]:
    """Fits a linear model.

    Args:
        features: Float array `(rows, dim)`.
        targets: Float array `(rows, units)`: one-hot for `"softmax"`, zeros and ones for
            `"sigmoid"`, any numbers for `"linear"`.
        kind: `"softmax"`, `"sigmoid"` or `"linear"`.
        weights: Optional float array `(rows,)`, the weights of the rows. 1 by default.
        l2: Float greater than 0.

    Returns:
        Kernel `(dim, units)` and bias `(units,)`, for the features as they are given.
    """
    features = np.asarray(features, "float64")
    weights = np.ones(len(features)) if weights is None else np.asarray(weights, "float64")
    weights = weights / weights.sum()
    mean = weights @ features
    centred = features - mean
    scale = np.sqrt((weights @ centred**2).mean()) or 1.0
    x = np.concatenate([centred / scale, np.ones((len(features), 1))], axis=1)
    kernel = _minimize(x, np.asarray(targets, "float64"), kind, weights, l2)
    kernel, bias = kernel[:-1] / scale, kernel[-1]
    return kernel, bias - mean @ kernel


def _minimize(x, targets, kind, weights, l2):
    """The weights for features whose last column is 1. The bias is not penalized."""
    weighted = (x * weights[:, np.newaxis]).T
    penalty = np.full((x.shape[1], 1), l2)
    penalty[-1] = 0.0
    curvature = _CURVATURES[kind] * (weighted @ x) + np.diag(penalty[:, 0])
    inverse = np.linalg.inv(curvature)
    kernel = np.zeros((x.shape[1], targets.shape[1]))
    for _ in range(_MOST_STEPS):
        step = inverse @ (weighted @ (_outputs(x @ kernel, kind) - targets) + penalty * kernel)
        kernel -= step
        if np.abs(step).max() < _TOLERANCE:
            break
    return kernel


def _outputs(logits, kind):
    if kind == "linear":
        return logits
    if kind == "sigmoid":
        return (1 + np.tanh(logits / 2)) / 2
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)
