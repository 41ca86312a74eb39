"""The original's rule for pieces that end in a digit and a comma (`prepro_utils.encode_pieces`).

The rule splits a piece without looking at its neighbors, so it is a table from ids to ids.
"""

from collections.abc import Callable
from typing import Any

_WORD_START = "\u2581"


def ends_in_digit_comma(piece: str) -> bool:
    """Returns whether the rule applies to a piece. Such a piece never occurs in the result."""
    # As in the original: str.isdigit is also true for other scripts and for superscripts.
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()


def split_digit_comma(piece: str, encode_as_pieces: Callable[[str], list[str]]) -> list[str]:
    """Splits a piece such as `9,` again, so that a comma is never part of a number.

    Args:
        piece: String, a SentencePiece piece.
        encode_as_pieces: Function from a text to its pieces.

    Returns:
        List of pieces, `[piece]` where the rule does not apply.
    """
    if not ends_in_digit_comma(piece):
        return [piece]
    pieces = encode_as_pieces(piece[:-1].replace(_WORD_START, ""))
    # Encoding adds a word start, which is removed if the piece had none.
    if piece[0] != _WORD_START and pieces[0].startswith(_WORD_START):
        pieces = [pieces[0][1:], *pieces[1:]] if len(pieces[0]) > 1 else pieces[1:]
    return [*pieces, ","]


def digit_comma_rows(processor: Any) -> list[list[int]]:
    """Returns the ids that replace each id of a vocabulary.

    Args:
        processor: A `sentencepiece.SentencePieceProcessor`.
    """
    rows = []
    for index in range(processor.vocab_size()):
        pieces = split_digit_comma(processor.id_to_piece(index), processor.encode_as_pieces)
        rows.append([*map(processor.piece_to_id, pieces)])
    return rows
