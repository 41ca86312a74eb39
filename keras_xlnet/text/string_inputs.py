"""Conversion of the inputs of text layers to string tensors."""

import tensorflow as tf


def as_strings(inputs, name="inputs"):
    """Converts inputs to a dense or ragged string tensor of known rank.

    Args:
        inputs: String, (nested) list of strings, NumPy array or tensor.
        name: String, the name of the argument in error messages.

    Returns:
        `tf.Tensor` or `tf.RaggedTensor`.

    Raises:
        ValueError: If `inputs` are not strings, or have an unknown rank.
    """
    if not isinstance(inputs, (tf.Tensor, tf.RaggedTensor)):
        inputs = _to_tensor(inputs, name)
    check_string_dtype(inputs, name)
    if inputs.shape.rank is None:
        raise ValueError(f"`{name}` must have a known rank. Received: a tensor of unknown rank")
    return inputs


def check_string_dtype(inputs, name="inputs"):
    """Raises `ValueError` if a TensorFlow or Keras tensor is not of dtype string."""
    dtype = getattr(inputs.dtype, "name", inputs.dtype)
    if dtype != "string":
        raise ValueError(f"`{name}` must be strings. Received: dtype {dtype}")


def map_flat(function, texts):
    """Applies a function of a `(batch,)` string tensor to a string tensor of any rank.

    Args:
        function: Returns a `tf.Tensor` `(batch,)` or a `tf.RaggedTensor` `(batch, None)`.
        texts: `tf.Tensor` or `tf.RaggedTensor` `(...)`.

    Returns:
        The result of the function with the batch dimension replaced by the dimensions of `texts`.
    """
    if isinstance(texts, tf.RaggedTensor):
        return texts.with_flat_values(map_flat(function, texts.flat_values))
    flat = function(tf.reshape(texts, [-1]))
    if texts.shape.rank == 0:
        return flat[0]
    if texts.shape.rank == 1:
        return flat
    if isinstance(flat, tf.Tensor):
        return tf.reshape(flat, tf.shape(texts))
    return tf.RaggedTensor.from_tensor(texts, ragged_rank=texts.shape.rank - 1).with_flat_values(
        flat
    )


def _to_tensor(inputs, name):
    # TensorFlow converts an empty list to float32.
    if isinstance(inputs, list) and not inputs:
        return tf.zeros([0], tf.string)
    try:
        return tf.convert_to_tensor(inputs)
    except (TypeError, ValueError):
        pass
    try:
        return tf.ragged.constant(inputs, tf.string)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be strings. Received: {inputs!r}") from error
