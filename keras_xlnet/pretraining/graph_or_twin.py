"""Keras layers inside tf.data, on every Keras backend."""

import keras
import tensorflow as tf


def graph_or_twin(layer, twin, inputs, outputs):
    """Calls a layer in the graph of a `tf.data` pipeline.

    Where the Keras backend is not TensorFlow the layer cannot be in that graph, and its twin on
    NumPy arrays takes its place.

    Args:
        layer: the layer.
        twin: a function that does on NumPy arrays what the layer does.
        inputs: dict of tensors, the arguments of both.
        outputs: (nested) `tf.TensorSpec`, what both return.

    Returns:
        Tensors in the structure of `outputs`.
    """
    if keras.backend.backend() == "tensorflow":
        return layer(**inputs)
    specs = tf.nest.flatten(outputs)

    def on_arrays(*arrays):
        results = tf.nest.flatten(twin(**dict(zip(inputs, arrays, strict=True))))
        return [result.astype(spec.dtype.name) for result, spec in zip(results, specs, strict=True)]

    results = tf.numpy_function(on_arrays, list(inputs.values()), [spec.dtype for spec in specs])
    for result, spec in zip(results, specs, strict=True):
        result.set_shape(spec.shape)
    return tf.nest.pack_sequence_as(outputs, results)
