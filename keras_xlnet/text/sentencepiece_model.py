"""Reads, checks and writes SentencePiece models."""

import os
from typing import Any

import sentencepiece
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from keras_xlnet.types import PathLike

SPECIAL_TOKENS = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")


def load_processor(proto: bytes) -> Any:
    """Returns a `sentencepiece.SentencePieceProcessor` for a unigram model of XLNet.

    Args:
        proto: Bytes, the serialized model.

    Raises:
        ValueError: If `proto` is not a SentencePiece unigram model with XLNet's special pieces.
    """
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        spec = sentencepiece_model_pb2.ModelProto.FromString(proto).trainer_spec
    except Exception as error:  # sentencepiece and protobuf have no common exception class.
        raise ValueError(
            f"`proto` must be a SentencePiece model. Received: {len(proto)} bytes of something else"
        ) from error
    # tensorflow_text accepts any type and then splits texts as for a unigram model.
    if spec.model_type != spec.UNIGRAM:
        name = spec.ModelType.Name(spec.model_type)
        raise ValueError(f"`proto` must be a unigram model. Received: a model of type {name}")
    size = min(len(SPECIAL_TOKENS), processor.vocab_size())
    pieces = tuple(processor.id_to_piece(index) for index in range(size))
    if pieces != SPECIAL_TOKENS:
        raise ValueError(
            f"`proto` must have the special pieces {SPECIAL_TOKENS} at ids 0 to 8. "
            f"Received: {pieces}"
        )
    return processor


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
    if not tf.io.gfile.exists(path):
        raise FileNotFoundError(f"`proto` must be an existing file. Received: proto={path!r}")
    with tf.io.gfile.GFile(path, "rb") as file:
        return file.read()


def write_proto(path: PathLike, proto: bytes) -> None:
    """Writes the bytes of a model to a file."""
    with tf.io.gfile.GFile(os.fspath(path), "wb") as file:
        file.write(proto)
