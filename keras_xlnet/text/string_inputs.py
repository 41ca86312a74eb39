"""What the text layers accept as strings."""

import tensorflow as tf


def as_strings(inputs, name="inputs"):
    """A string tensor, dense or ragged, of known rank; `name` is the argument that errors name."""
    if not isinstance(inputs, (tf.Tensor, tf.RaggedTensor)):
        inputs = _to_tensor(inputs, name)
    require_string_dtype(inputs, name)
    if inputs.shape.rank is None:
        raise ValueError(f"{name} must have a known rank. Received: a tensor of unknown rank")
    return inputs


def require_string_dtype(inputs, name="inputs"):
    """For TensorFlow's tensors and for symbolic ones of Keras."""
    dtype = getattr(inputs.dtype, "name", inputs.dtype)
    if dtype != "string":
        raise ValueError(f"{name} must be strings. Received: dtype {dtype}")


def _to_tensor(inputs, name):
    # Without a string to look at, TensorFlow would make an empty list one of floats.
    if isinstance(inputs, list) and not inputs:
        return tf.zeros([0], tf.string)
    try:
        return tf.convert_to_tensor(inputs)
    except (TypeError, ValueError):
        pass
    try:
        return tf.ragged.constant(inputs, tf.string)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be strings. Received: {inputs!r}") from error
