"""One shard of token records: documents as examples of a TFRecord file."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_xlnet.pretraining.tfrecord_files import read_records


class TokenShard(NamedTuple):
    """The documents of a shard, end to end.

    `tokens` `(num_tokens,)` int32; `boundaries` `(num_sentences + 1,)` int64, where sentences
    begin, and at last `num_tokens`; `num_documents` int.
    """

    tokens: np.ndarray
    boundaries: np.ndarray
    num_documents: int


def serialize_document(tokens, sentence_lengths):
    """Returns the record of a document: its token ids and the lengths of its sentences."""
    features = {"tokens": _int64s(tokens), "sentence_lengths": _int64s(sentence_lengths)}
    example = tf.train.Example(features=tf.train.Features(feature=features))
    # Maps have no order in protobuf; equal documents make equal bytes only if it is asked for.
    return example.SerializeToString(deterministic=True)


def parse_document(record):
    """Returns `(tokens, sentence_lengths)` of a record, int32 and int64 arrays."""
    feature = tf.train.Example.FromString(record).features.feature
    # By way of int64: protobuf hands over a buffer of them, of another type every number.
    tokens = np.array(feature["tokens"].int64_list.value, "int64").astype("int32")
    return tokens, np.array(feature["sentence_lengths"].int64_list.value, "int64")


def read_shard(path):
    """Reads a whole shard.

    Args:
        path: str, a shard that `write_token_records` wrote.

    Returns:
        A `TokenShard`.

    Raises:
        ValueError: the file is damaged, or holds something else.
    """
    documents = []
    for record in read_records(path):
        tokens, lengths = _parsed(record, path)
        if len(tokens) != lengths.sum():
            raise ValueError(
                f"The record file {path!r} is damaged: document {len(documents)} has "
                f"{len(tokens)} tokens in sentences of {lengths.sum()} together."
            )
        documents.append((tokens, lengths))
    if not documents:
        raise ValueError(f"The record file {path!r} is damaged: it has no documents.")
    lengths = np.concatenate([lengths for _, lengths in documents])
    boundaries = np.concatenate([[0], np.cumsum(lengths)])
    return TokenShard(np.concatenate([ids for ids, _ in documents]), boundaries, len(documents))


def _parsed(record, path):
    try:
        return parse_document(record)
    except Exception as error:  # protobuf's DecodeError is in no public module of TensorFlow.
        raise ValueError(f"The record file {path!r} does not hold token records.") from error


def _int64s(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
