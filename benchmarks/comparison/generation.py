"""Greedy continuation with a permutation language model, as transformers' `generate` does it.

Each pass rereads the last two tokens and a dummy that no token sees, and predicts the dummy's
position; all earlier tokens are memory. The memory has a fixed length, filled from the right, so
one compiled step serves every token.
"""

import tensorflow as tf

# Tokens that a pass rereads and that its memory therefore lacks.
OVERLAP = 2


def greedy_generator(model, num_tokens, jit=None):
    """A function from a prompt `(batch, length)` int32 to `num_tokens` more, as NumPy.

    Args:
        model: An `XLNetPermutationLM`, not stateful, whose backbone has a `memory_length` of at
            least the tokens of the prompt and the new ones.
        num_tokens: Int, how many tokens to add.
        jit: Bool or None: `jit_compile` of the two functions.
    """
    backbone = model.backbone

    @tf.function(jit_compile=jit)
    def step(token_ids, memory, memory_mask):
        outputs = model(
            {**_with_dummy(token_ids), "memory": memory, "memory_mask": memory_mask}, training=False
        )
        next_ids = tf.argmax(outputs["logits"][:, 0], -1, output_type=tf.int32)[:, None]
        # The rows of the overlap and the dummy are recomputed.
        memory = _shifted(outputs["memory"], 2)
        memory_mask = _shifted(outputs["memory_mask"], 1)
        return tf.concat([token_ids[:, -1:], next_ids], 1), memory, memory_mask

    def generate(prompt):
        batch = prompt.shape[0]
        shape = (batch, backbone.num_layers, backbone.memory_length, backbone.hidden_dim)
        memory = tf.zeros(shape, backbone.compute_dtype)
        memory_mask = tf.zeros((batch, backbone.memory_length), "bool")
        ids, new = prompt, []
        for _ in range(num_tokens):
            ids, memory, memory_mask = step(ids, memory, memory_mask)
            new.append(ids[:, -1:])
        return tf.concat(new, 1).numpy()

    return generate


def _with_dummy(token_ids):
    batch, length = token_ids.shape[0], token_ids.shape[1] + 1
    seen = tf.concat([tf.ones((length, length - 1), "bool"), tf.zeros((length, 1), "bool")], 1)
    return {
        "token_ids": tf.concat([token_ids, tf.zeros((batch, 1), "int32")], 1),
        "permutation_mask": tf.tile(seen[None], (batch, 1, 1)),
        "target_positions": tf.fill((batch, 1), length - 1),
    }


def _shifted(memory, axis):
    """Returns memory without the last `OVERLAP` rows of `axis`, and as many empty ones in front."""
    paddings = [[0, 0]] * len(memory.shape)
    paddings[axis] = [OVERLAP, 0]
    kept = tf.split(memory, [memory.shape[axis] - OVERLAP, OVERLAP], axis)[0]
    return tf.pad(kept, paddings)
