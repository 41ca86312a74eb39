"""Blocks of query rows give what all rows at once give."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet import layers
from keras_xlnet.layers.attention_in_blocks import relative_attention_in_blocks
from keras_xlnet.layers.relative_attention import relative_attention

N, B, T, M, D = 2, 4, 7, 3, 5
S = M + T


def tensors(num_positions, num_directions):
    rng = np.random.default_rng(3)
    shapes = {
        "query": (N, B, T, D),
        "key": (N, B, S, D),
        "value": (N, B, S, D),
        "position_key": (N, num_directions, num_positions, D),
        "content_bias": (N, 1, 1, D),
        "position_bias": (N, 1, 1, D),
        "segment_bias": (N, 1, 1, D),
        "segment_embeddings": (2, N, D),
    }
    return [tf.constant(rng.normal(size=s), "float32") for s in shapes.values()]


def masks(attention_type):
    rng = np.random.default_rng(4)
    allowed = rng.random((B, T, S)) < 0.7
    if attention_type == "uni":
        allowed &= np.arange(S) - M <= np.arange(T)[:, None]
    return {"segment_matrix": rng.random((B, T, S)) < 0.5, "attention_mask": allowed}


@pytest.mark.parametrize("attention_type", ["bi", "uni"])
@pytest.mark.parametrize("num_directions", [1, 2])
@pytest.mark.parametrize("block_size", [1, 3, 7])
def test_values_and_gradients(attention_type, num_directions, block_size):
    inputs = tensors(S + T if attention_type == "bi" else S + 1, num_directions)
    kwargs = masks(attention_type)
    # What a "uni" table has no keys for is masked; rows that see nothing would show it.
    kwargs["attention_mask"][..., 0] = True

    def compute(attend):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            mixed = attend(*inputs, **kwargs)
            total = tf.reduce_sum(tf.sin(mixed))
        return mixed, tape.gradient(total, inputs)

    def in_blocks(*args, **kwargs):
        return relative_attention_in_blocks(block_size, *args, next_seed=lambda: None, **kwargs)

    keras.tree.map_structure(
        lambda a, e: np.testing.assert_allclose(a, e, atol=2e-6),
        compute(in_blocks),
        compute(relative_attention),
    )


def test_a_layer_in_blocks_equals_itself_without():
    # Whoever wants the scores gets them computed for all rows at once.
    rng = np.random.default_rng(8)
    content = rng.normal(size=(2, 300, 8)).astype("float32")
    positions = layers.RelativePositionEncoding(8)(content)
    attention = layers.RelativeMultiHeadAttention(2, 4, seed=1)
    actual = attention(content, content, positions)
    whole, _ = attention(content, content, positions, return_attention_scores=True)
    np.testing.assert_allclose(actual, whole, atol=2e-6)


def test_each_block_has_a_mask_of_its_own():
    rng = np.random.default_rng(8)
    content = np.repeat(rng.normal(size=(1, 1, 8)), 384, axis=1).astype("float32")
    positions = np.zeros((1, 768, 8), "float32")
    attention = layers.RelativeMultiHeadAttention(2, 4, dropout=0.5, seed=1)
    # All rows attend alike: only dropout tells them apart.
    mixed = np.asarray(attention(content, content, positions, training=True))[0]
    first, second, third = np.split(mixed, 3)
    assert np.abs(first - second).max() > 1e-4
    assert np.abs(second - third).max() > 1e-4
