"""Checks of the numbers in arrays: ids and positions."""

from typing import Any

import keras
import numpy as np
from keras import ops


def as_values(x: Any) -> np.ndarray | None:
    """Returns a NumPy array of what has values, otherwise `None`."""
    if x is None or isinstance(x, keras.KerasTensor):
        return None
    return ops.convert_to_numpy(x) if ops.is_tensor(x) else np.asarray(x)


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
