"""The part of a piece that each of its tokens covers.

A piece is one token, unless the rule for digits and commas splits it. The offsets on the host and
in the graph are both computed from these parts.
"""

import itertools
from collections.abc import Callable

from keras_xlnet.tokenizers.digit_comma import split_digit_comma
from keras_xlnet.tokenizers.sentencepiece_proto import BYTE, UNKNOWN, USER_DEFINED, Piece

# The length of an unknown token depends on the text.
FROM_TEXT = -1


def token_spans(
    piece: Piece, encode_as_pieces: Callable[[str], list[str]]
) -> list[tuple[int, int]]:
    """Returns where the tokens of a piece begin and end, in characters of the piece.

    Each token of a user-defined symbol covers all of it, because its characters need not be pieces.

    Args:
        piece: A `Piece`.
        encode_as_pieces: Function from a text to its pieces.

    Returns:
        List of tuples: the first character, and the character after the last one or `FROM_TEXT`.
    """
    if piece.type == UNKNOWN:
        return [(0, FROM_TEXT)]
    if piece.type == BYTE:
        return [(0, 1)]
    lengths = [len(token) for token in split_digit_comma(piece.piece, encode_as_pieces)]
    if piece.type == USER_DEFINED or sum(lengths) != len(piece.piece):
        return [(0, len(piece.piece))] * len(lengths)
    ends = [*itertools.accumulate(lengths)]
    return [*zip([0, *ends], ends, strict=False)]
