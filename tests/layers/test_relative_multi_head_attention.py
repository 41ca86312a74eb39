import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet import layers
from keras_xlnet.ops import relative_multi_head_attention
from tests.layers.attention_twin import relative_attention, sinusoid

HIDDEN = 6


def make_case(seed, batch_size, content_length, memory_length, **position_arguments):
    """A layer with weights large enough to matter, and inputs with distinct rows."""
    rng = np.random.default_rng(seed)
    content = rng.normal(size=(batch_size, content_length, HIDDEN)).astype("float32")
    memory = rng.normal(size=(batch_size, memory_length, HIDDEN)).astype("float32")
    context = np.concatenate([memory, content], axis=1)
    encoding = layers.RelativePositionEncoding(HIDDEN, **position_arguments)(content, memory)
    shape = (batch_size, content_length, memory_length + content_length)
    segments, mask = rng.random(shape) < 0.5, rng.random(shape) < 0.7
    layer = layers.RelativeMultiHeadAttention(3, 4, kernel_initializer="glorot_normal")
    layer.build(content.shape, context.shape, encoding.shape, shape)
    for weight in layer.weights:
        weight.assign(rng.normal(scale=0.5, size=weight.shape))
    return layer, content, context, encoding, segments, mask


def weights_of(layer):
    weights = {
        name: getattr(layer, f"{name}_dense").kernel
        for name in ("query", "key", "value", "position", "output")
    }
    for name in ("content_bias", "position_bias", "segment_bias", "segment_embeddings"):
        weights[name] = getattr(layer, name)
    return weights


@settings(max_examples=25)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(0, 4),
    st.sampled_from([None, 1, 3]),
    st.booleans(),
)
def test_equals_the_slow_twin(seed, half_batch, length, memory_length, clamp_length, backward):
    batch_size = 2 * half_batch if backward else half_batch
    layer, content, context, encoding, segments, mask = make_case(
        seed,
        batch_size,
        length,
        memory_length,
        clamp_length=clamp_length,
        bidirectional_data=backward,
    )
    actual = np.asarray(layer(content, context, encoding, segments, mask))
    for b in range(batch_size):
        vector = sinusoid(HIDDEN, clamp_length, backward=backward and b >= batch_size // 2)
        expected = relative_attention(
            weights_of(layer),
            content[b],
            context[b],
            vector,
            range(length),
            memory_length,
            segments[b],
            mask[b],
        )
        np.testing.assert_allclose(actual[b], expected, atol=2e-5)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(0, 4), st.integers(1, 6))
def test_target_positions_equal_the_slow_twin(seed, length, memory_length, num_predictions):
    layer, _, context, encoding, _, _ = make_case(seed, 2, length, memory_length)
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, length, (2, num_predictions))
    query = rng.normal(size=(2, num_predictions, HIDDEN)).astype("float32")
    mask = rng.random((2, num_predictions, memory_length + length)) < 0.6
    actual = layer(query, context, encoding, attention_mask=mask, target_positions=targets)
    for b in range(2):
        expected = relative_attention(
            weights_of(layer),
            query[b],
            context[b],
            sinusoid(HIDDEN),
            targets[b],
            memory_length,
            mask=mask[b],
        )
        np.testing.assert_allclose(actual[b], expected, atol=2e-5)


