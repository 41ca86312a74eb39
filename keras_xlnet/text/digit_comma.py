"""The original's rule for pieces that end in a digit and a comma (prepro_utils.encode_pieces).

What a piece is re-split into depends on the piece alone, so in the graph the rule is a table from
ids to ids.
"""

import tensorflow as tf

_WORD_START = "\u2581"


def split_digit_comma(piece, encode_as_pieces):
    """Re-splits a piece such as `9,`, so that numbers do not come with the comma after them.

    Args:
        piece: str, a SentencePiece piece.
        encode_as_pieces: function from a text to its pieces.

    Returns:
        A list of pieces, `[piece]` where the rule does not apply.
    """
    # str.isdigit holds in any script, and for superscripts: that is the original's test.
    if not (len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()):
        return [piece]
    pieces = encode_as_pieces(piece[:-1].replace(_WORD_START, ""))
    # Encoding put a word start where the piece had none.
    if piece[0] != _WORD_START and pieces[0].startswith(_WORD_START):
        pieces = [pieces[0][1:], *pieces[1:]] if len(pieces[0]) > 1 else pieces[1:]
    return [*pieces, ","]


def digit_comma_table(processor):
    """The rule for every piece of a vocabulary.

    Args:
        processor: a `sentencepiece.SentencePieceProcessor`.

    Returns:
        An int32 `tf.RaggedTensor` `(vocabulary_size, None)`: the ids that stand for each id.
    """
    rows = []
    for index in range(processor.vocab_size()):
        pieces = split_digit_comma(processor.id_to_piece(index), processor.encode_as_pieces)
        rows.append([*map(processor.piece_to_id, pieces)])
    return tf.ragged.constant(rows, tf.int32, row_splits_dtype=tf.int64)
