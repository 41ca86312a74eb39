"""Signatures of language models that score texts, whole or segment by segment."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_xlnet.serving.causal_segments import CausalReader
from keras_xlnet.serving.like_length import read_in_batches_of_like_length
from keras_xlnet.serving.memory_strings import MemoryStrings
from keras_xlnet.serving.ragged_rows import padded_right, with_batch_size
from keras_xlnet.serving.signature import Signature, strings


def scores(log_probs: tf.Tensor, is_scored: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns the outputs of a signature that scores.

    Args:
        log_probs: `(batch, length)`, the log-probability of each token, 0 if it is not scored.
        is_scored: `(batch, length)` bool, which tokens are scored.
    """
    total = tf.reduce_sum(tf.cast(log_probs, tf.float64), axis=1)
    return {
        "log_prob": tf.cast(total, tf.float32),
        "num_tokens": tf.reduce_sum(tf.cast(is_scored, tf.int32), axis=1),
        "token_log_probs": log_probs,
    }


def score_signature(
    tokenizer: Any, read: Callable[..., tuple[tf.Tensor, tf.Tensor]], batch_size: int | None
) -> Signature:
    """Returns the signature that scores texts.

    Args:
        tokenizer: Function of strings that returns ragged rows of tokens.
        read: Function of `token_ids` and `padding_mask`, `(batch, length)`, padded on the right. It
            returns the arguments of `scores`.
        batch_size: As in `export`.
    """
    specs = {
        "token_ids": tf.TensorSpec((None, None), tf.int32, "token_ids"),
        "padding_mask": tf.TensorSpec((None, None), tf.bool, "padding_mask"),
    }

    @tf.function(input_signature=[specs], autograph=False)
    def read_batch(features):
        return scores(*read(**features))

    def score(text):
        outputs = read_in_batches_of_like_length(
            read_batch, padded_right(tokenizer(text)), "right", ["token_log_probs"]
        )
        return with_batch_size(outputs, batch_size)

    return Signature(score, strings("text", batch_size=batch_size))


def segment_signature(
    reader: CausalReader, memory_strings: MemoryStrings, batch_size: int | None
) -> Signature:
    """Returns the signature that scores the next segment of a text, for a model with memory.

    Args:
        reader: A `CausalReader` of the model.
        memory_strings: The `MemoryStrings` of the model.
        batch_size: As in `export`.
    """

    def score(text, memory):
        features = padded_right(reader.model.tokenizer(text))
        *found, memory = reader.score(**features, memory=memory_strings.decode(memory))
        outputs = {**scores(*found), "memory_bytes": memory_strings.encode(memory)}
        return with_batch_size(outputs, batch_size)

    return Signature(score, strings("text", "memory", batch_size=batch_size))
