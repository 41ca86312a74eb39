"""Rows of tokens, one part after another, with padding: in NumPy and in the TensorFlow graph.

Functions take NumPy arrays with `xp=numpy`, or tensors with `xp=tensorflow`. `predict.py` of an
exported directory contains this file, so it imports nothing else.
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

SEGMENT_A, SEGMENT_B, SEGMENT_CLS = 0, 1, 2
# As in `classifier_utils.py` of the original code.
SEGMENT_PADDING = 4
# The weight of a window's length relative to the context of a token, as in the original.
_LENGTH_SHARE = 0.01
# Lengths are rounded up to a multiple of this.
_STEP = 16
# The share of the first tokens among those that are kept, for each `truncation`.
_HEAD_SHARES = {"end": 1, "middle": 4}


class Layout(NamedTuple):
    """The form of packed rows.

    Args:
        sequence_length: Int, the most tokens of a row.
        padding_side: `"left"` or `"right"`.
        padding_token_id, padding_segment_id: Ints, the values of padding.
        sep_token_id, cls_token_id: Ints, the ids of `<sep>` and `<cls>`.
        truncation: `"end"`, or `"middle"` to keep a quarter of the tokens from the start of a text
            and the others from its end.
    """

    sequence_length: int
    padding_side: str
    padding_token_id: int
    padding_segment_id: int
    sep_token_id: int
    cls_token_id: int
    truncation: str = "end"


class Rows(NamedTuple):
    """Rows of different lengths.

    Args:
        values: The values of all rows, one row after another.
        lengths: Int64 `(rows,)`, the number of values of each row.
    """

    values: Any
    lengths: Any


def as_rows(ids: Any) -> Rows:
    """Returns the `Rows` of a list of int arrays, or of a `tf.RaggedTensor` `(batch, None)`."""
    if isinstance(ids, list):
        values = np.concatenate([np.zeros(0, "int32"), *ids])
        return Rows(values, np.array([*map(len, ids)], "int64"))
    return Rows(ids.values, ids.row_lengths())


def take(rows: Rows, row: Any, first: Any, count: Any, xp: ModuleType) -> Rows:
    """Returns parts of rows.

    Args:
        rows: `Rows`.
        row, first, count: Int64 `(parts,)`: the row that each part is from, its first value, and
            the number of its values.
        xp: `numpy` or `tensorflow`.
    """
    begin = gather(starts(rows.lengths, xp), row, xp) + first
    return Rows(gather(rows.values, ranges(begin, count, xp), xp), count)


def repeated(token_id: int, lengths: Any, xp: ModuleType) -> Rows:
    """Returns rows of `lengths` `(rows,)` times the same token."""
    place = ranges(xp.zeros_like(lengths), lengths, xp)
    return Rows(xp.zeros_like(place, "int32") + token_id, lengths)


def pack_texts(
    first: Rows, second: Rows | None, layout: Layout, xp: ModuleType, shorten: bool = False
) -> tuple[dict[str, Any], Any]:
    """Packs texts or pairs: `[A, <sep>, B, <sep>, <cls>]`, or `[A, <sep>, <cls>]` for an empty B.

    The longer text of a pair is truncated first, token by token.

    Args:
        first, second: `Rows` of int32 ids. `None` for texts without a pair.
        layout: A `Layout`.
        xp: `numpy` or `tensorflow`.
        shorten: As in `pack`.

    Returns:
        The result of `pack`, and the number of tokens of each row that are truncated.
    """
    second = repeated(0, xp.zeros_like(first.lengths), xp) if second is None else second
    has_second = xp.minimum(second.lengths, 1)
    room = layout.sequence_length - 2 - has_second
    # Each text keeps at least half of the room, and the tokens that the other does not use.
    # A keeps one more of an odd number, because B is truncated first if both are equally long.
    half = room // 2
    kept_a = xp.minimum(first.lengths, xp.maximum(room - half, room - second.lengths))
    kept_b = xp.minimum(second.lengths, xp.maximum(half, room - first.lengths))
    parts = pair_parts(
        _truncated(first, kept_a, layout, xp),
        _truncated(second, kept_b, layout, xp),
        has_second,
        layout,
        xp,
    )
    return pack(parts, layout, xp, shorten), first.lengths + second.lengths - kept_a - kept_b


def _truncated(rows, kept, layout, xp):
    """The parts that remain of texts if each keeps `kept` `(rows,)` tokens."""
    row, head = indices(kept, xp), kept // _HEAD_SHARES[layout.truncation]
    if layout.truncation == "end":
        return [take(rows, row, 0, head, xp)]
    tail = kept - head
    return [take(rows, row, 0, head, xp), take(rows, row, rows.lengths - tail, tail, xp)]


def pair_parts(
    first: Sequence[Rows], second: Sequence[Rows], num_seps: Any, layout: Layout, xp: ModuleType
) -> list[tuple[Rows, int]]:
    """Returns the parts of `[first, <sep>, second, <sep>, <cls>]` with their segment ids.

    Args:
        first, second: Lists of `Rows`, the parts of both texts.
        num_seps: Int64 `(rows,)`, the number of `<sep>` after `second`, 0 or 1.
        layout: A `Layout`.
        xp: `numpy` or `tensorflow`.
    """
    one = xp.ones_like(num_seps)
    sep, cls = layout.sep_token_id, layout.cls_token_id
    return [
        *((rows, SEGMENT_A) for rows in (*first, repeated(sep, one, xp))),
        *((rows, SEGMENT_B) for rows in (*second, repeated(sep, num_seps, xp))),
        (repeated(cls, one, xp), SEGMENT_CLS),
    ]


def pack(
    parts: Sequence[tuple[Rows, int]], layout: Layout, xp: ModuleType, shorten: bool = False
) -> dict[str, Any]:
    """Returns `token_ids`, `segment_ids` and `padding_mask` `(rows, length)`.

    Args:
        parts: Pairs of the `Rows` of a part, int32, and its segment id.
        layout: A `Layout`.
        xp: `numpy` or `tensorflow`.
        shorten: Bool, only with `numpy`: whether the arrays are as long as the longest row needs,
            or `sequence_length`.
    """
    counts = xp.stack([rows.lengths for rows, _ in parts])
    end = xp.cumsum(counts, axis=0)
    total = end[-1][:, np.newaxis]
    length = layout.sequence_length
    if shorten:
        length = min(rounded(int(total.max(initial=1))), length)
    first = length - total if layout.padding_side == "left" else xp.zeros_like(total)
    begin = end - counts + first[:, 0] + indices(end[-1], xp) * length
    place = ranges(xp.reshape(begin, [-1]), xp.reshape(counts, [-1]), xp)
    position = np.arange(length, dtype="int64")
    mask = (first <= position) & (first + total > position)
    token_ids = concat([rows.values for rows, _ in parts], xp)
    segment_ids = concat([xp.zeros_like(rows.values) + segment for rows, segment in parts], xp)
    return {
        "token_ids": _scatter(token_ids, place, mask, layout.padding_token_id, xp),
        "segment_ids": _scatter(segment_ids, place, mask, layout.padding_segment_id, xp),
        "padding_mask": mask,
    }


def rounded(length: int) -> int:
    """Returns a length rounded up, so that few shapes are compiled."""
    return -(-length // _STEP) * _STEP


def _scatter(values, place, mask, padding, xp):
    """An array of the shape of `mask`, with `values` at each `place` of the flat array."""
    found = xp.reshape(xp.zeros_like(mask, "int32") + padding, [-1])
    if xp is np:
        found[place] = values
    else:
        found = xp.tensor_scatter_nd_update(found, place[:, np.newaxis], values)
    return xp.reshape(found, [-1, mask.shape[1]])


# === Windows of long texts ===


def plan_windows(length: Any, room: Any, stride: Any, xp: ModuleType) -> tuple[Any, Any, Any]:
    """Returns the windows of texts.

    Args:
        length: Int64 `(texts,)`, the tokens of each text.
        room: Int64 `(texts,)`, the most tokens of a window.
        stride: Int64 `(texts,)`, the tokens from the start of a window to the next one.
        xp: `numpy` or `tensorflow`.

    Returns:
        Int64 `(windows,)`: the text of each window, its first token and its number of tokens.
    """
    missing = xp.maximum(length - room, 0)
    num_windows = 1 + (missing + stride - 1) // stride
    row = xp.repeat(indices(length, xp), num_windows)
    first = ranges(xp.zeros_like(length), num_windows, xp) * gather(stride, row, xp)
    return row, first, xp.minimum(gather(room, row, xp), gather(length, row, xp) - first)


def window_of_most_context(tokens: Rows, num_tokens: Any, xp: ModuleType) -> Any:
    """Returns the window in which each token has the most context, the first of equal ones.

    Args:
        tokens: `Rows` of int64, which tokens each window has, among the tokens of all texts.
        num_tokens: Int64 scalar, the tokens of all texts.
        xp: `numpy` or `tensorflow`.

    Returns:
        Int64 `(num_tokens,)`, the index of a window.

    Source: `_check_is_max_context` of the original's `run_squad.py`.
    """
    count = tokens.lengths
    window = xp.repeat(indices(count, xp), count)
    place = ranges(xp.zeros_like(count), count, xp)
    size = gather(count, window, xp)
    # A division makes floats.
    context = xp.divide(xp.minimum(place, size - 1 - place), 1)
    context += _LENGTH_SHARE * xp.divide(size, 1)
    best = _segment("max", context, tokens.values, num_tokens, xp)
    is_best = context == gather(best, tokens.values, xp)
    return _segment("min", window[is_best], tokens.values[is_best], num_tokens, xp)


def _segment(name, values, index, size, xp):
    """The `"max"` or `"min"` of the values of each index below `size`."""
    if xp is not np:
        return getattr(xp.math, f"unsorted_segment_{name}")(values, index, size)
    found = np.full(size, len(values) if name == "min" else -1, values.dtype)
    getattr(np, f"{name}imum").at(found, index, values)
    return found


# === Functions that NumPy and TensorFlow name differently, and indices ===


def gather(values: Any, index: Any, xp: ModuleType) -> Any:
    """Returns `values[index]`."""
    return getattr(xp, "gather", np.take)(values, index)


def concat(parts: Sequence[Any], xp: ModuleType) -> Any:
    """Returns arrays one after another."""
    return getattr(xp, "concat", np.concatenate)(parts, 0)


def as_int32(values: Any, xp: ModuleType) -> Any:
    """Returns values as int32."""
    return values.astype("int32") if xp is np else xp.cast(values, "int32")


def indices(values: Any, xp: ModuleType) -> Any:
    """Returns 0, 1, ..., as many as there are int64 `values` `(n,)`."""
    return xp.cumsum(xp.ones_like(values)) - 1


def starts(lengths: Any, xp: ModuleType) -> Any:
    """Returns where each of several rows begins among the values of all rows."""
    return xp.cumsum(lengths) - lengths


def ranges(begin: Any, count: Any, xp: ModuleType) -> Any:
    """Returns `begin`, `begin + 1`, ..., `count` integers for each row, one row after another."""
    if xp is not np:  # A single operation, while `tf.repeat` has many.
        return xp.ragged.range(begin, begin + count).values
    shift = np.repeat(begin - starts(count, np), count)
    return shift + np.arange(len(shift))


def rows_of_lists(values: np.ndarray, counts: Sequence[int], padding: int) -> np.ndarray:
    """Returns `(sum of counts, ...)` as `(lists, most, ...)`, padded."""
    found = np.full((len(counts), max(counts, default=0), *values.shape[1:]), padding, values.dtype)
    found[np.arange(found.shape[1]) < np.asarray(counts)[:, np.newaxis]] = values
    return found