def test_attention_scores_are_probabilities_over_what_may_be_seen():
    layer, content, context, encoding, segments, mask = make_case(1, 2, 4, 3)
    mask[0, 2] = False
    output, scores = layer(content, context, encoding, segments, mask, return_attention_scores=True)
    scores = np.asarray(scores)
    assert scores.shape == (2, 3, 4, 7)
    assert layer.compute_output_shape(
        content.shape, context.shape, encoding.shape, return_attention_scores=True
    ) == (tuple(output.shape), scores.shape)
    np.testing.assert_allclose(scores.sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(scores[0, :, 2], 1 / 7, atol=1e-7)  # blind: all alike
    blind = np.zeros_like(mask)
    blind[0, 2] = True
    hidden = ~mask & ~blind
    assert scores[np.broadcast_to(hidden[:, None], scores.shape)].max() == 0


def test_position_keys_are_never_tiled_over_the_batch():
    layer, content, context, encoding, _, _ = make_case(1, 8, 4, 3)
    _, _, position_key = layer.project_context(context, encoding)
    assert position_key.shape == (3, 1, 11, 4)


@pytest.mark.parametrize("num_heads", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_no_product_repeats_a_factor_over_the_batch(num_heads, bidirectional):
    layer = layers.RelativeMultiHeadAttention(num_heads, 4)
    encode = layers.RelativePositionEncoding(HIDDEN, bidirectional_data=bidirectional)

    @tf.function
    def call(content, segment_matrix):
        return layer(content, content, encode(content), segment_matrix=segment_matrix)

    graph = call.get_concrete_function(
        tf.TensorSpec((4, 6, HIDDEN)), tf.TensorSpec((4, 6, 6), tf.bool)
    ).graph
    products = [
        op
        for op in graph.get_operations()
        if op.type.startswith("BatchMatMul") and op.inputs[1].shape.rank > 2
    ]
    assert len(products) >= 4
    for op in products:
        batches = [x.shape[:-2].as_list() for x in op.inputs]
        assert batches[0] == batches[1], op.name


def test_without_query_rows_nothing_is_multiplied(monkeypatch):
    rows = np.ones((3, 2, 5, 4), "float32")
    query, position_key, bias = rows[:, :, :0], rows[:, :1], rows[:, 0, 0]
    monkeypatch.delattr(keras.ops, "matmul")
    output, scores = relative_multi_head_attention(
        query, rows, rows, position_key, bias, bias, return_attention_scores=True
    )
    assert (output.shape, scores.shape) == ((3, 2, 0, 4), (3, 2, 0, 5))


def test_k_query_rows_cost_k_rows():
    layer, _, context, encoding, _, _ = make_case(1, 2, 64, 0)

    def flops(num_queries):
        @tf.function
        def call(query, targets):
            return layer(query, context, encoding, target_positions=targets)

        graph = call.get_concrete_function(
            tf.TensorSpec((2, num_queries, HIDDEN)), tf.TensorSpec((2, num_queries), tf.int32)
        ).graph
        sizes = [t.shape.num_elements() for op in graph.get_operations() for t in op.outputs]
        return max(size or 0 for size in sizes)

    # The largest tensor is (heads, batch, queries, positions): it shrinks with the queries.
    assert flops(64) == 2 * 3 * 64 * 128
    assert flops(8) == 2 * 3 * 8 * 128


def test_odd_batch_with_bidirectional_data_is_refused():
    with pytest.raises(ValueError, match="batch size must be even. Received: batch size 3"):
        make_case(1, 3, 4, 0, bidirectional_data=True)
    layer, content, context, encoding, _, _ = make_case(1, 2, 4, 0, bidirectional_data=True)

    @tf.function(input_signature=[tf.TensorSpec((None, 4, HIDDEN))])
    def unknown_batch(content):
        return layer(content, content, encoding)

    assert unknown_batch(np.repeat(content, 2, 0)).shape == (4, 4, HIDDEN)
    with pytest.raises(tf.errors.InvalidArgumentError, match="needs_an_even_batch_size"):
        unknown_batch(np.concatenate([content, content[:1]]))


def test_segments_in_a_later_call_only_are_refused():
    layer = layers.RelativeMultiHeadAttention(2, 3)
    content = np.zeros((1, 2, HIDDEN), "float32")
    encoding = layers.RelativePositionEncoding(HIDDEN)(content)
    layer(content, content, encoding)
    assert len(layer.weights) == 7  # five kernels, two biases: nothing for segments
    with pytest.raises(ValueError, match="built without one"):
        layer(content, content, encoding, segment_matrix=np.zeros((1, 2, 2), bool))


def test_shared_biases_leave_no_own_ones():
    layer = layers.RelativeMultiHeadAttention(2, 3)
    content = np.ones((1, 2, HIDDEN), "float32")
    encoding = layers.RelativePositionEncoding(HIDDEN)(content)
    biases = layers.AttentionBiases(2, 3)(encoding)
    layer(content, content, encoding, attention_biases=biases)
    assert {w.name for w in layer.weights} == {"kernel"}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_heads": 0, "head_dim": 4}, "`num_heads` must be a positive integer. Received"),
        ({"num_heads": 2, "head_dim": 2.5}, "`head_dim` must be a positive integer. Received"),
        ({"num_heads": 2, "head_dim": 4, "dropout": 1.0}, "`dropout` must be a dropout rate"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        layers.RelativeMultiHeadAttention(**arguments)
