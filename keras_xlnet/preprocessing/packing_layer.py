"""What the preprocessors of all tasks have in common: arguments, saving, packing and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_xlnet.lazy_modules import tf
from keras_xlnet.tokenizers.string_inputs import StringLayer
from keras_xlnet.tokenizers.xlnet_tokenizer import XLNetTokenizer
from keras_xlnet.types import PathLike

SEGMENT_A, SEGMENT_B, SEGMENT_CLS = 0, 1, 2
# Lengths are rounded up to a multiple of this, so that few shapes are compiled.
_STEP = 16


class PackingLayer(StringLayer):
    """Base class of layers from strings to `token_ids`, `segment_ids` and `padding_mask`.

    Args:
        tokenizer, sequence_length, padding_side, padding_token_id: See
            `XLNetTextClassifierPreprocessor`.
        **kwargs: Other arguments of `keras.layers.Layer`.
    """

    _padding_segment = 4
    _min_length = 3
    _min_length_is_for = "one token, <sep> and <cls>"

    def __init__(
        self,
        tokenizer: XLNetTokenizer,
        sequence_length: int,
        padding_side: str,
        padding_token_id: int,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not isinstance(tokenizer, XLNetTokenizer):
            raise ValueError(
                f"`tokenizer` must be an XLNetTokenizer. Received: tokenizer={tokenizer!r}"
            )
        if not isinstance(sequence_length, int) or sequence_length < self._min_length:
            raise ValueError(
                f"`sequence_length` must be an integer of at least {self._min_length}, for "
                f"{self._min_length_is_for}. Received: sequence_length={sequence_length!r}"
            )
        if padding_side not in ("left", "right"):
            raise ValueError(
                f"`padding_side` must be 'left' or 'right'. Received: padding_side={padding_side!r}"
            )
        if not isinstance(padding_token_id, int) or padding_token_id < 0:
            raise ValueError(
                "`padding_token_id` must be an integer of at least 0. Received: "
                f"padding_token_id={padding_token_id!r}"
            )
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.padding_side = padding_side
        self.padding_token_id = padding_token_id

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "tokenizer": keras.saving.serialize_keras_object(self.tokenizer),
            "sequence_length": self.sequence_length,
            "padding_side": self.padding_side,
            "padding_token_id": self.padding_token_id,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> PackingLayer:
        tokenizer = keras.saving.deserialize_keras_object(config["tokenizer"])
        return cls(**{**config, "tokenizer": tokenizer})

    def save_assets(self, dir_path: PathLike) -> None:
        """Writes the SentencePiece model of the tokenizer to a directory. Called by Keras.

        Keras also saves the assets of the tokenizer, but only once if several preprocessors share
        it. Each loaded preprocessor has its own tokenizer, which needs the model.
        """
        self.tokenizer.save_assets(dir_path)

    def load_assets(self, dir_path: PathLike) -> None:
        """Reads the SentencePiece model of the tokenizer from a directory. Called by Keras."""
        self.tokenizer.load_assets(dir_path)

    def _pack_rows(
        self, rows: Sequence[Sequence[tuple[Any, int]]], shorten: bool
    ) -> dict[str, np.ndarray]:
        """The features of rows of parts, on the host. A part that is an int is a single token."""
        parts = [[(np.atleast_1d(ids), segment) for ids, segment in row] for row in rows]
        return pack(
            parts,
            self.sequence_length,
            self.padding_side,
            self.padding_token_id,
            self._padding_segment,
            shorten,
        )

    def _pair_parts(self, ids_a: np.ndarray, ids_b: np.ndarray) -> list[tuple[Any, int]]:
        """The parts of `[A, <sep>, B, <sep>, <cls>]`, or `[A, <sep>, <cls>]` for an empty B."""
        sep, cls = self.tokenizer.sep_token_id, self.tokenizer.cls_token_id
        second = [(ids_b, SEGMENT_B), (sep, SEGMENT_B)] if len(ids_b) else []
        return [(ids_a, SEGMENT_A), (sep, SEGMENT_A), *second, (cls, SEGMENT_CLS)]

    def _pack_pair(self, ids_a, ids_b):
        """The features of `[A, <sep>, B, <sep>, <cls>]`, or `[A, <sep>, <cls>]` for an empty B."""
        one = tf.ones([ids_a.nrows()], tf.int64)
        has_b = tf.cast(ids_b.row_lengths() > 0, tf.int64)
        return self._pack(
            [
                (ids_a, SEGMENT_A),
                (repeated(self.tokenizer.sep_token_id, one), SEGMENT_A),
                (ids_b, SEGMENT_B),
                (repeated(self.tokenizer.sep_token_id, has_b), SEGMENT_B),
                (repeated(self.tokenizer.cls_token_id, one), SEGMENT_CLS),
            ]
        )

    def _pack(self, parts: Sequence[tuple[tf.RaggedTensor, int]]) -> dict[str, tf.Tensor]:
        """The features of parts of tokens, one after another, each with its segment id."""
        token_ids, is_in_part = self._place([ids for ids, _ in parts], self.padding_token_id)
        segments = tf.constant([segment for _, segment in parts])[:, tf.newaxis, tf.newaxis]
        segment_ids = tf.reduce_sum(tf.where(is_in_part, segments, 0), axis=0)
        is_token = tf.reduce_any(is_in_part, axis=0)
        return {
            "token_ids": token_ids,
            "segment_ids": tf.where(is_token, segment_ids, self._padding_segment),
            "padding_mask": is_token,
        }

    def _place(self, parts, padding):
        """Puts the parts of each row one after another, with padding.

        A single gather from the values of all parts: ragged concatenation and padding are some
        hundred operations, which take longer to trace than a dataset of few texts to read.

        Args:
            parts: List of integer `tf.RaggedTensor`s `(batch, None)`.
            padding: Int, the value of padding.

        Returns:
            The values `(batch, sequence_length)`, and `(parts, batch, sequence_length)` bool, where
            each part is.
        """
        count = tf.stack([part.row_lengths() for part in parts])
        end = tf.cumsum(count)
        length, end, begin = (n[..., tf.newaxis] for n in (end[-1], end, end - count))
        position = tf.range(self.sequence_length, dtype=tf.int64)
        if self.padding_side == "left":
            position -= self.sequence_length - length
        is_in_part = (position >= begin) & (position < end)
        # Where each part of each row begins among the values, the last of which is the padding.
        values = tf.concat([*(part.values for part in parts), [padding]], axis=0)
        sizes = tf.stack([tf.size(part.values, tf.int64) for part in parts])
        start = tf.stack([part.row_starts() for part in parts])
        start += tf.cumsum(sizes, exclusive=True)[:, tf.newaxis]
        index = tf.where(is_in_part, start[..., tf.newaxis] + position - begin, 0)
        is_padding = ~tf.reduce_any(is_in_part, axis=0)
        index = tf.where(is_padding, tf.reduce_sum(sizes), tf.reduce_sum(index, axis=0))
        return tf.gather(values, index), is_in_part


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
