"""Unrolled blocks and scanned chunks of query rows compute what all rows at once compute."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet import layers
from keras_xlnet.ops import (
    relative_multi_head_attention,
    scanned_relative_attention,
    unrolled_relative_attention,
)

N, B, T, M, D = 2, 4, 7, 3, 5
S = M + T


def tensors(num_positions, num_directions):
    rng = np.random.default_rng(3)
    shapes = {
        "query": (N, B, T, D),
        "key": (N, B, S, D),
        "value": (N, B, S, D),
        "position_key": (N, num_directions, num_positions, D),
        "content_bias": (N, D),
        "position_bias": (N, D),
        "segment_bias": (N, D),
        "segment_embeddings": (2, N, D),
    }
    return {name: tf.constant(rng.normal(size=s), "float32") for name, s in shapes.items()}


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
    # A "uni" table has no rows for masked distances. A row that attends to nothing would use them.
    kwargs["attention_mask"][..., 0] = True

    def compute(attend):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            attended = attend(**inputs, **kwargs)
            total = tf.reduce_sum(tf.sin(attended))
        return attended, tape.gradient(total, inputs)

    expected = compute(relative_multi_head_attention)
    unrolled = functools.partial(
        unrolled_relative_attention, block_size=block_size, next_seed=lambda: None
    )
    scanned = functools.partial(scanned_relative_attention, chunk_size=block_size)
    for attend in (unrolled, scanned, functools.partial(scanned, recompute=True)):
        keras.tree.map_structure(
            lambda a, e: np.testing.assert_allclose(a, e, atol=2e-6), compute(attend), expected
        )


def test_a_layer_that_unrolls_equals_itself_without():
    # With scores, all rows are computed at once.
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
    # All rows attend equally: only dropout makes them differ.
    mixed = np.asarray(attention(content, content, positions, training=True))[0]
    first, second, third = np.split(mixed, 3)
    assert np.abs(first - second).max() > 1e-4
    assert np.abs(second - third).max() > 1e-4
