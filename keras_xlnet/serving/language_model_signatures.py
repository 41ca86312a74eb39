"""Signatures of language models: log-probabilities of texts, and continuations of prompts."""

from collections.abc import Collection

import tensorflow as tf

from keras_xlnet.arguments import check_positive_int, check_token_id, check_token_ids
from keras_xlnet.models import TransformerXLLanguageModel, XLNetPermutationLM
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.models.decoding import CausalDecoder, PermutationDecoder
from keras_xlnet.models.scoring import check_orders, left_to_right_features, permutation_scorer
from keras_xlnet.serving.causal_segments import CausalReader
from keras_xlnet.serving.generation import Generator
from keras_xlnet.serving.generation_signatures import generation_signatures, reply_signature
from keras_xlnet.serving.memory_strings import MemoryStrings
from keras_xlnet.serving.score_signatures import score_signature, segment_signature
from keras_xlnet.serving.signature import Signature

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
        outputs = scorer(left_to_right_features(token_ids, padding_mask), training=False)
        log_probs = outputs["log_probs"][:, : tf.shape(token_ids)[1]]
        return tf.where(padding_mask, log_probs, 0.0), padding_mask

    generator = _new_generator(model, max_new_tokens, stop_token_ids)
    return {
        "serving_default": score_signature(model.tokenizer, read, batch_size),
        **generation_signatures(model, PermutationDecoder, generator, batch_size),
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

    generator = _new_generator(model, max_new_tokens, stop_token_ids)
    found = {
        "serving_default": score_signature(model.tokenizer, read, batch_size),
        **generation_signatures(model, CausalDecoder, generator, batch_size),
    }
    if model.memory_length:
        memory_strings = MemoryStrings(reader)
        found["serving_segment"] = segment_signature(reader, memory_strings, batch_size)
        found["serving_reply"] = reply_signature(reader, memory_strings, generator, batch_size)
    return found


def _new_generator(model, max_new_tokens, stop_token_ids):
    check_positive_int("max_new_tokens", max_new_tokens)
    size = backbone_of(model).vocabulary_size
    return Generator(max_new_tokens, check_token_ids("stop_token_ids", stop_token_ids, size))


def _check_stateless(model):
    if model.stateful:
        raise ValueError(
            "`model` must have `stateful=False`: "
            "`model.with_arguments(stateful=False, batch_size=None)`"
        )
