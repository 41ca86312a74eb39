"""Reads, checks and writes SentencePiece models."""

import os
from typing import Any

from keras_xlnet.lazy_modules import sentencepiece
from keras_xlnet.tokenizers.sentencepiece_proto import SentencePieceProto
from keras_xlnet.tokenizers.text_paths import is_remote, open_file
from keras_xlnet.types import PathLike

SPECIAL_TOKENS = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")
#: Their ids in XLNet's own vocabularies.
XLNET_IDS = tuple(range(len(SPECIAL_TOKENS)))


def load_processor(proto: bytes) -> Any:
    """Returns a `sentencepiece.SentencePieceProcessor` for a unigram model of XLNet.

    Args:
        proto: Bytes, the serialized model.

    Raises:
        ValueError: If `proto` is not a SentencePiece unigram model with XLNet's special pieces.
    """
    make = sentencepiece.SentencePieceProcessor
    try:
        processor = make(model_proto=proto)
        model_type = SentencePieceProto.parse(proto).model_type
    except Exception as error:  # sentencepiece has no exception class of its own.
        raise ValueError(
            f"`proto` must be a SentencePiece model. Received: {len(proto)} bytes of something else"
        ) from error
    # tensorflow_text accepts any type and then splits texts as for a unigram model.
    if model_type != "UNIGRAM":
        raise ValueError(f"`proto` must be a unigram model. Received: a model of type {model_type}")
    ids = special_ids(processor)
    missing = [t for t, i in zip(SPECIAL_TOKENS, ids, strict=True) if processor.id_to_piece(i) != t]
    if missing:
        raise ValueError(
            f"`proto` must have the special pieces {SPECIAL_TOKENS}. Missing: {missing}"
        )
    return processor


def special_ids(processor: Any) -> tuple[int, ...]:
    """Returns the ids of `SPECIAL_TOKENS`; the id of `<unk>` for a piece that is missing."""
    return tuple(map(processor.piece_to_id, SPECIAL_TOKENS))


def read_proto(proto: bytes | PathLike) -> bytes:
    """Returns the bytes of a model, from the bytes or from a path."""
    if isinstance(proto, bytes):
        return proto
    if not isinstance(proto, (str, os.PathLike)):
        raise ValueError(
            "`proto` must be a path, the bytes of a SentencePiece model or None. "
            f"Received: proto={proto!r}"
        )
    path = os.fspath(proto)
    if not is_remote(path) and not os.path.exists(path):
        raise FileNotFoundError(f"`proto` must be an existing file. Received: proto={path!r}")
    with open_file(path, "rb") as file:
        return file.read()


def write_proto(path: PathLike, proto: bytes) -> None:
    """Writes the bytes of a model to a file."""
    with open_file(os.fspath(path), "wb") as file:
        file.write(proto)
