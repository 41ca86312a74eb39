"""Texts that share rows, in a TensorFlow graph."""

from __future__ import annotations

from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.rows_of_texts import COST_LENGTH, MULTIPLE

# At most so many texts stand in a row.
_MOST_TEXTS = 16


def packing_of(
    padding_mask: tf.Tensor, row_length: int | None = None, multiple: int = 1
) -> tf.Tensor:
    """Returns the `packing` of a batch, as `PackTexts` takes it.

    `RowPlan.packing` fills rows one by one. This needs no loop: from the longest to the shortest,
    the texts are dealt to the rows, there and back, so that each row gets as many texts and about
    as many tokens.

    Args:
        padding_mask: Bool `(texts, ..., length)`, `True` for tokens.
        row_length: Int, at least the tokens of the longest text. There are as few rows as dealing
            allows. `None` for the length and the number that cost least.
        multiple: Int, what the number of rows is a multiple of, with a `row_length`.

    Returns:
        Int32 `(rows, row_length)`.
    """
    length = tf.shape(padding_mask)[-1]
    mask = tf.reshape(padding_mask, (-1, length))
    lengths = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    sizes = tf.gather(lengths, order)
    num_texts = tf.size(lengths)

    # All numbers of rows that are possible, `(number, 1)`, and the row of each text for each.
    texts_of_row = tf.range(1, _MOST_TEXTS + 1)
    counts = (num_texts + texts_of_row - 1) // texts_of_row
    if row_length is not None:
        counts = tf.range(multiple, num_texts + multiple, multiple)
    turns, rows = tf.range(num_texts) // counts[:, None], tf.range(num_texts) % counts[:, None]
    rows = tf.where(turns % 2 == 0, rows, counts[:, None] - 1 - rows)
    longest = _longest(rows, sizes)
    if row_length is not None:
        best = tf.argmax(longest <= row_length)  # The first.
    else:
        row_lengths = (tf.maximum(longest, 1) + MULTIPLE - 1) // MULTIPLE * MULTIPLE
        places = tf.cast(counts * row_lengths, tf.float32)
        best = tf.argmin(places * (1 + tf.cast(row_lengths, tf.float32) / COST_LENGTH))
        row_length = row_lengths[best]
    count, row = counts[best], rows[best]

    # A text stands after the longer texts of its row.
    is_before = (row[:, None] == row) & (tf.range(num_texts)[:, None] > tf.range(num_texts))
    offset = tf.reduce_sum(tf.where(is_before, sizes, 0), axis=1)
    first = tf.gather(row * row_length + offset, tf.math.invert_permutation(order))
    places = first[:, None] + tf.cumsum(tf.cast(mask, tf.int32), axis=1) - 1
    tokens = tf.reshape(tf.range(num_texts * length), (num_texts, length))
    packing = tf.tensor_scatter_nd_update(
        tf.fill([count * row_length], -1),
        tf.boolean_mask(places, mask)[:, None],
        tf.boolean_mask(tokens, mask),
    )
    return tf.reshape(packing, (count, row_length))


def _longest(rows, sizes):
    """The tokens of the longest row, for each number of rows."""
    shape = tf.shape(rows)
    segments = rows + shape[1] * tf.range(shape[0])[:, None]
    sums = tf.math.unsorted_segment_sum(
        tf.broadcast_to(sizes, shape), segments, tf.reduce_prod(shape)
    )
    return tf.reduce_max(tf.reshape(sums, shape), axis=1)
