"""Checks and conversions of token ids before they are converted back to text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_xlnet.lazy_modules import tf


def as_ids(inputs: Any) -> tf.Tensor | tf.RaggedTensor:
    """Converts inputs to a dense or ragged tensor of integer ids.

    Args:
        inputs: Integers `(num_tokens,)` or `(batch, num_tokens)`, dense or ragged.

    Returns:
        `tf.Tensor` of rank 1, or `tf.RaggedTensor` of rank 2.

    Raises:
        ValueError: If `inputs` are not integers of rank 1 or 2.
    """
    ids = inputs if isinstance(inputs, tf.RaggedTensor) else tf.convert_to_tensor(inputs)
    if not ids.dtype.is_integer or ids.shape.rank not in (1, 2):
        raise ValueError(
            "`inputs` must be integer ids of rank 1 or 2. "
            f"Received: dtype {ids.dtype.name}, shape {ids.shape}"
        )
    if ids.shape.rank == 1 or isinstance(ids, tf.RaggedTensor):
        return ids
    return tf.RaggedTensor.from_tensor(ids)


def remove_special_ids(ids: tf.RaggedTensor, is_special: Sequence[bool]) -> tf.RaggedTensor:
    """Removes the ids of special tokens, and checks that all ids are in the vocabulary.

    Args:
        ids: `tf.RaggedTensor` `(batch, None)`.
        is_special: List of bools, whether each id is that of a special token.

    Returns:
        Int32 `tf.RaggedTensor` `(batch, None)`.
    """
    values = ids.flat_values
    last = tf.cast(len(is_special) - 1, values.dtype)
    checks = [
        tf.debugging.assert_non_negative(values, "`inputs` must be ids of at least 0"),
        tf.debugging.assert_less_equal(values, last, "`inputs` must be ids of the vocabulary"),
    ]
    # Eagerly, checks are None.
    with tf.control_dependencies([check for check in checks if check is not None]):
        ids = tf.cast(ids, tf.int32)
    return tf.ragged.boolean_mask(ids, ~tf.gather(is_special, ids))
