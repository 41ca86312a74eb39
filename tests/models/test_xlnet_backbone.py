"""Invariants of the backbone, on random distinct rows."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_xlnet.models import XLNetBackbone

SIZES = {
    "vocabulary_size": 60,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 12,
    "intermediate_dim": 20,
}
ATOL = 2e-6


def make(**kwargs):
    """A small backbone whose weights are large enough to tell right from wrong."""
    keras.utils.set_random_seed(1)
    return XLNetBackbone(**{**SIZES, "kernel_initializer": "glorot_normal", **kwargs})


def sequence(model, **inputs):
    return np.asarray(model(inputs)["sequence_output"])


@pytest.fixture
def batch(rng):
    lengths = [3, 8, 5, 1]
    ids = rng.integers(9, 60, (4, 8))
    segments = np.sort(rng.integers(0, 3, (4, 8)), axis=1)
    mask = np.arange(8)[None] < np.array(lengths)[:, None]
    return {"token_ids": ids, "segment_ids": segments, "padding_mask": mask}


@pytest.mark.parametrize("kwargs", [{}, {"attention_type": "uni"}, {"clamp_length": 2}])
def test_a_row_alone_equals_the_row_in_a_batch(batch, kwargs):
    model = make(**kwargs)
    together = sequence(model, **batch)
    for i in range(4):
        alone = sequence(model, **{k: v[i : i + 1] for k, v in batch.items()})
        np.testing.assert_allclose(alone[0], together[i], atol=ATOL)


@pytest.mark.parametrize("attention_type", ["bi", "uni"])
def test_padding_on_either_side_changes_nothing(batch, attention_type):
    model = make(attention_type=attention_type)
    for i, length in enumerate(batch["padding_mask"].sum(1)):
        real = {k: v[i : i + 1, :length] for k, v in batch.items()}
        bare = sequence(model, **{k: v for k, v in real.items() if k != "padding_mask"})
        for before, after in ((4, 0), (0, 4), (3, 2)):
            padded = {
                k: np.pad(v, ((0, 0), (before, after)), constant_values=fill)
                for (k, v), fill in zip(real.items(), (0, 4, False), strict=True)
            }
            output = sequence(model, **padded)[:, before : before + length]
            np.testing.assert_allclose(output, bare, atol=ATOL)


def test_one_causal_segment_equals_two_halves_with_memory(rng):
    ids = rng.integers(9, 60, (3, 10))
    segments = np.zeros((3, 10), int)
    whole = sequence(make(attention_type="uni"), token_ids=ids, segment_ids=segments)
    model = make(attention_type="uni", memory_length=10)
    memory = {}
    for part in (slice(0, 3), slice(3, 4), slice(4, 10)):
        outputs = model({"token_ids": ids[:, part], "segment_ids": segments[:, part], **memory})
        np.testing.assert_allclose(outputs["sequence_output"], whole[:, part], atol=ATOL)
        memory = {key: outputs[key] for key in ("memory", "memory_mask")}
    assert memory["memory"].shape == (3, 2, 10, 12)


def test_memory_mask_hides_padding_and_unused_slots(batch, rng):
    model = make(attention_type="uni", memory_length=8)
    next_ids = rng.integers(9, 60, (4, 5))
    first = model(batch)
    hidden = {key: first[key] for key in ("memory", "memory_mask")}
    np.testing.assert_array_equal(hidden["memory_mask"], batch["padding_mask"])
    masked = sequence(model, token_ids=next_ids, **hidden)
    # Right padding hidden in memory shifts distances, so compare through values: what stands in
    # hidden slots must not matter, what stands in the others must.
    noise = rng.normal(size=(4, 2, 8, 12)).astype("float32")
    slots = np.asarray(hidden["memory_mask"])[:, None, :, None]
    memory = np.asarray(hidden["memory"])
    same = sequence(
        model,
        token_ids=next_ids,
        memory=np.where(slots, memory, noise),
        memory_mask=hidden["memory_mask"],
    )
    np.testing.assert_allclose(same, masked, atol=1e-6)
    other = sequence(
        model,
        token_ids=next_ids,
        memory=np.where(slots, noise, memory),
        memory_mask=hidden["memory_mask"],
    )
    assert np.abs(other - masked).max() > 1e-2
    everything = sequence(
        model, token_ids=next_ids, memory=memory, memory_mask=np.ones((4, 8), bool)
    )
    np.testing.assert_allclose(
        sequence(model, token_ids=next_ids, memory=memory), everything, atol=1e-6
    )


def test_empty_memory_is_no_memory_but_zero_rows_are_something(batch):
    model = make(memory_length=4)
    plain = sequence(make(), **batch)
    np.testing.assert_allclose(sequence(model, **batch), plain, atol=ATOL)
    empty = np.zeros((4, 2, 0, 12), "float32")
    np.testing.assert_allclose(sequence(model, memory=empty, **batch), plain, atol=ATOL)
    zeros = np.zeros((4, 2, 4, 12), "float32")
    assert np.abs(sequence(model, memory=zeros, **batch) - plain).max() > 1e-3


def test_segment_ids_of_memory_on_request(batch, rng):
    memory = rng.normal(size=(4, 2, 3, 12)).astype("float32")
    plain = make(memory_length=8)
    carrying = make(memory_length=8, remember_segment_ids=True)
    assert "memory_segment_ids" not in plain.input
    zero = sequence(carrying, memory=memory, memory_segment_ids=np.zeros((4, 3), "int32"), **batch)
    np.testing.assert_allclose(sequence(plain, memory=memory, **batch), zero, atol=ATOL)
    ones = sequence(carrying, memory=memory, memory_segment_ids=np.ones((4, 3), "int32"), **batch)
    assert np.abs(ones - zero).max() > 1e-3
    outputs = carrying({**batch, "memory": memory, "memory_segment_ids": np.full((4, 3), 7)})
    expected = np.concatenate([np.full((4, 3), 7), batch["segment_ids"]], axis=1)[:, -8:]
    np.testing.assert_array_equal(outputs["memory_segment_ids"], expected)


def test_same_length_sees_as_much_in_every_row(rng):
    model = make(attention_type="uni", same_length=True, memory_length=4, num_layers=1)
    ids = rng.integers(9, 60, (1, 4))
    memory = rng.normal(size=(1, 1, 4, 12)).astype("float32")
    before = sequence(model, token_ids=ids, memory=memory)
    for slot in range(4):
        changed = memory.copy()
        changed[:, :, slot] += 3.0
        difference = np.abs(sequence(model, token_ids=ids, memory=changed) - before).max(
            axis=(0, 2)
        )
        assert (difference > 0).tolist() == [i <= slot for i in range(4)]


def test_tied_biases_equal_untied_ones_of_the_same_values(batch):
    tied, untied = make(tie_attention_biases=True), make()
    shared = tied.attention_biases
    for ours, other in zip(tied.blocks, untied.blocks, strict=True):
        other.attention.content_bias.assign(shared.content_bias)
        other.attention.position_bias.assign(shared.position_bias)
        other.attention.segment_bias.assign(shared.segment_bias)
        other.attention.segment_embeddings.assign(ours.attention.segment_embeddings)
        for part in ("query", "key", "value", "position", "output"):
            kernel = getattr(ours.attention, f"{part}_dense").kernel
            getattr(other.attention, f"{part}_dense").kernel.assign(kernel)
        for part in ("feed_forward", "attention_add_and_norm", "feed_forward_add_and_norm"):
            getattr(other, part).set_weights(getattr(ours, part).get_weights())
    untied.token_embedding.set_weights(tied.token_embedding.get_weights())
    np.testing.assert_allclose(sequence(untied, **batch), sequence(tied, **batch), atol=ATOL)
    assert len(untied.weights) == len(tied.weights) + 3 * 2 - 3


@pytest.mark.parametrize("attention_type", ["bi", "uni"])
def test_a_segment_of_length_0_keeps_the_memory(attention_type, rng):
    model = make(memory_length=4, attention_type=attention_type)
    first = model({"token_ids": rng.integers(9, 60, (2, 3))})
    inputs = {key: first[key] for key in ("memory", "memory_mask")}
    second = model({"token_ids": np.zeros((2, 0), "int32"), **inputs})
    assert second["sequence_output"].shape == (2, 0, 12)
    np.testing.assert_array_equal(second["memory"], first["memory"])


def test_backward_half_reads_in_reverse(rng):
    # Text in reverse with the signs of all distances flipped is the same text.
    ids = rng.integers(9, 60, (2, 6))
    forward = sequence(make(), token_ids=ids)
    both = sequence(make(bidirectional_data=True), token_ids=np.concatenate([ids, ids[:, ::-1]]))
    np.testing.assert_allclose(both[:2], forward, atol=ATOL)
    np.testing.assert_allclose(both[2:, ::-1], forward, atol=ATOL)
    with pytest.raises(ValueError, match="batch size must be even"):
        make(bidirectional_data=True)({"token_ids": ids[:1]})


def test_separate_attention_dropout(batch):
    model = make(dropout=0.0, attention_dropout=0.5)
    plain = sequence(model, **batch)
    noisy = np.asarray(model(batch, training=True)["sequence_output"])
    assert np.abs(noisy - plain).max() > 1e-2
    still = make(dropout=0.0, attention_dropout=0.0)
    still.set_weights(model.get_weights())
    np.testing.assert_allclose(still(batch, training=True)["sequence_output"], plain, atol=ATOL)


def test_seed_fixes_dropout(batch):
    def noisy(seed):
        return np.asarray(make(seed=seed)(batch, training=True)["sequence_output"])

    np.testing.assert_array_equal(noisy(3), noisy(3))
    assert np.abs(noisy(3) - noisy(4)).max() > 1e-2


@pytest.mark.parametrize("memory_length", [None, 6])
def test_eager_graph_and_xla_agree(batch, memory_length):
    model = make(memory_length=memory_length)
    inputs = dict(batch)
    if memory_length:
        inputs["memory"] = model(batch)["memory"]
    inputs = {k: tf.convert_to_tensor(v) for k, v in inputs.items()}
    expected = model(inputs)
    for options in ({}, {"jit_compile": True}):
        outputs = tf.function(lambda x: model(x), **options)(inputs)
        for key in expected:
            np.testing.assert_allclose(outputs[key], expected[key], atol=5e-6)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_is_close(batch, policy):
    model, half = make(), make(dtype=policy)
    half.set_weights(model.get_weights())
    output = half(batch)["sequence_output"]
    assert keras.backend.standardize_dtype(output.dtype) == policy.removeprefix("mixed_")
    difference = np.abs(np.asarray(ops.cast(output, "float32")) - sequence(model, **batch))
    assert difference.max() < (0.15 if policy == "mixed_bfloat16" else 0.02)


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"head_dim": 5, "tie_attention_biases": True, "activation": "relu"},
        {"memory_length": 4, "reuse_length": 2, "remember_segment_ids": True, "seed": 3},
        {"attention_type": "uni", "same_length": True, "clamp_length": 3, "dtype": "bfloat16"},
    ],
)
def test_saved_and_loaded_every_way(batch, tmp_path, kwargs):
    model = make(**kwargs)
    expected = model(batch)

    def assert_same(copy):
        outputs = copy(batch)
        assert outputs.keys() == expected.keys()
        for key in expected:
            a, b = (np.asarray(ops.cast(x[key], "float32")) for x in (outputs, expected))
            np.testing.assert_array_equal(a, b)

    model.save(tmp_path / "model.keras")
    assert_same(keras.saving.load_model(tmp_path / "model.keras"))
    rebuilt = keras.models.model_from_json(model.to_json())
    assert rebuilt.get_config() == model.get_config()
    model.save_weights(tmp_path / "model.weights.h5")
    rebuilt.load_weights(tmp_path / "model.weights.h5")
    assert_same(rebuilt)
    model.save_to_preset(tmp_path / "preset")
    assert_same(XLNetBackbone.from_preset(tmp_path / "preset"))
    config = json.loads((tmp_path / "preset" / "config.json").read_text())
    assert config["registered_name"] == "keras_xlnet>XLNetBackbone"


def test_part_of_another_functional_model(batch, tmp_path):
    model = make(memory_length=4)
    inputs = {"token_ids": keras.Input((8,), dtype="int32", name="token_ids")}
    outer = keras.Model(inputs, keras.layers.Dense(1)(model(inputs)["sequence_output"]))
    outer.compile("sgd", "mse", run_eagerly=True)
    history = outer.fit({"token_ids": batch["token_ids"]}, np.zeros((4, 8, 1)), epochs=3, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]
    outer.save(tmp_path / "outer.keras")
    copy = keras.saving.load_model(tmp_path / "outer.keras")
    ids = {"token_ids": batch["token_ids"]}
    np.testing.assert_array_equal(copy.predict(ids, verbose=0), outer.predict(ids, verbose=0))


@pytest.mark.parametrize(
    "inputs, message",
    [
        (np.zeros((1, 2)), "must be a dict with `token_ids`.*Received: ndarray"),
        ({"segment_ids": np.zeros((1, 2))}, "must be a dict with `token_ids`"),
        ({"token_ids": np.zeros((1, 2)), "mask": np.ones((1, 2))}, r"does not take: \['mask'\]"),
        (
            {"token_ids": np.zeros((1, 2)), "memory": np.ones((1, 2, 1, 12))},
            "memory needs `memory_length`",
        ),
    ],
)
def test_bad_inputs_are_named(inputs, message):
    with pytest.raises(ValueError, match=message):
        make()(inputs)


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"hidden_dim": 13}, "`hidden_dim` must be a multiple of `num_heads`"),
        ({"num_heads": 3, "hidden_dim": 9}, "`hidden_dim` must be even"),
        ({"num_layers": 0}, "`num_layers` must be a positive integer"),
        ({"reuse_length": 3}, "need a `memory_length`"),
        ({"remember_segment_ids": True}, "need a `memory_length`"),
        ({"attention_type": "both"}, "`attention_type` must be one of"),
        ({"activation": "gelu_tan"}, "gelu_tan"),
        ({"dropout": 1.5}, "`dropout` must be a dropout rate"),
    ],
)
def test_bad_arguments_are_named(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(**kwargs)


def test_activation_names_keep_their_keras_meaning(batch):
    tanh_form, erf_form = make(), make(activation="gelu")
    assert tanh_form.get_config()["activation"] == "gelu_tanh"
    erf_form.set_weights(tanh_form.get_weights())
    difference = np.abs(sequence(erf_form, **batch) - sequence(tanh_form, **batch)).max()
    assert 1e-6 < difference < 1e-2


@pytest.mark.parametrize(
    "damage, error, message",
    [
        (lambda d: (d / "config.json").unlink(), FileNotFoundError, "config.json is missing"),
        (lambda d: (d / "model.safetensors").unlink(), FileNotFoundError, "tensors is missing"),
        (
            lambda d: (d / "config.json").write_text('{"registered_name": "other>Model"}'),
            ValueError,
            "holds a 'other>Model', not the 'keras_xlnet>XLNetBackbone'",
        ),
    ],
)
def test_bad_presets_are_named(tmp_path, damage, error, message):
    make().save_to_preset(tmp_path / "preset")
    damage(tmp_path / "preset")
    with pytest.raises(error, match=message):
        XLNetBackbone.from_preset(tmp_path / "preset")
