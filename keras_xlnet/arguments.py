"""Checks of arguments: each error names the argument, what was given and what was expected.

Exported directories contain this file (`serving/portable/`): it imports Keras only where it is
called with tensors.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from keras_xlnet.types import Shape

# The sizes that an axis may have: one, one of several, or any (`None`).
Sizes = int | None | tuple[int | None, ...]


def check_positive_int(name: str, value: Any) -> int:
    """Returns `value` if it is an int above 0, otherwise raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
    return value


def check_int(name: str, value: Any, minimum: int, reason: str = "") -> int:
    """Returns `value` if it is an int of at least `minimum`, otherwise raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ValueError(
            f"`{name}` must be an integer of at least {minimum}{reason}. Received: {name}={value!r}"
        )
    return value


def check_count(values: Any, count: int, message: str, unit: str = "") -> None:
    """Raises `ValueError` unless `values` is a list or an array of `count` values.

    Args:
        values: What a user passed.
        count: Int.
        message: String, the start of the message, which ends with "Received: ".
        unit: String, the end of the message, after the number of values.
    """
    has_length = hasattr(values, "__len__")
    if not has_length or isinstance(values, (str, bytes, dict)) or len(values) != count:
        raise ValueError(message + (f"{len(values)}{unit}" if has_length else repr(values)))


def check_rate(name: str, value: Any) -> float:
    """Returns `value` if it is a dropout rate (0 <= rate < 1), otherwise raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise ValueError(
            f"`{name}` must be a dropout rate, 0 <= rate < 1. Received: {name}={value!r}"
        )
    return value


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """Returns `value` if it is one of `choices`, otherwise raises `ValueError`."""
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {choices}. Received: {name}={value!r}")
    return value


def check_number(name: str, value: Any, low: float = 0, high: float = math.inf) -> float:
    """Returns `value` as a float if it is from `low` to `high`, otherwise raises `ValueError`."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not low <= value <= high or math.isinf(value):
        expected = f"{low} or above" if math.isinf(high) else f"from {low} to {high}"
        raise ValueError(f"`{name}` must be a number, {expected}. Received: {name}={value!r}")
    return float(value)


def check_token_id(name: str, value: Any, vocabulary_size: int) -> int:
    """Returns `value` as an int if it is the id of a token, otherwise raises `ValueError`.

    Args:
        name: String, the name of the argument.
        value: Int, or an array or tensor of one.
        vocabulary_size: Int.
    """
    try:
        index = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        index = -1
    if not 0 <= index < vocabulary_size:
        hint = ". For a string use `tokenizer.token_to_id`" if isinstance(value, str) else ""
        raise ValueError(
            f"`{name}` must be an id from 0 to {vocabulary_size - 1}. Received: {value!r}{hint}"
        )
    return index


def check_token_ids(name: str, values: Any, vocabulary_size: int) -> set[int]:
    """Returns `values` as a set if they are ids of tokens, otherwise raises `ValueError`."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise ValueError(
            f"`{name}` must be a list of ids, such as [4]. Received: {name}={values!r}"
        )
    return {check_token_id(name, value, vocabulary_size) for value in values}


def check_shape(name: str, tensor: Any, *expected: Sizes) -> None:
    """Raises `ValueError` if a call argument cannot have the shape that it needs.

    Args:
        name: String, the name of the argument.
        tensor: Tensor or array; `None`, if it was not given, fits.
        *expected: For each axis its size, or a tuple of the sizes it may have. `None` is any size.
    """
    if tensor is not None:
        check_sizes(name, tensor.shape, *expected)


def check_sizes(name: str, shape: Shape, *expected: Sizes) -> None:
    """Does the same for a shape."""
    shape = tuple(shape)
    axes = [sizes if isinstance(sizes, tuple) else (sizes,) for sizes in expected]
    fits = len(shape) == len(axes) and all(
        size is None or None in sizes or size in sizes
        for size, sizes in zip(shape, axes, strict=True)
    )
    if not fits:
        described = ", ".join(_describe(sizes) for sizes in axes)
        raise ValueError(f"`{name}` must have shape ({described}). Received: shape {shape}")


def _describe(sizes):
    return "any" if None in sizes else " or ".join(map(str, dict.fromkeys(sizes)))


def as_values(x: Any) -> np.ndarray | None:
    """Returns a NumPy array of what has values, `None` for what is symbolic or traced."""
    import keras

    if x is None or isinstance(x, keras.KerasTensor):
        return None
    if not keras.ops.is_tensor(x):
        return np.asarray(x)
    return None if _is_traced(x) else keras.ops.convert_to_numpy(x)


def _is_traced(tensor):
    import keras

    if keras.backend.backend() == "tensorflow":
        return not hasattr(tensor, "numpy")
    if keras.backend.backend() == "jax":
        import jax

        return isinstance(tensor, jax.core.Tracer)
    if keras.backend.backend() == "openvino":
        # All tensors are nodes of a graph. Those of `predict` have no values.
        return True
    import torch

    # Values on an accelerator would have to be waited for in each step.
    return tensor.device.type != "cpu" or torch.compiler.is_compiling()


def check_range(name: str, array: np.ndarray | None, low: int, high: int, reason: str) -> None:
    """Raises `ValueError` if numbers are out of range. The message names the row.

    Args:
        name: String, the name of the argument.
        array: Array, or `None`.
        low: Int, the smallest allowed.
        high: Int, the largest allowed.
        reason: String, what the limits come from.
    """
    if array is None or not array.size or not np.issubdtype(array.dtype, np.number):
        return
    outside = (array < low) | (array > high)
    if outside.any():
        row = int(np.argwhere(outside)[0][0])
        raise ValueError(
            f"`{name}` must be from {low} to {high} ({reason}). Received: "
            f"{array[outside][0]} in row {row}"
        )
