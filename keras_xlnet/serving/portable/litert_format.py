"""LiteRT (formerly TensorFlow Lite): a network of the TensorFlow backend."""

import pathlib
from typing import Any

import keras


def write_litert(network: keras.Model, file: pathlib.Path, quantization: str | None = None) -> None:
    """Writes a network for any number of rows of any length. The backend must be TensorFlow.

    `"float16"` halves the file; the runtime converts the weights to float32. With `"int8"` the
    weights have 8 bits, the inputs of each product are rounded to 8 bits at run time, and products
    are computed in int8. The converter decides which weights stay in float32.

    Args:
        network: Functional model with dicts of inputs `(batch, length)` and of outputs.
        file: Path of the file, which ends in `.tflite`.
        quantization: `"float16"`, `"int8"` or `None`.
    """
    import tensorflow as tf

    options: dict[str, Any] = {}
    if quantization is not None:
        options["optimizations"] = [tf.lite.Optimize.DEFAULT]
    if quantization == "float16":
        options["target_spec"] = {"supported_types": [tf.float16]}
    network.export(file, format="litert", verbose=False, **options)
