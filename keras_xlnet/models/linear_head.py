"""The last layer of a task model, fitted on what the layers before it say of the texts."""

from typing import Any

import keras
import numpy as np

from keras_xlnet.ops.linear_probe import fit_linear


def fit_head(model: keras.Model, kind: str, outputs: Any, y: Any, weights: Any, l2: float) -> None:
    """Sets the weights of `model.logits_dense` to those of a linear model of its inputs.

    Args:
        model: A task model with a `logits_dense`.
        kind: As in `fit_linear`.
        outputs: Array `(rows, dim)`, what `features_of(model)` predicts.
        y: Array of labels: class indices `(rows,)`, or numbers `(rows,)` or `(rows, units)`.
        weights: Array `(rows,)` or `None`.
        l2: As in `fit_linear`.
    """
    units = model.logits_dense.units
    targets = np.asarray(y).reshape(len(outputs), -1)
    if kind == "softmax" and targets.shape[1] == 1:
        targets = (targets == np.arange(units)).astype("float64")
    kernel, bias = fit_linear(outputs, targets, kind, weights, l2)
    model.logits_dense.kernel.assign(kernel)
    model.logits_dense.bias.assign(bias)


def features_of(model: Any) -> keras.Model:
    """Returns the model from the inputs of a task model to the inputs of its last layer."""
    if "features" not in model.derived:
        model.derived["features"] = keras.Model(model.input, model.logits_dense.input)
    return model.derived["features"]
