"""Rows of tokens, one part after another, with padding: on the host and in the TensorFlow graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_xlnet.lazy_modules import tf

SEGMENT_A, SEGMENT_B, SEGMENT_CLS = 0, 1, 2
# As in `classifier_utils.py` of the original code.
SEGMENT_PADDING = 4
# The weight of a window's length relative to the context of a token, as in the original.
_LENGTH_SHARE = 0.01
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


def plan_windows(
    length: tf.Tensor, room: tf.Tensor, stride: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns what `window_parts` returns for each text, in the TensorFlow graph.

    Args:
        length, room, stride: Int64 `(texts,)`, as in `window_parts`.

    Returns:
        Int64 `(windows,)`: the text of each window, its first token and its number of tokens.
    """
    missing = tf.maximum(length - room, 0)
    num_windows = 1 + (missing + stride - 1) // stride
    row = tf.repeat(tf.range(tf.size(num_windows, tf.int64)), num_windows)
    first = tf.ragged.range(num_windows).values * tf.gather(stride, row)
    return row, first, tf.minimum(tf.gather(room, row), tf.gather(length, row) - first)


def graph_window_of_most_context(token: tf.RaggedTensor, num_tokens: tf.Tensor) -> tf.Tensor:
    """Returns what `window_of_most_context` returns, in the TensorFlow graph, for several texts.

    Args:
        token: Int64 `(windows, None)`, which tokens each window has, among the tokens of all texts.
        num_tokens: Int64 scalar, the tokens of all texts.

    Returns:
        Int64 `(num_tokens,)`, the index of a window.
    """
    count, window = token.row_lengths(), token.value_rowids()
    place = tf.ragged.range(count).values
    size = tf.gather(count, window)
    score = tf.cast(tf.minimum(place, size - 1 - place), tf.float64)
    score += _LENGTH_SHARE * tf.cast(size, tf.float64)
    best = tf.math.unsorted_segment_max(score, token.values, num_tokens)
    is_best = score == tf.gather(best, token.values)
    return tf.math.unsorted_segment_min(window[is_best], token.values[is_best], num_tokens)


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


def window_parts(length: int, room: int, stride: int) -> list[tuple[int, int]]:
    """Returns the first token and the number of tokens of each window of a text.

    Args:
        length: Int, the tokens of the text.
        room: Int, the most tokens of a window.
        stride: Int, the tokens from the start of a window to the next one.
    """
    num_windows = 1 + -(-max(length - room, 0) // stride)
    firsts = range(0, num_windows * stride, stride)
    return [(first, min(room, length - first)) for first in firsts]


def window_of_most_context(windows: Sequence[tuple[int, int]]) -> np.ndarray:
    """Returns the window of a text in which each token has the most context, on the host.

    Args:
        windows: List of the first token and the number of tokens of each window.

    Returns:
        Int array `(tokens,)`, the index of a window, the first of equal ones.

    Source: `_check_is_max_context` of the original's `run_squad.py`.
    """
    first, count = np.array(windows).T[..., np.newaxis]
    place = np.arange((first + count).max()) - first
    context = np.minimum(place, count - 1 - place)
    return np.where(context < 0, -np.inf, context + _LENGTH_SHARE * count).argmax(axis=0)


def rows_of_lists(values: np.ndarray, counts: Sequence[int], padding: int) -> np.ndarray:
    """Returns `(sum of counts, ...)` as `(lists, most, ...)`, padded."""
    found = np.full((len(counts), max(counts, default=0), *values.shape[1:]), padding, values.dtype)
    found[np.arange(found.shape[1]) < np.asarray(counts)[:, np.newaxis]] = values
    return found
