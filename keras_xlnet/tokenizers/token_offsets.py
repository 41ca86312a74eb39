"""Finds the part of a text that each token comes from, in the TensorFlow graph.

The tokenizer of `tensorflow_text` returns ids without offsets. SentencePiece normalizes a text
(NFKC) before it splits it, so the position of a token is not the sum of the lengths before it. But
the pieces of a text, joined, are its normalized form. So a second SentencePiece model with the same
normalizer, whose pieces are single characters, returns the positions of all characters of the
normalized form. The lengths of the pieces determine which characters belong to a token.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from keras_xlnet.lazy_modules import tensorflow_text, tf
from keras_xlnet.tokenizers.aligned_cleaning import AlignedText, starts_row
from keras_xlnet.tokenizers.normalization import is_whitespace
from keras_xlnet.tokenizers.sentencepiece_proto import (
    BYTE,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    Piece,
    SentencePieceProto,
)
from keras_xlnet.tokenizers.token_spans import FROM_TEXT, token_spans

_WORD_START = "\u2581"
_NUM_BYTES = 256


class TokenOffsets(NamedTuple):
    """The positions of tokens in the original texts.

    The space before a word is not a part of its first token. Characters that cleaning drops, such
    as accents, belong to the character before them. If one character becomes several, such as "½"
    or the ligature "ﬁ", each token with a part of it covers the whole character.

    Args:
        start: Int64 `tf.RaggedTensor` of the shape of the ids, the first character.
        end: The character after the last one. Equal to `start` for a token that is only a space.
        byte_start: As `start`, in bytes of UTF-8.
        byte_end: As `end`, in bytes.
    """

    start: tf.RaggedTensor
    end: tf.RaggedTensor
    byte_start: tf.RaggedTensor
    byte_end: tf.RaggedTensor


class OffsetFinder:
    """Finds the offsets of the tokens of one SentencePiece model.

    Args:
        proto: Bytes of the model.
        processor: A `sentencepiece.SentencePieceProcessor` of the model.

    Raises:
        ValueError: If a piece has a character that is not itself a piece, because the lengths of
            unknown tokens cannot be found then. Vocabularies that SentencePiece trains have a piece
            for each of their characters.
    """

    def __init__(self, proto: bytes, processor: Any) -> None:
        self._unknown_id = processor.unk_id()
        model = SentencePieceProto.parse(proto)
        _check_characters(model.pieces)
        characters = _character_pieces(model.pieces)
        spans = [token_spans(piece, processor.encode_as_pieces) for piece in model.pieces]
        splits = np.cumsum([0, *map(len, spans)])
        # Unknown tokens of texts are the longest sequences of bytes.
        settings = {"byte_fallback": 1, "unk_id": 0, "bos_id": -1, "eos_id": -1, "pad_id": -1}
        self._characters = model.with_pieces(characters, **settings).serialize()
        self._is_byte = [piece.type == BYTE for piece in characters]
        self._is_space = [piece.piece == _WORD_START for piece in characters]
        with tf.init_scope(), tf.device("CPU:0"):
            self._counts = tf.constant([row[-1][1] for row in spans], tf.int64)
            # A user-defined symbol has a unit for each character: it may be split into pieces.
            self._units_of = tf.ragged.constant(
                [
                    [index] * (len(piece.piece) if piece.type == USER_DEFINED else 1)
                    for index, piece in enumerate(characters)
                ],
                tf.int32,
                row_splits_dtype=tf.int64,
            )
            # Where the tokens of each piece begin and end, in units.
            self._spans = tf.RaggedTensor.from_row_splits(
                tf.constant(np.concatenate(spans), tf.int64), splits
            )

    def offsets(
        self, text: AlignedText, byte_start: tf.RaggedTensor, pieces: tf.RaggedTensor
    ) -> TokenOffsets:
        """Returns the `TokenOffsets` of the ids that the digit-comma rule makes from `pieces`.

        Args:
            text, byte_start: What `clean_aligned` returns.
            pieces: Int32 `tf.RaggedTensor` `(batch, None)`, the ids of `text` before that rule.
        """
        units = self._units(text)
        pieces = pieces.with_row_splits_dtype(tf.int64)
        begin, end = self._unit_ranges(units, pieces)
        first, last = _without_spaces(units, begin.flat_values, end.flat_values)
        text_start, text_end = _characters_of(units, text)
        # A token that is only a space has the position after the space.
        is_empty = first > last
        last = tf.maximum(last, 0)
        end = tf.gather(text_end, last)
        start = tf.where(is_empty, end, tf.gather(text_start, tf.minimum(first, last)))
        rows = begin.value_rowids()
        splits = tf.gather(byte_start.row_splits, rows)
        places = [start, end]
        places += [tf.gather(byte_start.flat_values, splits + place) for place in (start, end)]
        return TokenOffsets(*(begin.with_flat_values(place) for place in places))

    def _units(self, text):
        """The normalized form of texts: bytes of unknown characters, and other characters."""
        strings = tf.strings.unicode_encode(text.codes, "UTF-8")
        # Created in each call, because `keras.utils.set_random_seed` deletes stored resources.
        splitter = tensorflow_text.SentencepieceTokenizer(self._characters)
        ids, start, end = (
            part.with_row_splits_dtype(tf.int64) for part in splitter.tokenize_with_offsets(strings)
        )
        units = tf.gather(self._units_of, ids.values)
        start, end = (tf.repeat(part.values, units.row_lengths()) for part in (start, end))
        ids = ids.with_values(units).merge_dims(1, 2)
        is_space = tf.gather(self._is_space, ids.values)
        is_byte = tf.gather(self._is_byte, ids.values)
        return _Units(ids, start, end, is_space, is_byte)

    def _unit_ranges(self, units, pieces):
        """The first unit of each token, and the unit after its last one, among all texts."""
        counts = self._piece_counts(units, pieces)
        spans = pieces.with_flat_values(tf.gather(self._spans, pieces.flat_values))
        num_tokens = spans.values.row_lengths()
        spans = spans.merge_dims(1, 2)
        start = tf.repeat(_sums_before(counts, pieces, units.ids.row_starts()), num_tokens)
        begin, end = tf.unstack(spans.flat_values, axis=1)
        end = tf.where(end == FROM_TEXT, tf.repeat(counts, num_tokens), end)
        rows = spans.with_values(begin)
        # If two kernels split a text differently, its tokens still stay within it, so that it
        # neither fails nor changes other texts of the batch.
        limit = tf.gather(units.ids.row_limits(), rows.value_rowids())
        return (rows.with_values(tf.minimum(start + place, limit)) for place in (begin, end))

    def _piece_counts(self, units, pieces):
        """The number of units of each piece."""
        starts_run = units.is_byte & (starts_row(units.ids) | ~_before(units.is_byte))
        starts_run = tf.cast(starts_run, tf.int64)
        run = tf.cumsum(starts_run) - 1
        lengths = tf.math.segment_sum(tf.cast(units.is_byte, tf.int64), tf.maximum(run, 0))
        # One more, so that `gather` always has a value.
        lengths = tf.concat([lengths, [0]], 0)
        # The unknown tokens of a text are its runs of bytes, in order.
        unknown = pieces.flat_values == self._unknown_id
        runs_before = tf.concat([[0], run + 1], 0)
        first_run = tf.gather(runs_before, units.ids.row_starts())
        which = _sums_before(tf.cast(unknown, tf.int64), pieces, first_run)
        which = tf.minimum(which, tf.size(lengths, tf.int64) - 1)
        return tf.where(
            unknown, tf.gather(lengths, which), tf.gather(self._counts, pieces.flat_values)
        )


def _sums_before(counts, pieces, row_starts):
    """The start of the row of each piece, plus the counts before the piece in its row."""
    sums = tf.concat([[0], tf.cumsum(counts)], 0)
    offsets = row_starts - tf.gather(sums, pieces.row_starts())
    return sums[:-1] + tf.gather(offsets, pieces.value_rowids())


class _Units(NamedTuple):
    """Characters, or bytes, of normalized texts: ids `(batch, None)`, others flat.

    `start` and `end` are bytes of the text before normalization.
    """

    ids: tf.RaggedTensor
    start: tf.Tensor
    end: tf.Tensor
    is_space: tf.Tensor
    is_byte: tf.Tensor


def _without_spaces(units, begin, end):
    """The first unit of each token that is not a space, and its last unit."""
    others = tf.where(~units.is_space)[:, 0]
    sentinel = tf.size(units.is_space, tf.int64)[tf.newaxis]
    others = tf.concat([others, sentinel], 0)
    return tf.gather(others, tf.searchsorted(others, begin)), end - 1


def _characters_of(units, text):
    """The part of the given text that each unit comes from, in characters."""
    codes = text.codes.flat_values
    widths = sum(tf.cast(codes >= limit, tf.int64) for limit in (0, 0x80, 0x800, 0x10000))
    bytes_before = tf.concat([[0], tf.cumsum(widths)], 0)
    row_start = tf.gather(bytes_before, text.codes.row_splits)
    character = tf.repeat(tf.range(tf.size(codes, tf.int64)), widths)
    rows = units.ids.value_rowids()
    start = tf.cast(units.start, tf.int64) + tf.gather(row_start, rows)
    end = tf.cast(units.end, tf.int64) + tf.gather(row_start, rows)
    # All units of one character, such as the three of "½", end where the last of them ends.
    starts_group = starts_row(units.ids) | _before(units.is_space) | (start != _before(start))
    group = tf.cumsum(tf.cast(starts_group, tf.int32)) - 1
    end = tf.gather(tf.math.segment_max(end, group), group)
    is_dummy = (end == start) & units.is_space  # The space that SentencePiece adds before a text.
    first = tf.gather(character, start)
    last = tf.gather(character, tf.maximum(end - 1, 0))
    # A rule that adds a space after a character merges it with the spaces that follow in the text.
    is_other = ~is_whitespace(codes)
    others = tf.concat([[0], tf.where(is_other)[:, 0]], 0)
    last_other = tf.gather(others, tf.cumsum(tf.cast(is_other, tf.int64)))
    last = tf.where(units.is_space, last, tf.maximum(tf.gather(last_other, last), first))
    text_start = tf.gather(text.start.flat_values, first)
    return text_start, tf.where(is_dummy, text_start, tf.gather(text.end.flat_values, last))


def _character_pieces(pieces):
    """Returns the pieces of a model of characters."""
    characters = [Piece("<unk>", type=UNKNOWN)]
    characters += [Piece(f"<0x{value:02X}>", type=BYTE) for value in range(_NUM_BYTES)]
    for piece in pieces:
        # User-defined symbols are found before the text is normalized.
        if piece.type == USER_DEFINED:
            characters.append(Piece(piece.piece, type=USER_DEFINED))
        elif piece.type == NORMAL and len(piece.piece) == 1:
            characters.append(Piece(piece.piece, -1.0))
    if _WORD_START not in {piece.piece for piece in characters}:
        characters.append(Piece(_WORD_START, -1.0))
    return characters


def _check_characters(pieces):
    single = {piece.piece for piece in pieces if len(piece.piece) == 1} | {_WORD_START}
    for piece in pieces:
        if piece.type == NORMAL and not single.issuperset(piece.piece):
            raise ValueError(
                "`return_offsets` needs a vocabulary with a piece for each character. Received: "
                f"the piece {piece.piece!r}, and none for {min(set(piece.piece) - single)!r}"
            )


def _before(values):
    """Returns the value before each value; for the first value, itself."""
    return tf.concat([values[:1], values[:-1]], 0)
