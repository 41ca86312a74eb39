"""Layers without `position_encoding` have the positions that `RelativePositionEncoding` gives."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_xlnet import layers
from tests.backends.compute import fill

RNG = np.random.default_rng(3)
CONTENT = RNG.normal(size=(2, 5, 8)).astype("float32")
MEMORY = RNG.normal(size=(2, 3, 8)).astype("float32")
QUERY = RNG.normal(size=(2, 2, 8)).astype("float32")
TARGETS = np.array([[4, 0], [1, 3]])
CAUSAL = np.tri(5, 8, 3, dtype=bool)[None]


def positions(memory=None):
    return layers.RelativePositionEncoding(8)(CONTENT, memory)


def joined(memory):
    return np.concatenate([memory, CONTENT], axis=1)


CASES = {
    "block": (layers.TwoStreamBlock(2, 4, 16), {}, positions()),
    "block-memory": (layers.TwoStreamBlock(2, 4, 16), {"memory": MEMORY}, positions(MEMORY)),
    "block-predictions": (
        layers.TwoStreamBlock(2, 4, 16),
        {"query_stream": QUERY, "target_positions": TARGETS, "memory": MEMORY},
        positions(MEMORY),
    ),
    "transformer-xl": (
        layers.TransformerXLBlock(2, 4, 16),
        {"memory": MEMORY, "attention_mask": CAUSAL},
        positions(MEMORY),
    ),
    "attention-memory": (
        layers.RelativeMultiHeadAttention(2, 4),
        {"context": joined(MEMORY)},
        positions(MEMORY),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_those_of_the_table(name):
    layer, arguments, table = CASES[name]
    layer(CONTENT, **arguments)  # Builds it.
    fill(layer)

    def outputs(**given):
        found = keras.tree.flatten(layer(CONTENT, **arguments, **given))
        return [ops.convert_to_numpy(output) for output in found]

    found, expected = outputs(), outputs(position_encoding=table)
    assert len(found) == (2 if "query_stream" in arguments else 1)
    for one, other in zip(found, expected, strict=True):
        assert np.ptp(other) > 0.1
        np.testing.assert_allclose(one, other, atol=1e-6)
    wrong = outputs(position_encoding=ops.flip(table, axis=1))
    assert np.abs(found[0] - wrong[0]).max() > 1e-3


def test_causal_positions_are_the_same():
    layer = layers.TransformerXLBlock(2, 4, 16)
    arguments = {"memory": MEMORY, "attention_mask": CAUSAL}
    table = layers.RelativePositionEncoding(8, "uni")(CONTENT, MEMORY)
    layer(CONTENT, **arguments)
    fill(layer)
    expected = layer(CONTENT, **arguments, position_encoding=table)
    np.testing.assert_allclose(layer(CONTENT, **arguments), expected, atol=1e-6)


def test_a_query_is_its_own_context():
    layer = layers.RelativeMultiHeadAttention(2, 4)
    mask = np.array([[True] * 5, [False, False, True, True, True]])
    layer(CONTENT)
    fill(layer)
    expected = layer(CONTENT, CONTENT, positions(), context_mask=mask)
    np.testing.assert_allclose(layer(CONTENT, query_mask=mask), expected, atol=1e-6)
    _, scores = layer(CONTENT, return_attention_scores=True)
    assert scores.shape == (2, 2, 5, 5)


def test_predictions_are_rows_of_the_context():
    layer = layers.RelativeMultiHeadAttention(2, 4)
    layer(CONTENT)
    fill(layer)
    expected = layer(QUERY, CONTENT, positions(), target_positions=TARGETS)
    found = layer(QUERY, CONTENT, target_positions=TARGETS)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    # With memory, the layer cannot know which rows are the content.
    expected = layer(QUERY, joined(MEMORY), positions(MEMORY), target_positions=TARGETS)
    arguments = {"target_positions": TARGETS, "content_length": 5}
    np.testing.assert_allclose(layer(QUERY, joined(MEMORY), **arguments), expected, atol=1e-6)


def test_an_odd_width_has_no_positions():
    with pytest.raises(ValueError, match="`hidden_dim` must be even. Received: hidden_dim=7"):
        layers.TwoStreamBlock(2, 4, 16)(CONTENT[..., :7])
