"""Chunked attention, checkpointing and gradient accumulation through whole models."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM, XLNetTextClassifier

RNG = np.random.default_rng(4)
TOKEN_IDS = RNG.integers(9, 30, (4, 7)).astype("int32")
INPUTS = {
    "token_ids": TOKEN_IDS,
    "segment_ids": RNG.integers(0, 2, (4, 7)).astype("int32"),
    "padding_mask": np.arange(7) >= np.array([[0], [1], [3], [0]]),
}


def backbone(dropout=0.2, num_layers=2, **arguments):
    return XLNetBackbone(
        vocabulary_size=30,
        num_layers=num_layers,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=12,
        dropout=dropout,
        attention_dropout=dropout,
        kernel_initializer=keras.initializers.RandomNormal(stddev=0.3, seed=1),
        seed=2,
        **arguments,
    )


def permutation_lm(**arguments):
    model = XLNetPermutationLM(backbone(num_layers=1, memory_length=3, **arguments))
    targets = np.array([[0, 5], [2, 1], [6, 3], [4, 6]], "int32")
    inputs = {**INPUTS, "target_positions": targets}
    inputs["permutation_mask"] = np.random.default_rng(1).random((4, 7, 7)) < 0.6
    inputs["memory"] = np.random.default_rng(2).normal(size=(4, 1, 3, 8)).astype("float32")
    return model, inputs


def gradients(model, inputs, output):
    weights = [weight.value for weight in model.trainable_weights]

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.sin(model(inputs, training=True)[output]))
        return [loss, *map(tf.convert_to_tensor, tape.gradient(loss, weights))]

    return [np.asarray(x) for x in step()]


def assert_close(actual, expected):
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=0, atol=1e-6)


def set_weights(model):
    rng = np.random.default_rng(3)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(scale=0.3, size=weight.shape))


@pytest.mark.parametrize("kind", ["backbone", "permutation_lm"])
def test_checkpointing_with_dropout_changes_no_gradient(kind):
    found = []
    for checkpointing in (False, True):
        arguments = {"gradient_checkpointing": checkpointing}
        if kind == "backbone":
            model, inputs, output = backbone(**arguments), INPUTS, "sequence_output"
        else:
            (model, inputs), output = permutation_lm(**arguments), "logits"
        set_weights(model)
        found.append(gradients(model, inputs, output))
    assert max(np.abs(g).max() for g in found[0][1:]) > 1e-3
    assert_close(*found)


def test_chunks_with_checkpointing_change_nothing():
    found = []
    for arguments in ({}, {"attention_chunk_size": 3, "gradient_checkpointing": True}):
        model, inputs = permutation_lm(dropout=0.0, **arguments)
        set_weights(model)
        found.append(gradients(model, inputs, "logits"))
        found[-1].append(np.asarray(model(inputs)["logits"]))
    assert_close(*found)


def test_the_config_keeps_both_and_presets_override_them():
    model = backbone(attention_chunk_size=3, gradient_checkpointing=True)
    copy = XLNetBackbone.from_config(model.get_config())
    assert copy.get_config() == model.get_config()
    assert all(block.gradient_checkpointing for block in copy.blocks)
    assert {block.attention.attention_chunk_size for block in copy.blocks} == {3}
    plain = backbone().get_config()
    assert plain["attention_chunk_size"] is None
    assert plain["gradient_checkpointing"] is False


def test_two_half_batches_accumulate_to_one_whole():
    weights = []
    for batch_size, steps in ((4, None), (2, 2)):
        model = XLNetTextClassifier(backbone(dropout=0.0), num_classes=3, dropout=0.0)
        set_weights(model)
        before = model.get_weights()
        optimizer = keras.optimizers.SGD(0.1, gradient_accumulation_steps=steps)
        model.compile(optimizer=optimizer, run_eagerly=True)
        labels = np.array([0, 2, 1, 1])
        model.fit(INPUTS, labels, batch_size=batch_size, shuffle=False, verbose=0)
        weights.append(model.get_weights())
    assert max(np.abs(a - b).max() for a, b in zip(weights[0], before, strict=True)) > 1e-3
    for whole, halves in zip(*weights, strict=True):
        np.testing.assert_allclose(halves, whole, rtol=0, atol=1e-6)
