"""A shard of token records: a TFRecord file with one example for each document."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_xlnet.pretraining.tfrecord_files import read_records


class TokenShard(NamedTuple):
    """The concatenated documents of a shard.

    Attributes:
        tokens: Int32 array `(num_tokens,)`.
        boundaries: Int64 array `(num_sentences + 1,)`, where sentences begin, followed by
            `num_tokens`.
        num_documents: Int.
    """

    tokens: np.ndarray
    boundaries: np.ndarray
    num_documents: int


def serialize_document(
    tokens: Sequence[int] | np.ndarray, sentence_lengths: Sequence[int] | np.ndarray
) -> bytes:
    """Serializes the token ids of a document and the lengths of its sentences."""
    features = {"tokens": _int64s(tokens), "sentence_lengths": _int64s(sentence_lengths)}
    example = tf.train.Example(features=tf.train.Features(feature=features))
    # Without this argument, protobuf serializes the entries of a map in arbitrary order.
    return example.SerializeToString(deterministic=True)


def parse_document(record: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Parses a record to `(tokens, sentence_lengths)`, int32 and int64 arrays."""
    feature = tf.train.Example.FromString(record).features.feature
    # Converted to int64 first: protobuf copies one buffer for this type, and single numbers for
    # any other.
    tokens = np.array(feature["tokens"].int64_list.value, "int64").astype("int32")
    return tokens, np.array(feature["sentence_lengths"].int64_list.value, "int64")


def read_shard(path: str) -> TokenShard:
    """Reads a shard into memory.

    Args:
        path: String, path of a shard that `write_token_records` wrote.

    Returns:
        A `TokenShard`.

    Raises:
        ValueError: If the file is damaged or does not contain token records.
    """
    documents: list[tuple[np.ndarray, np.ndarray]] = []
    for record in read_records(path):
        tokens, lengths = _parse(record, path)
        if len(tokens) != lengths.sum():
            raise ValueError(
                f"The record file {path!r} is damaged: document {len(documents)} has "
                f"{len(tokens)} tokens, but the lengths of its sentences add up to "
                f"{lengths.sum()}."
            )
        documents.append((tokens, lengths))
    if not documents:
        raise ValueError(f"The record file {path!r} is damaged: it contains no documents.")
    lengths = np.concatenate([lengths for _, lengths in documents])
    boundaries = np.concatenate([[0], np.cumsum(lengths)])
    return TokenShard(np.concatenate([ids for ids, _ in documents]), boundaries, len(documents))


def _parse(record, path):
    try:
        return parse_document(record)
    except Exception as error:  # DecodeError of protobuf is not public in TensorFlow.
        raise ValueError(f"The record file {path!r} does not contain token records.") from error


def _int64s(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
