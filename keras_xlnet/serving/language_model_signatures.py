"""Signatures of language models: log-probabilities of texts."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_xlnet.arguments import check_token_id
from keras_xlnet.models import TransformerXLLanguageModel, XLNetPermutationLM
from keras_xlnet.models.scoring import check_orders, left_to_right_features, permutation_scorer
from keras_xlnet.serving.causal_segments import CausalReader
from keras_xlnet.serving.like_length import read_in_batches_of_like_length
from keras_xlnet.serving.signature import Signature, strings


def permutation_lm_signatures(
    model: XLNetPermutationLM, batch_size: int | None
) -> dict[str, Signature]:
    """Returns the signatures of a permutation language model, which reads from left to right.

    Args:
        model: An `XLNetPermutationLM` that is not stateful.
        batch_size: As in `export`.

    Raises:
        ValueError: If the model is stateful or has no factorization.
    """
    check_orders(model)
    scorer = permutation_scorer(model)

    def read(token_ids, padding_mask):
        log_probs = scorer(left_to_right_features(token_ids, padding_mask), training=False)
        log_probs = log_probs[:, : tf.shape(token_ids)[1]]
        return tf.where(padding_mask, log_probs, 0.0), padding_mask

    return {"serving_default": _score_signature(model.tokenizer, batch_size, read)}


def transformer_xl_signatures(
    model: TransformerXLLanguageModel, batch_size: int | None, start_token_id: int | None = None
) -> dict[str, Signature]:
    """Returns the signatures of a causal language model.

    Args:
        model: A `TransformerXLLanguageModel` that is not stateful.
        batch_size: As in `export`.
        start_token_id: Int, a token that is put before each text, as in `score`.

    Raises:
        ValueError: If the model is stateful, or `start_token_id` is not a token.
    """
    _check_stateless(model)
    if start_token_id is not None:
        start_token_id = check_token_id("start_token_id", start_token_id, model.vocabulary_size)
    reader = CausalReader(model, start_token_id)

    def read(token_ids, padding_mask):
        memory = reader.empty_memory(tf.shape(token_ids)[0])
        return reader.score(token_ids, padding_mask, memory)[:2]

    return {"serving_default": _score_signature(model.tokenizer, batch_size, read)}


def padded_tokens(token_ids: tf.RaggedTensor) -> dict[str, tf.Tensor]:
    """Returns `token_ids` and `padding_mask` of rows of tokens, with padding on the right."""
    lengths = tf.cast(token_ids.row_lengths(), tf.int32)
    # At least one, so that rows without tokens can be read.
    width = tf.reduce_max(tf.concat([lengths, [1]], axis=0))
    padded = token_ids.to_tensor(shape=tf.stack([-1, width]))
    return {"token_ids": padded, "padding_mask": tf.sequence_mask(lengths, width)}


def scores(log_probs: tf.Tensor, is_scored: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns the outputs of a signature that scores.

    Args:
        log_probs: `(batch, length)`, the log-probability of each token, 0 if it does not count.
        is_scored: `(batch, length)` bool, which tokens count.
    """
    total = tf.reduce_sum(tf.cast(log_probs, tf.float64), axis=1)
    return {
        "log_prob": tf.cast(total, tf.float32),
        "num_tokens": tf.reduce_sum(tf.cast(is_scored, tf.int32), axis=1),
        "token_log_probs": log_probs,
    }


def _score_signature(
    tokenizer: Any, batch_size: int | None, read: Callable[..., tuple[tf.Tensor, tf.Tensor]]
) -> Signature:
    """A signature that scores texts with a function of `token_ids` and `padding_mask`."""
    specs = {
        "token_ids": tf.TensorSpec((None, None), tf.int32, "token_ids"),
        "padding_mask": tf.TensorSpec((None, None), tf.bool, "padding_mask"),
    }

    @tf.function(input_signature=[specs], autograph=False)
    def read_batch(features):
        return scores(*read(**features))

    def score(text):
        outputs = read_in_batches_of_like_length(
            read_batch, padded_tokens(tokenizer(text)), "right", ["token_log_probs"]
        )
        return with_batch_size(outputs, batch_size)

    return Signature(score, strings("text", batch_size=batch_size))


def with_batch_size(outputs: dict[str, tf.Tensor], batch_size: int | None) -> dict[str, tf.Tensor]:
    """Returns outputs whose static shapes have the batch size, which ragged ops lose."""
    return {
        name: tf.ensure_shape(value, (batch_size, *value.shape[1:]))
        for name, value in outputs.items()
    }


def _check_stateless(model):
    if model.stateful:
        raise ValueError(
            "`model` must have `stateful=False`: "
            "`model.with_arguments(stateful=False, batch_size=None)`"
        )
