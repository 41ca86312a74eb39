"""The activation XLNet was trained with."""

import keras


@keras.saving.register_keras_serializable(package="keras_xlnet")
def gelu_tanh(x):
    """The tanh form of the Gaussian error linear unit, as the original XLNet computes it.

    `activation="gelu"` keeps its Keras meaning, the erf form, which differs by up to 5e-4.

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


def get_activation(identifier):
    """Resolves a Keras activation identifier, or the name `"gelu_tanh"`, to a function."""
    return gelu_tanh if identifier == "gelu_tanh" else keras.activations.get(identifier)


def serialize_activation(activation):
    """The inverse of `get_activation`: a name wherever one exists."""
    return "gelu_tanh" if activation is gelu_tanh else keras.activations.serialize(activation)
