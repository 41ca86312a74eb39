"""Finds the part of a text that each token comes from, on the host.

SentencePiece normalizes a text (NFKC) before it splits it, so the position of a token is not the
sum of the lengths before it. But the pieces of a text, joined, are its normalized form, and
SentencePiece returns where each character of that form comes from.
"""

from typing import Any

import numpy as np

from keras_xlnet.tokenizers.host_cleaning import CleanedText
from keras_xlnet.tokenizers.sentencepiece_proto import BYTE, NORMAL, SentencePieceProto
from keras_xlnet.tokenizers.token_spans import FROM_TEXT, token_spans

_WORD_START = "\u2581"


class HostOffsetFinder:
    """Finds the offsets of the tokens of one SentencePiece model.

    The offsets equal the `start` and `end` of `OffsetFinder`, in the TensorFlow graph. Unlike that
    class, this one works without a piece for each character. Both use `token_spans`.

    Args:
        proto: Bytes of the model.
        processor: A `sentencepiece.SentencePieceProcessor` of the model.
    """

    def __init__(self, proto: bytes, processor: Any) -> None:
        self._processor = processor
        pieces = SentencePieceProto.parse(proto).pieces
        self._lengths = np.array([_length(piece) for piece in pieces])
        spans = [_spans_without_spaces(piece, processor.encode_as_pieces) for piece in pieces]
        # The tokens of all pieces, one after the other.
        self._num_tokens = np.array([*map(len, spans)])
        self._first_token = np.cumsum(self._num_tokens) - self._num_tokens
        self._spans = np.concatenate(spans).T

    def offsets(self, text: CleanedText, pieces: np.ndarray) -> np.ndarray:
        """Returns the offsets of the tokens that the digit-comma rule makes from `pieces`.

        Args:
            text: What `clean_with_places` returns.
            pieces: Int array `(num_pieces,)`, the ids of `text.text` before that rule.

        Returns:
            Int64 array `(num_tokens, 2)`: the first character of each token in the text before
            cleaning, and the character after its last one.

        Raises:
            ValueError: If `pieces` are not the ids of `text`.

        Example:

        >>> from keras_xlnet.tokenizers import XLNetTokenizer
        >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
        >>> _, (offsets,) = tokenizer.encode(["is   a"], return_offsets=True)
        >>> offsets.tolist()
        [[0, 0], [0, 1], [1, 2], [5, 5], [5, 6]]
        """
        normalized, text_start, text_end = self._normalize(text)
        lengths = self._piece_lengths(text.text, pieces)
        if lengths.sum() != len(normalized):
            raise ValueError(
                f"`pieces` must be the ids of the text {text.text!r}. Received: {pieces.tolist()}"
            )
        if not len(pieces):
            return np.zeros((0, 2), np.int64)
        first, last = self._token_ranges(pieces, lengths)
        end = text_end[last]
        # A token that is only a space has the position after the space.
        is_empty = first > last
        first[is_empty] = 0
        return np.stack([np.where(is_empty, end, text_start[first]), end], axis=1)

    def _normalize(self, text):
        """The normalized form of a text, and the part of the given text for each character."""
        normalized = self._processor.normalize(text.text)
        # SentencePiece adds a space before a text. Few texts change in other ways.
        if normalized == _WORD_START + text.text.replace(" ", _WORD_START):
            dummy = text.start[:1]
            start, end = (np.concatenate([dummy, part]) for part in (text.start, text.end))
            return normalized, start, end
        normalized, places = self._processor.normalize(text.text, with_offsets=True)
        start, end = _character_ranges(normalized, np.array(places, np.int64), text.text)
        text_start = text.start[start]
        return normalized, text_start, np.where(end == start, text_start, text.end[end - 1])

    def _piece_lengths(self, text, pieces):
        """The number of characters of the normalized form of each piece."""
        lengths = self._lengths[pieces]
        unknown = np.flatnonzero(pieces == self._processor.unk_id())
        if len(unknown):
            # As strings, unknown pieces are the characters of the text.
            strings = self._processor.encode(text, out_type=str)
            if len(strings) == len(pieces):
                lengths[unknown] = [len(strings[place]) for place in unknown]
        return lengths

    def _token_ranges(self, pieces, lengths):
        """The first and the last character of each token in the normalized form."""
        start = np.cumsum(lengths) - lengths
        token, num_tokens = self._first_token[pieces], self._num_tokens[pieces]
        if (num_tokens > 1).any():
            piece = np.repeat(np.arange(len(pieces)), num_tokens)
            first_token = np.cumsum(num_tokens) - num_tokens
            token = token[piece] + np.arange(len(piece)) - first_token[piece]
            start, lengths = start[piece], lengths[piece]
        begin, end = self._spans[:, token]
        end = start + np.where(end == FROM_TEXT, lengths, end)
        return np.minimum(start + begin, end), end - 1


def _character_ranges(normalized, places, text):
    """The part of the text that each character of the normalized form comes from."""
    if not normalized:
        return places[:0], places[:0]
    start = places[:-1]
    # Several characters that come from one character, such as the three of "½", all end where the
    # last of them ends.
    is_space = np.array([character == _WORD_START for character in normalized])
    starts_group = np.ones(len(start), bool)
    starts_group[1:] = is_space[:-1] | (start[1:] != start[:-1])
    first = np.flatnonzero(starts_group)
    group_end = places[np.append(first[1:], len(start))]
    end = group_end[np.cumsum(starts_group) - 1]
    # A rule that adds a space after a character merges it with the spaces that follow in the text.
    places = np.arange(1, len(text) + 1)
    last = np.maximum.accumulate(np.where([*map(str.isspace, text)], 0, places))
    last = np.maximum(last[np.maximum(end - 1, 0)], start + 1)
    return start, np.where(is_space, end, last)


def _length(piece):
    if piece.type == BYTE:
        return 0 if _continues_character(piece) else 1
    return len(piece.piece)


def _spans_without_spaces(piece, encode_as_pieces):
    """Returns `token_spans` without the spaces at the start of a token."""
    spans = token_spans(piece, encode_as_pieces)
    if piece.type == BYTE and _continues_character(piece):
        return [(-1, 0)]  # Each byte of a character covers the whole character.
    if piece.type != NORMAL:
        return spans
    return [(begin + _num_spaces(piece.piece[begin:end]), end) for begin, end in spans]


def _num_spaces(text):
    return len(text) - len(text.lstrip(_WORD_START))


def _continues_character(piece):
    """Returns whether a byte, such as `<0x80>`, is not the first byte of a character."""
    return 0x80 <= int(piece.piece[3:5], 16) < 0xC0
