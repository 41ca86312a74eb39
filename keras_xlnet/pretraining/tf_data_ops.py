"""Operations of the `tf.data` pipelines: calls of Keras layers, and uniform random numbers."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf


def call_in_tf_data(
    layer: keras.layers.Layer,
    numpy_implementation: Callable[..., Any],
    inputs: dict[str, tf.Tensor],
    output_signature: Any,
) -> Any:
    """Calls a Keras layer in the graph of a `tf.data` pipeline, on every Keras backend.

    On the JAX and PyTorch backends a layer cannot be part of a TensorFlow graph. There, the NumPy
    implementation of the layer is called through `tf.numpy_function`.

    Args:
        layer: Keras layer.
        numpy_implementation: Function of NumPy arrays that computes the same as the layer.
        inputs: Dict of tensors, the keyword arguments of both.
        output_signature: (Nested) `tf.TensorSpec` of what both return.

    Returns:
        Tensors in the structure of `output_signature`.
    """
    if keras.backend.backend() == "tensorflow":
        return layer(**inputs)
    specs = tf.nest.flatten(output_signature)

    def call_on_arrays(*arrays):
        outputs = numpy_implementation(**dict(zip(inputs, arrays, strict=True)))
        outputs = zip(tf.nest.flatten(outputs), specs, strict=True)
        return [output.astype(spec.dtype.name) for output, spec in outputs]

    outputs = tf.numpy_function(
        call_on_arrays, list(inputs.values()), [spec.dtype for spec in specs]
    )
    for output, spec in zip(outputs, specs, strict=True):
        output.set_shape(spec.shape)
    return tf.nest.pack_sequence_as(output_signature, outputs)


def uniform_draws(
    shape: tuple[int, ...], seed: int, step: tf.Tensor, dtype: str = "float32"
) -> tf.Tensor:
    """Returns uniform random numbers in [0, 1) that depend only on the seed and the step.

    Args:
        shape: Tuple of ints.
        seed: Int.
        step: Int64 scalar tensor.
        dtype: String, `"float32"` or `"float64"`.

    Returns:
        Tensor of shape `shape`, the same on every kind of device.
    """
    seed = tf.stack([tf.constant(seed, tf.int64), step])
    return tf.random.stateless_uniform(shape, seed, dtype=dtype, alg="philox")
