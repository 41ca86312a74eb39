"""Adds tokens to a SentencePiece model."""

from collections.abc import Sequence

from keras_xlnet.tokenizers.sentencepiece_proto import USER_DEFINED, Piece, SentencePieceProto

_SPACE, _WORD_START = " ", "\u2581"


def add_tokens(proto: bytes, tokens: Sequence[str]) -> bytes:
    """Returns the bytes of a model with additional pieces, which are never split.

    Args:
        proto: Bytes of a SentencePiece model.
        tokens: List of strings.

    Raises:
        ValueError: If a token is not a string with a visible character, is in the vocabulary
            already, or occurs twice.
    """
    if isinstance(tokens, str):
        raise ValueError(f"`tokens` must be a list of strings. Received: tokens={tokens!r}")
    model = SentencePieceProto.parse(proto)
    pieces = list(model.pieces)
    known = {piece.piece for piece in pieces}
    for token in tokens:
        if not isinstance(token, str) or not token.strip():
            raise ValueError(f"`tokens` must be strings with characters. Received: {token!r}")
        piece = token.replace(_SPACE, _WORD_START)
        if piece in known:
            raise ValueError(f"`tokens` must be new. Received: {token!r}, which is a piece already")
        known.add(piece)
        pieces.append(Piece(piece, type=USER_DEFINED))
    return model.with_pieces(pieces).serialize()
