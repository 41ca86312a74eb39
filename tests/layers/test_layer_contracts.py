"""What every layer promises: config round trip, shapes, graph and XLA, precision, saving."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet import layers

B, L, M, K, H = 4, 6, 3, 2, 8
_rng = np.random.default_rng(11)
CONTENT, QUERY = (_rng.normal(size=(B, n, H)).astype("float32") for n in (L, K))
MEMORY = _rng.normal(size=(B, M, H)).astype("float32")
POSITIONS = _rng.normal(size=(1, 2 * L + M, H)).astype("float32")
SEGMENTS = _rng.random((B, L, L + M)) < 0.5
MASK = _rng.random((B, L, L + M)) < 0.7
PADDING = np.array([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]])
TARGETS = np.array([[0, 5], [2, 2], [1, 4], [5, 3]])
IDS = _rng.integers(0, 3, (B, L)).astype("int32")
TOKENS = _rng.integers(0, 20, (B, L)).astype("int32")
STARTS = np.array([[0, 5], [2, 4], [1, 0], [5, 5]])
PROBABILITIES = np.asarray(keras.ops.softmax(_rng.normal(size=(B, L)))).astype("float32")
# The real tokens of the four texts, in two rows.
PACKING = np.array([[18, 19, 20, 8, 9, 10, 11, 23, -1], [-1, 0, 1, 2, 3, 4, 5, -1, -1]], "int32")
PACKED = _rng.normal(size=(2, 9, H)).astype("float32")

# name: (layer, positional inputs, keyword inputs)
CASES = {
    "positions": (
        lambda: layers.RelativePositionEncoding(H, "uni", 4, bidirectional_data=True),
        {"content": CONTENT, "memory": MEMORY},
    ),
    "biases": (lambda: layers.AttentionBiases(2, 4), {"reference": CONTENT}),
    "attention": (
        lambda: layers.RelativeMultiHeadAttention(2, 3, 0.1, seed=4),
        {
            "query": CONTENT,
            "context": np.concatenate([MEMORY, CONTENT], axis=1),
            "position_encoding": POSITIONS,
            "segment_matrix": SEGMENTS,
            "attention_mask": MASK,
        },
    ),
    "feed_forward": (
        lambda: layers.FeedForward(12, 0.1, activation="relu", seed=4),
        {"inputs": CONTENT},
    ),
    "add_and_norm": (
        lambda: layers.AddAndNorm(0.1, seed=4),
        {"inputs": CONTENT, "change": CONTENT[::-1]},
    ),
    "dropout": (lambda: layers.HashDropout(0.1, seed=4), {"inputs": CONTENT}),
    "one_stream": (
        lambda: layers.TwoStreamBlock(2, 3, 12, dropout=0.1, attention_dropout=0.2, seed=1),
        {
            "content_stream": CONTENT,
            "memory": MEMORY,
            "position_encoding": POSITIONS,
            "segment_matrix": SEGMENTS,
            "content_attention_mask": MASK,
        },
    ),
    "two_streams": (
        lambda: layers.TwoStreamBlock(2, 3, 12, activation="gelu"),
        {
            "content_stream": CONTENT,
            "query_stream": QUERY,
            "memory": MEMORY,
            "position_encoding": POSITIONS,
            "content_attention_mask": MASK,
            "query_attention_mask": MASK,
            "target_positions": TARGETS,
        },
    ),
    **{
        f"transformer_xl_block{'_normalizing_first' if first else ''}": (
            lambda first=first: layers.TransformerXLBlock(
                2, 3, 12, dropout=0.1, attention_dropout=0.2, normalize_first=first, seed=1
            ),
            {
                "content": CONTENT,
                "memory": MEMORY,
                "position_encoding": POSITIONS,
                "attention_mask": MASK,
            },
        )
        for first in (False, True)
    },
    "shared_biases": (
        lambda: layers.AttentionBiases(2, 4, has_segments=False),
        {"reference": CONTENT},
    ),
    "adaptive_embedding": (
        lambda: layers.AdaptiveEmbedding(20, H, cutoffs=(4, 10), div_val=2),
        {"token_ids": TOKENS},
    ),
    "projected_embedding": (
        lambda: layers.AdaptiveEmbedding(20, H, embedding_dim=6),
        {"token_ids": TOKENS},
    ),
    "adaptive_softmax": (
        lambda: layers.AdaptiveSoftmax(20, H, cutoffs=(4, 10), div_val=2),
        {"inputs": CONTENT},
    ),
    "adaptive_softmax_of_targets": (
        lambda: layers.AdaptiveSoftmax(20, H, cutoffs=(4, 10), embedding_dim=6, tail_share=0.5),
        {"inputs": CONTENT, "targets": TOKENS},
    ),
    "memory": (lambda: layers.RecurrentMemory(5, 4), {"content": CONTENT, "memory": MEMORY}),
    "mask": (
        lambda: layers.AttentionMask("uni", same_length=True),
        {"content": CONTENT, "padding_mask": PADDING, "memory": MEMORY},
    ),
    "mask_of_a_length": (
        lambda: layers.AttentionMask("uni", same_length=2),
        {"content": CONTENT, "memory": MEMORY},
    ),
    "segments": (layers.SegmentMatrix, {"segment_ids": IDS, "memory": MEMORY}),
    "pack_texts": (
        layers.PackTexts,
        {"token_ids": TOKENS, "segment_ids": IDS, "padding_mask": PADDING > 0, "packing": PACKING},
    ),
    "unpack_texts": (
        layers.UnpackTexts,
        {"rows": PACKED, "packing": PACKING, "token_ids": TOKENS},
    ),
    "mask_embedding": (lambda: layers.MaskEmbedding(H), {"target_mask": TARGETS}),
    "mask_embedding_in_place": (
        lambda: layers.MaskEmbedding(H),
        {"target_mask": PADDING, "embeddings": CONTENT},
    ),
    "logit_bias": (layers.LogitBias, {"logits": CONTENT}),
    "pair_comparison": (
        lambda: layers.PairComparison(5, dropout=0.1, seed=3),
        {
            "levels": np.stack([CONTENT, CONTENT[::-1], CONTENT**2], axis=2),
            "token_ids": TOKENS,
            "segment_ids": IDS,
            "padding_mask": PADDING,
        },
    ),
    **{
        f"pooling_{mode}": (
            lambda mode=mode: layers.SequencePooling(mode),
            {"sequence": CONTENT, "padding_mask": PADDING},
        )
        for mode in ("last", "first", "mean")
    },
    "pooling_cls": (
        lambda: layers.SequencePooling("cls", cls_token_id=2),
        {"sequence": CONTENT, "padding_mask": PADDING, "token_ids": IDS},
    ),
    "pooling_attention": (
        lambda: layers.SequencePooling("attention", num_heads=2, head_dim=3, dropout=0.1, seed=2),
        {"sequence": CONTENT, "padding_mask": PADDING},
    ),
    "summary": (
        lambda: layers.SequenceSummary(dropout=0.1, seed=3),
        {"sequence": CONTENT, "padding_mask": PADDING},
    ),
    "summary_attention": (
        lambda: layers.SequenceSummary("attention", num_heads=2, head_dim=3, seed=2),
        {"sequence": CONTENT, "padding_mask": PADDING},
    ),
    "answer_start": (layers.AnswerStart, {"sequence": CONTENT, "paragraph_mask": PADDING}),
    "answer_end": (
        layers.AnswerEnd,
        {"sequence": CONTENT, "start_positions": STARTS, "paragraph_mask": PADDING},
    ),
    "answerability": (
        lambda: layers.Answerability(0.1, seed=5),
        {"sequence": CONTENT, "start_probabilities": PROBABILITIES, "cls_index": STARTS[:, 0]},
    ),
}
# Layers whose outputs do not depend on the compute dtype.
EXACT = ("pack_texts", "mask", "mask_of_a_length", "segments", "memory")
every_layer = pytest.mark.parametrize("name", CASES)


def made(name):
    """The layer, built, with weights that matter, and its inputs."""
    make, inputs = CASES[name]
    layer = make()
    layer(**inputs)
    rng = np.random.default_rng(0)
    for weight in layer.trainable_weights:
        weight.assign(rng.normal(scale=0.6, size=weight.shape))
    return layer, inputs


def assert_same(actual, expected, atol=0.0):
    for a, e in zip(tf.nest.flatten(actual), tf.nest.flatten(expected), strict=True):
        a, e = (np.asarray(keras.ops.cast(x, "float32")) for x in (a, e))
        np.testing.assert_allclose(a, e, rtol=0, atol=atol)


@every_layer
def test_a_model_with_a_policy_object_is_saved_and_loaded(name, tmp_path):
    made_layer, inputs = made(name)
    layer = type(made_layer).from_config(
        {**made_layer.get_config(), "dtype": keras.DTypePolicy("float32")}
    )
    symbolic = {
        key: keras.Input(batch_shape=value.shape, dtype=value.dtype, name=key)
        for key, value in inputs.items()
    }
    model = keras.Model(symbolic, layer(**symbolic))
    model.save(tmp_path / "model.keras")
    copy = keras.saving.load_model(tmp_path / "model.keras")
    assert_same(copy(inputs), model(inputs))


@every_layer
def test_config_round_trip(name):
    layer, inputs = made(name)
    config = layer.get_config()
    copy = layer.__class__.from_config(config)
    assert copy.get_config() == config
    copy(**inputs)
    copy.set_weights(layer.get_weights())
    assert_same(copy(**inputs), layer(**inputs))
    registered = keras.saving.get_registered_name(layer.__class__)
    assert registered == f"keras_xlnet>{type(layer).__name__}"


@every_layer
@pytest.mark.parametrize("known", [True, False], ids=["static", "unknown_batch_and_length"])
def test_symbolic_shape_and_dtype(name, known):
    make, inputs = CASES[name]
    symbolic = {
        key: keras.KerasTensor(
            value.shape
            if known
            else [None, None, *value.shape[2:]]
            if key == "levels"
            else [None, *([None] * (value.ndim - 2)), value.shape[-1]]
            if value.dtype == np.float32 and key != "position_encoding"
            else value.shape,
            dtype=value.dtype,
        )
        for key, value in inputs.items()
    }
    layer = make()
    specs = tf.nest.flatten(layer(**symbolic))
    results = tf.nest.flatten(make()(**inputs))
    assert len(specs) == len(results)
    for spec, result in zip(specs, results, strict=True):
        assert spec.dtype == keras.backend.standardize_dtype(result.dtype)
        assert len(spec.shape) == len(result.shape)
        for expected, actual in zip(spec.shape, result.shape, strict=True):
            assert expected == actual or (expected is None and not known)


@every_layer
def test_eager_graph_and_xla_agree(name):
    layer, inputs = made(name)
    expected = layer(**inputs)
    names = list(inputs)

    def call(*values):
        return layer(**dict(zip(names, values, strict=True)))

    values = [tf.convert_to_tensor(v) for v in inputs.values()]
    assert_same(tf.function(call)(*values), expected, atol=2e-6)
    assert_same(tf.function(call, jit_compile=True)(*values), expected, atol=5e-6)


@every_layer
def test_graph_of_unknown_batch_and_length_agrees(name):
    layer, inputs = made(name)
    names = list(inputs)
    signature = [
        tf.TensorSpec([None] * (v.ndim - 1) + [v.shape[-1] if v.dtype == np.float32 else None],
                      tf.as_dtype(v.dtype))
        if n != "position_encoding"
        else tf.TensorSpec([1, None, H])
        for n, v in inputs.items()
    ]  # fmt: skip

    @tf.function(input_signature=signature)
    def call(*values):
        return layer(**dict(zip(names, values, strict=True)))

    assert_same(call(*inputs.values()), layer(**inputs), atol=2e-6)


@every_layer
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_is_close(name, policy):
    layer, inputs = made(name)
    half = layer.__class__.from_config({**layer.get_config(), "dtype": policy})
    outputs = half(**inputs)
    half.set_weights(layer.get_weights())
    outputs = half(**inputs)
    for output in tf.nest.flatten(outputs):
        dtype = keras.backend.standardize_dtype(output.dtype)
        computes = name not in EXACT and not name.startswith(("answer", "adaptive_softmax"))
        assert dtype == half.compute_dtype if computes else dtype in ("bool", "int32", "float32")
    assert_same(outputs, layer(**inputs), atol=0.12 if policy == "mixed_bfloat16" else 0.02)


@every_layer
def test_saved_in_a_functional_model_and_loaded(name, tmp_path):
    layer, inputs = made(name)
    symbolic = {
        key: keras.Input(batch_shape=value.shape, dtype=value.dtype, name=key)
        for key, value in inputs.items()
    }
    model = keras.Model(symbolic, layer(**symbolic))
    model.save(tmp_path / "model.keras")
    copy = keras.saving.load_model(tmp_path / "model.keras")
    assert_same(copy(inputs), model(inputs))
    model.save_weights(tmp_path / "model.weights.h5")
    fresh = keras.Model.from_config(model.get_config())
    fresh.load_weights(tmp_path / "model.weights.h5")
    assert_same(fresh(inputs), model(inputs))


def test_a_subclass_elsewhere_adds_its_own_arguments_to_the_config():
    class Scaled(layers.SequencePooling):
        def __init__(self, scale, **kwargs):
            super().__init__(**kwargs)
            self._scale = scale

        def get_config(self):
            return {**super().get_config(), "scale": self._scale}

    layer = Scaled(3, mode="first")
    config = layer.get_config()
    assert (config["scale"], config["mode"], config["cls_token_id"]) == (3, "first", 3)
    assert Scaled.from_config(config).get_config() == config


def test_position_table_is_exact_under_half_precision():
    content = np.zeros((1, 300, H), "float16")
    exact = layers.RelativePositionEncoding(H)(content.astype("float32"))
    half = layers.RelativePositionEncoding(H, dtype="float16")(content)
    # Rounded once at the end: computed in half precision, sin(299) would be off by far more.
    np.testing.assert_array_equal(half, np.asarray(exact).astype("float16"))


def test_no_gradient_flows_into_memory():
    memory = tf.constant(MEMORY)
    with tf.GradientTape() as tape:
        tape.watch(memory)
        remembered = layers.RecurrentMemory(5)(tf.constant(CONTENT), memory)
    assert tape.gradient(remembered, memory) is None


def test_memory_of_masks_keeps_their_dtype():
    layer = layers.RecurrentMemory(4, 2, dtype="mixed_float16")
    ids = layer(np.array([[2**20 + 1, 5, 6]]), np.array([[1, 2, 3]]))
    np.testing.assert_array_equal(ids, [[2, 3, 2**20 + 1, 5]])
    assert layer(PADDING == 1).dtype == tf.bool


@pytest.mark.parametrize("mode", ["last", "first", "mean", "cls", "attention"])
def test_pooling_does_not_depend_on_the_padding_side(mode):
    layer = layers.SequencePooling(mode, num_heads=2, head_dim=4, cls_token_id=9)
    sequence = CONTENT[:2]
    ids = np.array([[5, 6, 7, 8, 4, 9], [1, 2, 3, 4, 5, 9]])
    expected = layer(sequence, token_ids=ids)
    zeros = np.full((2, 3, H), 7.0, "float32")
    blank = np.full((2, 3), 9)
    for left in (True, False):
        mask = np.ones((2, 6))
        parts = [(zeros, sequence), (np.zeros((2, 3)), mask), (blank, ids)]
        padded, mask, padded_ids = (np.concatenate(p if left else p[::-1], axis=1) for p in parts)
        actual = layer(padded, padding_mask=mask, token_ids=padded_ids)
        np.testing.assert_allclose(actual, expected, atol=2e-6)


def test_pooling_modes():
    sequence = np.arange(12, dtype="float32").reshape(1, 6, 2)
    mask = np.array([[0, 1, 1, 1, 0, 0]])
    for mode, expected in {"last": [6, 7], "first": [2, 3], "mean": [4, 5]}.items():
        np.testing.assert_allclose(layers.SequencePooling(mode)(sequence, mask), [expected])
    cls = layers.SequencePooling("cls", cls_token_id=8)
    with pytest.raises(ValueError, match="needs `token_ids`"):
        cls(sequence)
    np.testing.assert_allclose(cls(sequence, mask, np.array([[8, 1, 8, 2, 8, 8]])), [[4, 5]])
    nothing = np.zeros((1, 6))
    for mode in ("last", "first", "mean"):
        np.testing.assert_array_equal(layers.SequencePooling(mode)(sequence, nothing), [[0, 0]])


def test_nothing_is_attended_to_where_no_answer_may_be():
    log_probs = np.asarray(layers.AnswerStart(dtype="float16")(CONTENT, PADDING))
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-6)
    np.testing.assert_array_equal(log_probs[PADDING == 0], np.float32(-1e30))
    # As in the original, and no NaN, if all is forbidden.
    nowhere = layers.AnswerStart(dtype="float16")(CONTENT, np.zeros_like(PADDING))
    np.testing.assert_allclose(nowhere, np.full((B, L), -np.log(L)), atol=1e-6)


def test_ends_follow_their_start():
    layer = layers.AnswerEnd()
    both = layer(CONTENT, STARTS)
    for i in range(2):
        np.testing.assert_allclose(
            layer(CONTENT, STARTS[:, i : i + 1])[:, 0], both[:, i], atol=1e-6
        )
    assert np.abs(np.asarray(both)[:3, 0] - np.asarray(both)[:3, 1]).max() > 1e-3
    np.testing.assert_array_equal(np.asarray(both)[3, 0], np.asarray(both)[3, 1])


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: layers.SequenceSummary("max"), "`mode` must be one of"),
        (lambda: layers.SequenceSummary(dropout=1.5), "`dropout` must be a dropout rate"),
        (lambda: layers.Answerability(dropout=-1), "`dropout` must be a dropout rate"),
        (lambda: layers.RelativePositionEncoding(7), "`hidden_dim` must be even"),
        (lambda: layers.RelativePositionEncoding(8, "left"), "`attention_type` must be one of"),
        (lambda: layers.RelativePositionEncoding(8, clamp_length=-1), "`clamp_length` must be"),
        (lambda: layers.AttentionMask("bi", same_length=True), "`same_length` needs"),
        (lambda: layers.RecurrentMemory(0), "`memory_length` must be a positive integer"),
        (lambda: layers.RecurrentMemory(4, -2), "`reuse_length` must be a positive integer"),
        (lambda: layers.SequencePooling("max"), "`mode` must be one of"),
        (lambda: layers.SequencePooling("attention"), "`num_heads` must be a positive integer"),
        (lambda: layers.FeedForward("12"), "`intermediate_dim` must be a positive integer"),
        (lambda: layers.FeedForward(8, dropout=-0.1), "`dropout` must be a dropout rate"),
        (lambda: layers.AttentionBiases(2, 0), "`head_dim` must be a positive integer"),
        (
            lambda: layers.TwoStreamBlock(2, 4, 8, attention_dropout=2),
            "`attention_dropout` must be a dropout rate",
        ),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
