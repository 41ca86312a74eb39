"""Layers that take strings, and conversion of strings to tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_xlnet.lazy_modules import tf
from keras_xlnet.tokenizers.cleaning import replace_surrogates
from keras_xlnet.tokenizers.text_columns import plain_texts
from keras_xlnet.types import Shape


class StringLayer(keras.layers.Layer):
    """Base class of layers that take strings, in TensorFlow whatever the backend is."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # As in the string layers of Keras: other backends and XLA have no string tensors.
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self.supports_jit = False
        self.built = True


class StringTokenizer(StringLayer):
    """Base class of tokenizers: strings of any shape to ragged ids.

    A tokenizer has `_tokenize`, from a string tensor `(batch,)` to an int32 `tf.RaggedTensor`.
    """

    def __call__(self, inputs: Any, **kwargs: Any) -> Any:
        # Converted to one tensor here, because Keras would inspect each string of a list.
        if not isinstance(inputs, (keras.KerasTensor, str)):
            inputs = as_strings(inputs)
        return super().__call__(inputs, **kwargs)

    def call(self, inputs: Any) -> tf.Tensor | tf.RaggedTensor:
        return on_texts(self._tokenize, inputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape, None)

    def compute_output_spec(self, inputs: Any) -> keras.KerasTensor:
        check_string_dtype(inputs)
        shape = self.compute_output_shape(inputs.shape)
        return keras.KerasTensor(shape, dtype="int32", ragged=True)


def as_strings(inputs: Any, name: str = "inputs") -> tf.Tensor | tf.RaggedTensor:
    """Converts inputs to a dense or ragged string tensor of known rank.

    Args:
        inputs: String, (nested) list of strings, tensor, or a column of `plain_columns`.
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


def on_texts(function: Callable[..., Any], inputs: Any) -> Any:
    """Applies a function of a `(batch,)` string tensor to texts of any form, as `map_flat` does."""
    # String ops have only CPU kernels, and a table on an accelerator would be copied to the CPU in
    # every call.
    with tf.device("CPU:0"):
        return map_flat(function, as_strings(inputs))


def check_string_dtype(inputs: Any, name: str = "inputs") -> None:
    """Raises `ValueError` if a TensorFlow or Keras tensor is not of dtype string."""
    dtype = getattr(inputs.dtype, "name", inputs.dtype)
    if dtype != "string":
        raise ValueError(f"`{name}` must be strings. Received: dtype {dtype}")


def map_flat(function: Callable[[tf.Tensor], Any], texts: tf.Tensor | tf.RaggedTensor) -> Any:
    """Applies a function of a `(batch,)` string tensor to a string tensor of any rank.

    Args:
        function: Returns a `tf.Tensor` `(batch,)`, a `tf.RaggedTensor` `(batch, None)` or a tuple
            of these.
        texts: `tf.Tensor` or `tf.RaggedTensor` `(...)`.

    Returns:
        The result of the function with the batch dimension replaced by the dimensions of `texts`.
    """
    if isinstance(texts, tf.RaggedTensor):
        flat = map_flat(function, texts.flat_values)
        return tf.nest.map_structure(texts.with_flat_values, flat)
    flat = function(tf.reshape(texts, [-1]))
    return tf.nest.map_structure(lambda part: _shaped_as(texts, part), flat)


def _shaped_as(texts, flat):
    if texts.shape.rank == 0:
        return flat[0]
    if texts.shape.rank == 1:
        return flat
    if isinstance(flat, tf.Tensor):
        return tf.reshape(flat, tf.shape(texts))
    rows = tf.RaggedTensor.from_tensor(texts, ragged_rank=texts.shape.rank - 1)
    return rows.with_flat_values(flat)


def _to_tensor(inputs, name):
    inputs = plain_texts(inputs)
    # TensorFlow converts an empty list to float32.
    if isinstance(inputs, list) and not inputs:
        return tf.zeros([0], tf.string)
    for convert in (lambda x: x, _without_surrogates):
        with contextlib.suppress(TypeError, ValueError):
            return tf.convert_to_tensor(convert(inputs))
    try:
        return tf.ragged.constant(_without_surrogates(inputs), tf.string)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be strings. Received: {inputs!r}") from error


def _without_surrogates(inputs):
    """Strings in which U+FFFD stands for each surrogate, as in `encode`."""
    inputs = inputs.tolist() if isinstance(inputs, np.ndarray) else inputs
    if isinstance(inputs, (list, tuple)):
        return [*map(_without_surrogates, inputs)]
    return replace_surrogates(inputs) if isinstance(inputs, str) else inputs
