"""Linear models on fixed features x: the weights W that minimize a penalized loss.

    softmax:  mean of -log softmax(W x + b)[y]               + l2/2 |W|²
    sigmoid:  mean of the binary cross-entropies, summed     + l2/2 |W|²
    linear:   mean of (W x + b - y)² / 2                     + l2/2 |W|²

Features are centred first, and divided by one standard deviation for all of them. Features that
hardly vary are divided by their root mean square instead, so that their weights are near 0. The
losses are convex. Each step minimizes a quadratic function that is nowhere below the loss and
touches it at the current weights, so there is no learning rate to choose. Momentum speeds up the
steps where the curvature is far below its bound, as it is for classes that are easy to distinguish.

Source: Böhning 1992, "Multinomial logistic regression algorithm"; O'Donoghue and Candès 2015,
"Adaptive restart for accelerated gradient schemes".
"""

import warnings

import numpy as np

from keras_xlnet.arguments import check_number

# Bounds of the curvature of the loss, relative to the curvature of (W x)² / 2.
_CURVATURES = {"softmax": 0.5, "sigmoid": 0.25, "linear": 1.0}
_MOST_STEPS = 5000
# For the gradient, in units of `l2`. It bounds the distance to the best weights.
_TOLERANCE = 1e-5
_SMALLEST_L2 = 1e-9
# The standard deviation of features, relative to their root mean square. Features that vary less
# say nothing, and a kernel for them would be so large that training could not go on from it.
_SMALLEST_SPREAD = 1e-3


def check_l2(l2: float) -> None:
    """Raises `ValueError` if `l2` is not a finite number of at least 1e-9."""
    check_number("l2", l2, low=_SMALLEST_L2)


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
        l2: Float, at least 1e-9.

    Returns:
        Kernel `(dim, units)` and bias `(units,)`, for the features as they are given. If they are
        not the best ones after 5,000 steps, as with an `l2` far below 0.001, there is a warning.

    Raises:
        ValueError: If `l2` is not a finite number of at least 1e-9.
    """
    check_l2(l2)
    features = np.asarray(features, "float64")
    weights = np.ones(len(features)) if weights is None else np.asarray(weights, "float64")
    weights = weights / weights.sum()
    mean = weights @ features
    centred = features - mean
    scale, size = (np.sqrt((weights @ values**2).mean()) for values in (centred, features))
    if scale <= _SMALLEST_SPREAD * size:
        scale = size or 1.0  # The kernel is near 0.
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
    kernel = ahead = np.zeros((x.shape[1], targets.shape[1]))
    steps = 0  # Since momentum started. It restarts when it leads uphill.
    for _ in range(_MOST_STEPS):
        gradient = weighted @ (_outputs(x @ ahead, kind) - targets) + penalty * ahead
        if np.abs(gradient).max() < _TOLERANCE * l2:
            break
        before, kernel = kernel, ahead - inverse @ gradient
        change = kernel - before
        steps = 0 if (gradient * change).sum() > 0 else steps + 1
        ahead = kernel + steps / (steps + 3) * change
    else:
        warnings.warn(
            f"The best weights were not found in {_MOST_STEPS} steps. Use a larger `l2`. Received: "
            f"{l2=}",
            stacklevel=2,
        )
    return ahead


def _outputs(logits, kind):
    if kind == "linear":
        return logits
    if kind == "sigmoid":
        return (1 + np.tanh(logits / 2)) / 2
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)
