"""Pads the last batch of arrays, for models whose batches all have the same size."""

from typing import Any

import keras
import numpy as np
from keras import ops


def fill_last_batch(data: Any, batch_size: int) -> tuple[Any, int | None]:
    """Returns arrays whose last batch is full, and the number of rows that were given.

    Args:
        data: Dict, list, tuple or array, whose arrays have equally many rows; or `None`.
        batch_size: Int.

    Returns:
        `data` with its last row repeated, and its number of rows. Other data, such as a dataset,
        are returned unchanged, with `None`.
    """
    rows = number_of_rows(data)
    if rows is None or not rows % batch_size:
        return data, rows
    missing = -rows % batch_size

    def fill(x):
        if x is None:
            return None
        x = ops.convert_to_numpy(x)
        return np.concatenate([x, np.repeat(x[-1:], missing, axis=0)])

    return keras.tree.map_structure(fill, data), rows


def number_of_rows(data: Any) -> int | None:
    """Returns the number of rows of arrays, `None` for other data, such as a dataset.

    Args:
        data: Dict, list, tuple or array: of NumPy, a tensor, or of pandas; or `None`.
    """
    leaves = [leaf for leaf in keras.tree.flatten(data) if leaf is not None]
    shapes: list[Any] = [getattr(leaf, "shape", None) for leaf in leaves]
    return shapes[0][0] if shapes and all(shapes) else None


def weights_of_rows(y: Any, sample_weight: Any, rows: int) -> Any:
    """Returns sample weights for padded labels: minus infinity for the added rows.

    A weight of 0 would not distinguish them from given rows with weight 0, which count in a mean.

    Args:
        y: Padded labels, in any structure.
        sample_weight: Their padded weights, or `None` for equal weights.
        rows: Int, the number of rows that were given.
    """
    if sample_weight is None:
        sample_weight = keras.tree.map_structure(lambda x: np.ones(x.shape, "float32"), y)

    def without_added(weights):
        weights = np.array(ops.convert_to_numpy(weights), "float32")
        weights[rows:] = -np.inf
        return weights

    return keras.tree.map_structure(without_added, sample_weight)
