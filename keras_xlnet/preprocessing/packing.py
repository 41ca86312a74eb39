"""Rows of tokens, one part after another, with padding: on the host and in the TensorFlow graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_xlnet.lazy_modules import tf

SEGMENT_A, SEGMENT_B, SEGMENT_CLS = 0, 1, 2
# As in `classifier_utils.py` of the original code.
SEGMENT_PADDING = 4
# Lengths are rounded up to a multiple of this, so that few shapes are compiled.
_STEP = 16


def tokens_at(
    ids: tf.RaggedTensor, position: tf.RaggedTensor, row: tf.Tensor | None = None
) -> tf.RaggedTensor:
    """Returns the tokens at ragged positions `(batch, None)` of each row, or of the rows `row`."""
    start = ids.row_starts() if row is None else tf.gather(ids.row_starts(), row)
    flat = position.values + tf.repeat(start, position.row_lengths())
    return position.with_values(tf.gather(ids.values, flat))


def first_tokens(ids: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Returns the first `lengths` `(batch,)` tokens of each row."""
    return tokens_at(ids, tf.ragged.range(tf.minimum(lengths, ids.row_lengths())))


def last_tokens(ids: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Returns the last `lengths` tokens of each row; `(batch,)`, or one length for all."""
    total = ids.row_lengths()
    return tokens_at(ids, tf.ragged.range(tf.maximum(total - lengths, 0), total))


def repeated(token_id: int, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Returns rows of `lengths` `(batch,)` times the same token."""
    values = tf.fill([tf.reduce_sum(lengths)], token_id)
    return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)


# === On the host ===


def pack(
    rows: Sequence[Sequence[tuple[np.ndarray, int]]],
    sequence_length: int,
    padding_side: str,
    padding_token_id: int,
    padding_segment: int,
    shorten: bool = True,
) -> dict[str, np.ndarray]:
    """Returns `token_ids`, `segment_ids` and `padding_mask`.

    Args:
        rows: For each row of the arrays a list of parts, pairs of ids `(num_tokens,)` and their
            segment id.
        sequence_length: Int, the most tokens of a row.
        padding_side: `"left"` or `"right"`.
        padding_token_id, padding_segment: Ints, the values of padding.
        shorten: Whether the arrays are as long as the longest row needs, or `sequence_length`.
    """
    lengths = [sum(len(ids) for ids, _ in parts) for parts in rows]
    length = packed_length(max(lengths, default=0), sequence_length) if shorten else sequence_length
    shape = (len(rows), length)
    token_ids = np.full(shape, padding_token_id, "int32")
    segment_ids = np.full(shape, padding_segment, "int32")
    for row, (parts, count) in enumerate(zip(rows, lengths, strict=True)):
        place = 0 if padding_side == "right" else length - count
        for ids, segment in parts:
            token_ids[row, place : place + len(ids)] = ids
            segment_ids[row, place : place + len(ids)] = segment
            place += len(ids)
    mask = is_token(np.array(lengths, "int64"), length, padding_side)
    return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": mask}


def packed_length(longest: int, sequence_length: int) -> int:
    """Returns the length of arrays whose longest row has `longest` tokens."""
    return min(max(-(-longest // _STEP), 1) * _STEP, sequence_length)


def is_token(lengths: np.ndarray, length: int, padding_side: str) -> np.ndarray:
    """Returns a mask `(rows, length)`, `True` for the first or the last `lengths` `(rows,)`."""
    position = np.arange(length)
    if padding_side == "right":
        return position < lengths[:, np.newaxis]
    return position >= length - lengths[:, np.newaxis]


def rows_of_lists(values: np.ndarray, counts: Sequence[int], padding: int) -> np.ndarray:
    """Returns `(sum of counts, ...)` as `(lists, most, ...)`, with padding for what is missing."""
    found = np.full((len(counts), max(counts, default=0), *values.shape[1:]), padding, values.dtype)
    found[np.arange(found.shape[1]) < np.asarray(counts)[:, np.newaxis]] = values
    return found
