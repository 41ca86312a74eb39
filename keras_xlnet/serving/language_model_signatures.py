"""Signatures of language models: log-probabilities of texts, and continuations of prompts."""

import functools
from collections.abc import Callable, Collection
from typing import Any

import tensorflow as tf

from keras_xlnet.arguments import check_positive_int, check_token_id, check_token_ids
from keras_xlnet.models import TransformerXLLanguageModel, XLNetPermutationLM
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.models.decoding import CausalDecoder, Decoder, PermutationDecoder
from keras_xlnet.models.scoring import check_orders, left_to_right_features, permutation_scorer
from keras_xlnet.serving.causal_segments import CausalReader
from keras_xlnet.serving.generation import Generator, Sampler, greedy
from keras_xlnet.serving.like_length import read_in_batches_of_like_length
from keras_xlnet.serving.memory_strings import MemoryStrings
from keras_xlnet.serving.signature import Signature, strings

# The largest number of new tokens that a request may ask for.
_MAX_NEW_TOKENS = 256


def permutation_lm_signatures(
    model: XLNetPermutationLM,
    batch_size: int | None,
    max_new_tokens: int = _MAX_NEW_TOKENS,
    stop_token_ids: Collection[int] = (),
) -> dict[str, Signature]:
    """Returns the signatures of a permutation language model, which reads from left to right.

    Args:
        model: An `XLNetPermutationLM` that is not stateful.
        batch_size: As in `export`.
        max_new_tokens: Int, the largest number of new tokens that a request may ask for.
        stop_token_ids: Ids of tokens that end a continuation.

    Raises:
        ValueError: If the model is stateful or has no factorization, or another argument is
            invalid.
    """
    check_orders(model)
    scorer = permutation_scorer(model)

    def read(token_ids, padding_mask):
        log_probs = scorer(left_to_right_features(token_ids, padding_mask), training=False)
        log_probs = log_probs[:, : tf.shape(token_ids)[1]]
        return tf.where(padding_mask, log_probs, 0.0), padding_mask

    return {
        "serving_default": _score_signature(model.tokenizer, batch_size, read),
        **_generation_signatures(
            model, PermutationDecoder, batch_size, max_new_tokens, stop_token_ids
        ),
    }


def transformer_xl_signatures(
    model: TransformerXLLanguageModel,
    batch_size: int | None,
    start_token_id: int | None = None,
    max_new_tokens: int = _MAX_NEW_TOKENS,
    stop_token_ids: Collection[int] = (),
) -> dict[str, Signature]:
    """Returns the signatures of a causal language model.

    Args:
        model: A `TransformerXLLanguageModel` that is not stateful.
        batch_size: As in `export`.
        start_token_id: Int, a token that is put before each text, as in `score`.
        max_new_tokens: Int, the largest number of new tokens that a request may ask for.
        stop_token_ids: Ids of tokens that end a continuation.

    Raises:
        ValueError: If the model is stateful, or another argument is invalid.
    """
    _check_stateless(model)
    if start_token_id is not None:
        start_token_id = check_token_id("start_token_id", start_token_id, model.vocabulary_size)
    reader = CausalReader(model, start_token_id)

    def read(token_ids, padding_mask):
        memory = reader.empty_memory(tf.shape(token_ids)[0])
        return reader.score(token_ids, padding_mask, memory)[:2]

    return {
        "serving_default": _score_signature(model.tokenizer, batch_size, read),
        **_segment_signatures(model, reader, batch_size),
        **_generation_signatures(model, CausalDecoder, batch_size, max_new_tokens, stop_token_ids),
    }


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


def _segment_signatures(model, reader, batch_size):
    """The signature that scores the next segment of a text, of a model with memory."""
    if not model.memory_length:
        return {}
    memory_strings = MemoryStrings(model, reader.empty_memory(1))

    def score(text, memory):
        features = padded_tokens(model.tokenizer(text))
        *found, memory = reader.score(**features, memory=memory_strings.decode(memory))
        outputs = {**scores(*found), "memory_bytes": memory_strings.encode(memory)}
        return with_batch_size(outputs, batch_size)

    return {"serving_segment": Signature(score, strings("text", "memory", batch_size=batch_size))}


def _generation_signatures(
    model: Any,
    decoder_class: type[Decoder],
    batch_size: int | None,
    max_new_tokens: int,
    stop_token_ids: Collection[int],
) -> dict[str, Signature]:
    """Signatures that continue prompts: greedily, and with tokens that are drawn."""
    check_positive_int("max_new_tokens", max_new_tokens)
    tokenizer, size = model.tokenizer, backbone_of(model).vocabulary_size
    stops = check_token_ids("stop_token_ids", stop_token_ids, size)
    new_decoder = functools.partial(decoder_class, model, is_compiled=False)
    generator = Generator(new_decoder, max_new_tokens, stops)

    def continued(prompt, counts, choose):
        prompts = _without_end_token(tokenizer, tokenizer(prompt))
        check = tf.debugging.assert_less_equal(
            counts, max_new_tokens, f"`max_new_tokens` must be at most {max_new_tokens}"
        )
        with tf.control_dependencies([check]):
            outputs = generator(prompts, tf.identity(counts), choose)
        new = tf.RaggedTensor.from_tensor(outputs["token_ids"], outputs["num_tokens"])
        outputs["text"] = tokenizer.detokenize(tf.concat([prompts, new], axis=1))
        return with_batch_size(outputs, batch_size)

    def generate(prompt, max_new_tokens):
        return continued(prompt, max_new_tokens, greedy)

    def sample(prompt, max_new_tokens, temperature, top_k, top_p, seed):
        sampler = Sampler(temperature, top_k, top_p, seed, generator.max_new_tokens)
        return continued(prompt, max_new_tokens, sampler)

    inputs = [
        *strings("prompt", batch_size=batch_size),
        tf.TensorSpec((batch_size,), tf.int32, "max_new_tokens"),
    ]
    settings = {"temperature": tf.float32, "top_k": tf.int32, "top_p": tf.float32, "seed": tf.int64}
    sampling = [tf.TensorSpec((batch_size,), dtype, name) for name, dtype in settings.items()]
    return {
        "serving_generate": Signature(generate, inputs),
        "serving_sample": Signature(sample, [*inputs, *sampling]),
    }


def _without_end_token(tokenizer, rows):
    """Prompts go on: an end token that the tokenizer puts after each text is left out."""
    return rows if getattr(tokenizer, "end_token", None) is None else rows[:, :-1]


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
