"""Both streams see no more than the masks allow; tests/models compares them with the original."""

import collections
import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet import layers


@pytest.fixture(scope="module")
def parts():
    """A block, and inputs with random distinct rows: content 7 rows, memory 3."""
    rng = np.random.default_rng(3)
    block = layers.TwoStreamBlock(2, 5, 24, kernel_initializer="glorot_normal")
    inputs = {
        "content_stream": rng.normal(size=(4, 7, 16)).astype("float32"),
        "memory": rng.normal(size=(4, 3, 16)).astype("float32"),
        "segment_matrix": rng.random((4, 7, 10)) < 0.4,
        "content_attention_mask": rng.random((4, 7, 10)) < 0.7,
        "query_attention_mask": rng.random((4, 7, 10)) < 0.6,
    }
    query = rng.normal(size=(4, 7, 16)).astype("float32")
    encoding = layers.RelativePositionEncoding(16)
    inputs["position_encoding"] = encoding(inputs["content_stream"], inputs["memory"])
    block(**inputs)
    return block, inputs, query


@pytest.mark.parametrize("attention_type", ["bi", "uni"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_predicted_rows_are_the_rows_of_the_full_stream(parts, attention_type, bidirectional):
    block, inputs, query = parts
    positions = layers.RelativePositionEncoding(
        16, attention_type=attention_type, bidirectional_data=bidirectional
    )(inputs["content_stream"], inputs["memory"])
    inputs = {**inputs, "position_encoding": positions}
    if attention_type == "uni":
        causal, _ = layers.AttentionMask("uni")(inputs["content_stream"], memory=inputs["memory"])
        inputs["content_attention_mask"] = causal
        inputs["query_attention_mask"] = np.asarray(causal) & inputs["query_attention_mask"]
        inputs["query_attention_mask"][..., 0] = True  # a blind row sees what "uni" has no key for
    content, full = block(query_stream=query, **inputs)
    target_positions = np.array([[6, 0, 3], [1, 2, 5], [4, 4, 0], [2, 6, 1]])
    rows = np.arange(4)[:, None], target_positions
    content_k, some = block(query_stream=query[rows], target_positions=target_positions, **inputs)
    np.testing.assert_allclose(some, np.asarray(full)[rows], atol=2e-6)
    np.testing.assert_array_equal(content_k, content)
    picked = {**inputs, "query_attention_mask": np.asarray(inputs["query_attention_mask"])[rows]}
    _, same = block(query_stream=query[rows], target_positions=target_positions, **picked)
    np.testing.assert_array_equal(same, some)


def test_the_query_stream_alone_is_the_same(parts):
    block, inputs, query = parts
    _, expected = block(query_stream=query, **inputs)
    alone = block(query_stream=query, return_content_stream=False, **inputs)
    np.testing.assert_array_equal(alone, expected)
    with pytest.raises(ValueError, match="needs a `query_stream`"):
        block(return_content_stream=False, **inputs)


def test_query_rows_do_not_see_each_other(parts):
    block, inputs, query = parts
    _, before = block(query_stream=query, **inputs)
    changed = query.copy()
    changed[:, 2] += 1.0
    content, after = block(query_stream=changed, **inputs)
    untouched = [i for i in range(7) if i != 2]
    np.testing.assert_array_equal(np.asarray(before)[:, untouched], np.asarray(after)[:, untouched])
    assert np.abs(np.asarray(before)[:, 2] - np.asarray(after)[:, 2]).min() > 0
    np.testing.assert_array_equal(content, block(**inputs))


@pytest.mark.parametrize("stream", ["content", "query"])
def test_masked_rows_have_no_effect(parts, stream):
    block, inputs, query = parts
    inputs = dict(inputs)
    for name in ("content_attention_mask", "query_attention_mask"):
        inputs[name] = inputs[name].copy()
        inputs[name][:, :, 3 + 4] = False  # content row 4 comes after 3 rows of memory
    outputs = block(query_stream=query, **inputs)
    inputs["content_stream"] = inputs["content_stream"].copy()
    inputs["content_stream"][:, 4] += 5.0
    changed = block(query_stream=query, **inputs)
    k = ("content", "query").index(stream)
    same = np.abs(np.asarray(outputs[k]) - np.asarray(changed[k])).max(axis=(0, 2)) == 0
    expected = [i != 4 for i in range(7)] if stream == "content" else [True] * 7
    assert same.tolist() == expected


def test_dropout_acts_in_training_only_and_follows_its_seed(parts):
    _, inputs, _ = parts

    def outputs(seed):
        block = layers.TwoStreamBlock(
            2, 5, 24, dropout=0.3, attention_dropout=0.3, kernel_initializer="ones", seed=seed
        )
        return [np.asarray(block(**inputs, training=training)) for training in (True, False)]

    (first, calm), (second, calm_too), (other, _) = outputs(5), outputs(5), outputs(6)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(calm, calm_too)
    assert np.abs(first - other).max() > 1e-3
    assert np.abs(first - calm).max() > 1e-3


def test_dropout_sites_of_one_block_are_independent():
    block = layers.TwoStreamBlock(2, 4, 8, dropout=0.1, attention_dropout=0.1, seed=1)
    dropouts = [
        block.attention.dropout_layer,
        block.attention_add_and_norm.dropout,
        block.feed_forward.intermediate_dropout,
        block.feed_forward_add_and_norm.dropout,
    ]
    assert len({layer.seed for layer in dropouts}) == 4


@pytest.mark.parametrize("compiled", [False, True])
def test_the_calls_of_its_layers_are_really_called(parts, compiled, monkeypatch):
    # In a TensorFlow graph, training computes what can be fused in compiled functions.
    _, inputs, query = parts
    # No other test has this epsilon: blocks of equal configuration share compiled functions.
    block = layers.TwoStreamBlock(
        2, 5, 24, dropout=0.1, attention_dropout=0.1, seed=3, layer_norm_epsilon=1.5e-12
    )
    block(query_stream=query, **inputs)
    called = collections.Counter()
    for cls in (layers.FeedForward, keras.layers.LayerNormalization, layers.AddAndNorm):

        def counted(self, *args, call=cls.call, name=cls.__name__, **kwargs):
            called[name] += 1
            return call(self, *args, **kwargs)

        monkeypatch.setattr(cls, "call", functools.wraps(cls.call)(counted))

    def run():
        return block(query_stream=query, training=True, **inputs)

    (tf.function(run) if compiled else run)()
    assert called["FeedForward"] == 2
    assert called["AddAndNorm"] == 4
    # Layers of equal configuration share a compiled function.
    assert called["LayerNormalization"] >= (1 if compiled else 4)


@pytest.mark.parametrize("wrong", [-1, -5, 7, 100])
def test_target_positions_outside_read_no_other_row(parts, wrong):
    block, inputs, query = parts
    positions = np.array([[6, 0], [1, wrong], [4, 0], [2, 6]])
    before = block(query_stream=query[:, :2], target_positions=positions, **inputs)[1][1]
    for key in ("query_attention_mask", "segment_matrix"):
        changed = ~inputs[key]
        changed[1] = inputs[key][1]
        inputs = {**inputs, key: changed}
    after = block(query_stream=query[:, :2], target_positions=positions, **inputs)[1][1]
    np.testing.assert_array_equal(after, before)
