"""Rows of tokens in a TensorFlow graph, read with little padding."""

from collections.abc import Callable, Collection
from typing import Any

import tensorflow as tf

from keras_xlnet.preprocessing.rows_in_graph import packing_of

# Few lengths, so that the CPU kernels reuse what they prepared for a shape.
_STEP = 16
# Rows that are read together if the lengths of a request differ much.
_ROWS = 8
# The same for texts that share rows: enough to fill them, and of like length in a long request.
_ROWS_TO_PACK = 16
# The cost of one more batch, in tokens. Measured with models of widths 384 and 768 on 2 cores.
_TOKENS_PER_BATCH = 64


def read_in_batches_of_like_length(
    read: Callable[..., Any],
    features: dict[str, tf.Tensor],
    padding_side: str,
    of_tokens: Collection[str] = (),
    packs: bool = False,
) -> dict[str, tf.Tensor]:
    """Reads rows without most of their padding.

    Rows are padded to the longest row, rounded up to a multiple of 16. If their lengths differ
    much, they are sorted and read in batches of 8. With `packs` they are sorted, read in batches
    of 16, and share rows in the model.

    Args:
        read: `tf.function` of features of any length, with an `input_signature`. It returns a dict
            of tensors with a row for each row of the features, whose other axes do not depend on
            the length, except those `of_tokens`.
        features: Dict of `padding_mask`, bool `(rows, ..., length)`, and other tensors of the same
            shape.
        padding_side: String, `"left"` or `"right"`.
        of_tokens: Names of outputs `(rows, length, ...)`. They are padded with 0 to the longest
            row.
        packs: Whether `read` takes the `packing` of a batch too, see `packing_of`.

    Returns:
        What `read` returns for all rows, in their order.
    """
    mask = features["padding_mask"]
    longest, num_rows = tf.shape(mask)[-1], tf.shape(mask)[0]
    lengths = tf.reduce_sum(tf.cast(mask, tf.int32), axis=-1)
    lengths = tf.reduce_max(tf.reshape(lengths, (num_rows, -1)), axis=-1)
    order = tf.argsort(lengths, stable=True)
    # One more for requests without rows.
    widths = tf.concat([tf.zeros([1], tf.int32), tf.gather(lengths, order)], axis=0)
    widths = tf.minimum((tf.maximum(widths, 1) + _STEP - 1) // _STEP * _STEP, longest)
    size = _ROWS_TO_PACK if packs else _batch_size(widths, num_rows)
    num_batches = tf.maximum((num_rows + size - 1) // size, 1)

    def read_batch(first):
        rows = order[first : first + size]
        width = widths[tf.minimum(first + size, num_rows)]
        batch = {
            name: _cut(tf.gather(value, rows), width, padding_side)
            for name, value in features.items()
        }
        outputs = read({**batch, "packing": packing_of(batch["padding_mask"])} if packs else batch)
        for name in of_tokens:
            outputs[name] = _padded(outputs[name], longest - width, padding_side)
        return outputs

    found = _concatenated(read_batch, tf.range(num_batches) * size, _output_specs(read))
    inverse = tf.argsort(order)
    return {name: tf.gather(value, inverse) for name, value in found.items()}


def read_in_batches(
    read: Callable[..., Any], features: dict[str, tf.Tensor], batch_size: int
) -> dict[str, tf.Tensor]:
    """Reads any number of rows in batches of one size.

    Args:
        read: `tf.function` of `batch_size` rows, with an `input_signature`. It returns a dict of
            tensors with a row for each row of the features.
        features: Dict of tensors with at least one row.
        batch_size: Int.
    """
    num_rows = tf.shape(features["padding_mask"])[0]

    def read_batch(first):
        # The last batch repeats the last row.
        rows = tf.minimum(first + tf.range(batch_size), num_rows - 1)
        return read({name: tf.gather(value, rows) for name, value in features.items()})

    specs = _output_specs(read)
    found = _concatenated(read_batch, tf.range(0, num_rows, batch_size), specs)
    return {name: value[:num_rows] for name, value in found.items()}


def _output_specs(read):
    return read.get_concrete_function().structured_outputs


def _batch_size(widths, num_rows):
    """All rows, or `_ROWS` if this saves tokens. `widths`: of 0 rows and of all rows."""
    last = tf.minimum(tf.range(_ROWS, num_rows + _ROWS, _ROWS), num_rows)
    counts = last - tf.range(0, num_rows, _ROWS)
    split = tf.reduce_sum(tf.gather(widths, last) * counts + _TOKENS_PER_BATCH)
    whole = widths[-1] * num_rows + _TOKENS_PER_BATCH
    return tf.where(split < whole, _ROWS, tf.maximum(num_rows, 1))


def _cut(value, width, padding_side):
    return value[..., -width:] if padding_side == "left" else value[..., :width]


def _padded(value, missing, padding_side):
    of_length = (missing, 0) if padding_side == "left" else (0, missing)
    return tf.pad(value, [(0, 0), of_length, *[(0, 0)] * (value.shape.rank - 2)])


def _concatenated(function, starts, specs):
    """The outputs of a function for each number, a dict of tensors, joined along the first axis."""
    count = tf.size(starts)
    arrays = {
        name: tf.TensorArray(spec.dtype, count, infer_shape=False, element_shape=spec.shape)
        for name, spec in specs.items()
    }

    def body(i, arrays):
        found = function(starts[i])
        return i + 1, {name: array.write(i, found[name]) for name, array in arrays.items()}

    _, arrays = tf.while_loop(lambda i, _: i < count, body, (0, arrays), parallel_iterations=1)
    return {
        name: tf.ensure_shape(array.concat(), (None, *specs[name].shape[1:]))
        for name, array in arrays.items()
    }
