"""Signatures of language models that continue prompts and conversations."""

from typing import Any

import tensorflow as tf

from keras_xlnet.models.decoding import CausalDecoder, Decoder
from keras_xlnet.serving.causal_segments import CausalReader
from keras_xlnet.serving.generation import Generator, Sampler, greedy, new_tokens
from keras_xlnet.serving.memory_strings import MemoryStrings
from keras_xlnet.serving.ragged_rows import padded_right, with_batch_size
from keras_xlnet.serving.signature import Signature, strings


def generation_signatures(
    model: Any, decoder_class: type[Decoder], generator: Generator, batch_size: int | None
) -> dict[str, Signature]:
    """Returns the signatures that continue prompts: greedily, and by sampling.

    Args:
        model: A language model with a tokenizer.
        decoder_class: The class of its decoder.
        generator: A `Generator`.
        batch_size: As in `export`.
    """
    tokenizer = model.tokenizer

    def continued(prompt, counts, choose):
        prompts = _without_end_token(tokenizer, tokenizer(prompt))
        decoder = decoder_class(model, is_compiled=False)
        outputs = generator.continue_prompts(decoder, prompts, counts, choose)
        text = tokenizer.detokenize(tf.concat([prompts, new_tokens(outputs)], axis=1))
        return with_batch_size({**outputs, "text": text}, batch_size)

    def generate(prompt, max_new_tokens):
        return continued(prompt, max_new_tokens, greedy)

    def sample(prompt, max_new_tokens, **settings):
        return continued(prompt, max_new_tokens, Sampler(generator.max_new_tokens, **settings))

    inputs = [
        *strings("prompt", batch_size=batch_size),
        tf.TensorSpec((batch_size,), tf.int32, "max_new_tokens"),
    ]
    return {
        "serving_generate": Signature(generate, inputs),
        "serving_sample": Signature(sample, [*inputs, *_sampling_inputs(batch_size)]),
    }


def reply_signature(
    reader: CausalReader,
    memory_strings: MemoryStrings,
    generator: Generator,
    batch_size: int | None,
) -> Signature:
    """Returns the signature that continues a conversation, for a model with memory.

    Args:
        reader: A `CausalReader` of the model.
        memory_strings: The `MemoryStrings` of the model.
        generator: A `Generator`.
        batch_size: As in `export`.
    """
    model, tokenizer = reader.model, reader.model.tokenizer

    def reply(prompt, memory, max_new_tokens, **settings):
        prompts = _without_end_token(tokenizer, tokenizer(prompt))
        *_, read = reader.score(**padded_right(prompts), memory=memory_strings.decode(memory))
        decoder = CausalDecoder(model, is_compiled=False)
        state = decoder.from_memory(read.content, read.mask)
        start = decoder.read_tokens(tf.maximum(read.last_token, 0), state)
        # Without a token there is nothing to continue.
        counts = tf.where(read.last_token >= 0, max_new_tokens, 0)
        sampler = Sampler(generator.max_new_tokens, **settings)
        outputs = generator.continue_state(decoder, *start, counts, sampler)
        new = new_tokens(outputs)
        *_, read = reader.score(**padded_right(new), memory=read)
        outputs |= {"text": tokenizer.detokenize(new), "memory_bytes": memory_strings.encode(read)}
        return with_batch_size(outputs, batch_size)

    inputs = [
        *strings("prompt", "memory", batch_size=batch_size),
        tf.TensorSpec((batch_size,), tf.int32, "max_new_tokens"),
    ]
    return Signature(reply, [*inputs, *_sampling_inputs(batch_size)])


def _sampling_inputs(batch_size):
    dtypes = {"temperature": tf.float32, "top_k": tf.int32, "top_p": tf.float32, "seed": tf.int64}
    return [tf.TensorSpec((batch_size,), dtype, name) for name, dtype in dtypes.items()]


def _without_end_token(tokenizer, rows):
    """Leaves out the end token that the tokenizer adds to each text: prompts are continued."""
    return rows if getattr(tokenizer, "end_token", None) is None else rows[:, :-1]
