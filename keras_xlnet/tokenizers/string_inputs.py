"""Layers that take strings, and conversion of containers of strings to lists and tensors."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import keras
import numpy as np

from keras_xlnet.lazy_modules import tf
from keras_xlnet.tokenizers.cleaning import replace_surrogates
from keras_xlnet.types import Shape

# Libraries whose columns are neither NumPy arrays nor lists.
_COLUMN_LIBRARIES = ("datasets", "polars", "pyarrow")


def plain_columns(x: Any) -> Any:
    """Returns columns of text as lists, whatever their container is.

    All methods that take texts or labels read them through this function. A column is a column of
    pandas, polars, Arrow or Hugging Face `datasets`, an array or tensor of strings, or a Python
    collection. In a tuple or a dict, a column may also be an iterator.

    Args:
        x: What a user passed: a column, or a tuple or dict of columns. A tuple without columns
            is itself a column. Arrays of numbers, tables, datasets and batches are returned
            unchanged.
    """
    if isinstance(x, Mapping):
        return {name: plain_columns(_listed(column)) for name, column in x.items()}
    if isinstance(x, tuple):
        if not any(hasattr(part, "__iter__") and not isinstance(part, (str, bytes)) for part in x):
            return list(x)
        return tuple(plain_columns(_listed(part)) for part in x)
    if isinstance(x, list) and x and hasattr(x[0], "as_py"):  # Scalars of Arrow.
        return [part.as_py() if hasattr(part, "as_py") else part for part in x]
    if isinstance(x, (list, str, bytes)) or is_table(x):
        return x
    library = type(x).__module__.partition(".")[0]
    if library in _COLUMN_LIBRARIES or getattr(getattr(x, "dtype", None), "kind", "?") in "OSUT":
        names = ("to_pylist", "to_list", "tolist")
        convert = next((getattr(x, name) for name in names if hasattr(x, name)), None)
        return list(x) if convert is None else convert()
    if hasattr(x, "dtype"):
        is_string_tensor = getattr(x.dtype, "name", "") == "string"
        values = getattr(x, "to_list", None) or getattr(x, "numpy", None)
        if not is_string_tensor or values is None:  # Numbers, or a symbolic tensor.
            return x
        found = values()
        return found.tolist() if hasattr(found, "tolist") else found
    return list(x) if isinstance(x, Collection) else x


def plain_texts(x: Any) -> Any:
    """Returns what `plain_columns` does. An iterator of strings is a column too.

    Args:
        x: As in `plain_columns`. The first item of an iterator is consumed, so use the result.
    """
    if isinstance(x, Iterator):
        first = list(itertools.islice(x, 1))
        rest = itertools.chain(first, x)
        return rest if first and not isinstance(first[0], (str, bytes)) else list(rest)
    return plain_columns(x)


def _listed(x):
    return list(x) if isinstance(x, Iterator) else x


def is_table(x: Any) -> bool:
    """Whether `x` is a table of pandas, polars, Arrow or Hugging Face `datasets`."""
    return hasattr(x, "column_names") or (hasattr(x, "columns") and hasattr(x, "dtypes"))


def categories_of(column: Any) -> list[Any] | None:
    """Returns the categories of a column in order, or `None` if it has none.

    Args:
        column: A categorical column of pandas, an `Enum` of polars or an ordered dictionary of
            Arrow. Other categories of polars and Arrow have no order.
    """
    found: Any = getattr(getattr(column, "dtype", column), "categories", None)
    if getattr(getattr(column, "type", None), "ordered", False):
        column = column.unify_dictionaries().chunk(0) if hasattr(column, "chunk") else column
        found = column.dictionary.to_pylist()
    return list(found) if hasattr(found, "__len__") else None


def as_text(name: str, row: int | str, text: Any) -> str:
    """Returns a text as a string. Raises `ValueError` with the name and the row for other types."""
    if isinstance(text, list) and len(text) == 1:  # From an array or a table with one column.
        text = text[0]
    text = text.numpy() if hasattr(text, "numpy") else text  # From a list of tensors.
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    if not isinstance(text, str):
        raise ValueError(f"`{name}` must be strings. Received in row {row}: {text!r}")
    return text


def texts_of_corpus(files: Any) -> Iterator[str] | None:
    """Returns the texts of an argument `files` that is not paths, one by one; `None` for paths.

    Args:
        files: A path or a list of paths; or any other iterable of texts, such as an iterator, a
            column of a table or a `tf.data.Dataset`.
    """
    if isinstance(files, (str, os.PathLike, list, tuple)):
        return None
    return (as_text("files", row, text) for row, text in enumerate(files))


def as_texts(texts: Any, name: str = "x") -> list[str]:
    """Returns a column of texts as a list of strings.

    Raises:
        ValueError: If it is a single string, or something is not text. The message names the row.
    """
    texts = plain_texts(texts)
    if isinstance(texts, (str, bytes)):
        raise ValueError(f"`{name}` must be a batch of texts: pass a list. Received: {texts!r}")
    if not isinstance(texts, list):
        raise ValueError(f"`{name}` must be texts. Received: {texts!r}")
    return [as_text(name, row, text) for row, text in enumerate(texts)]


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
