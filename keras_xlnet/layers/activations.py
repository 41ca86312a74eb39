from collections.abc import Callable
from typing import Any

import keras

from keras_xlnet.types import Activation, Tensor


@keras.saving.register_keras_serializable(package="keras_xlnet")
def gelu_tanh(x: Tensor) -> Tensor:
    """Computes the tanh form of the Gaussian error linear unit, the activation of XLNet.

    `activation="gelu"` has its Keras meaning, the erf form, which differs by up to 5e-4.

    Args:
        x: Tensor of any shape.

    Returns:
        A tensor of the shape of `x`.

    Example:

    >>> round(float(keras_xlnet.layers.gelu_tanh(1.0)), 4)
    0.8412

    Source: Hendrycks and Gimpel 2016, section 2.
    """
    return keras.activations.gelu(x, approximate=True)


def get_activation(identifier: Activation | None) -> Callable[..., Any]:
    """Returns the function of a Keras activation identifier, or of the name `"gelu_tanh"`."""
    return gelu_tanh if identifier == "gelu_tanh" else keras.activations.get(identifier)


def serialize_activation(activation: Callable[..., Any]) -> Any:
    """Returns the identifier of an activation, the inverse of `get_activation`."""
    return "gelu_tanh" if activation is gelu_tanh else keras.activations.serialize(activation)
