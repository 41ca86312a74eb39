"""Attention in chunks and gradient checkpointing: the same numbers, and less memory."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet import layers
from tests.layers import long_sequences
from tests.layers.long_sequences import CASES, H, M, T, attention_case, sine, worst_of

SCRIPT = pathlib.Path(long_sequences.__file__)


@pytest.mark.parametrize(
    "name, way",
    [
        *((name, "eager") for name in CASES),
        *((name, way) for name in ("bi", "uni_predictions") for way in ("unknown_length", "xla")),
        ("predictions", "graph"),
    ],
)
def test_chunks_change_no_gradient(name, way):
    make, chunk_size, arguments, keywords = attention_case(name)
    values = [tf.constant(x) for x in (*arguments, *keywords.values())]
    names = [key for key in keywords if key != "content_length"]
    known = {"content_length": T} if "content_length" in keywords else {}
    values = [v for v in values if v.shape.rank]

    def step_of(layer):
        def step(query, context, positions, *others):
            inputs = dict(zip(names, others, strict=True))
            with tf.GradientTape() as tape:
                tape.watch([query, context])
                loss = sine(layer(query, context, positions, training=True, **known, **inputs))
            weights = [weight.value for weight in layer.trainable_weights]
            return loss, dict(enumerate(tape.gradient(loss, [query, context, *weights])))

        return step

    expected = step_of(make(None))(*values)
    step = step_of(make(chunk_size))
    if way == "unknown_length":
        signature = [
            tf.TensorSpec([None if n in (T, M + T, long_sequences.K, 2 * T + M, T + M + 1) else n
                           for n in v.shape], v.dtype)
            for v in values
        ]  # fmt: skip
        step = tf.function(step, input_signature=signature, jit_compile=name == "bi")
    elif way != "eager":
        step = tf.function(step, jit_compile=way == "xla")
    assert worst_of(expected, step(*values)) < 1e-5


def test_checkpointing_changes_no_gradient():
    assert_small(long_sequences.checkpointing())


def assert_small(worst):
    for name, difference in worst.items():
        # Two streams share a kernel: their gradients are summed before or after rounding.
        assert difference < (0.05 if "bfloat16" in name else 1e-5), (name, worst)


@pytest.mark.parametrize("backend", [pytest.param("jax", marks=pytest.mark.slow), "torch"])
def test_other_backends(backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": str(SCRIPT.parents[2])}
    run = subprocess.run(
        [sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    worst = json.loads(run.stdout.splitlines()[-1])
    assert len(worst) >= 5
    assert_small(worst)


def test_no_tensor_has_more_rows_of_scores_than_a_chunk():
    make, _, arguments, _ = attention_case("bi")

    def most_rows(layer):
        step = tf.function(lambda *x: layer(*x, training=True))
        graph = step.get_concrete_function(*map(tf.constant, arguments)).graph
        graphs = [graph, *(f.graph for f in graph._functions.values() if hasattr(f, "graph"))]
        shapes = [t.shape for g in graphs for op in g.get_operations() for t in op.outputs]
        return max(s[-2] for s in shapes if s.rank == 4 and s[-1] == T + M and s[-2] is not None)

    assert most_rows(make(None)) == T
    assert most_rows(make(5)) == 5


def test_dropout_in_chunks_is_fresh_and_seeded():
    content = np.ones((1, 8, H), "float32")
    positions = np.zeros((1, 16, H), "float32")

    def masks(seed):
        layer = layers.RelativeMultiHeadAttention(
            1, H, dropout=0.5, seed=seed, attention_chunk_size=2, kernel_initializer="ones"
        )
        return [
            np.asarray(layer(content, content, positions, training=True))[0, :, 0] for _ in range(2)
        ]

    first, second = masks(1)
    np.testing.assert_array_equal(masks(1), [first, second])
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, masks(2)[0])
    # Each pair of rows is a chunk: no two of them drop the same keys.
    chunks = first.reshape(4, 2)
    assert len({tuple(chunk) for chunk in chunks}) > 1


def test_dropout_in_chunks_keeps_the_mean():
    # Values are ones, so an output is the share of kept probabilities, scaled back.
    content = np.ones((4, 64, 2), "float32")
    layer = layers.RelativeMultiHeadAttention(
        2, 1, dropout=0.25, seed=3, attention_chunk_size=24, kernel_initializer="zeros"
    )
    layer.build(content.shape, content.shape, (1, 128, 2))
    layer.value_dense.kernel.assign(np.full(layer.value_dense.kernel.shape, 0.5))
    layer.output_dense.kernel.assign(np.full(layer.output_dense.kernel.shape, 0.5))
    output = np.asarray(layer(content, content, np.zeros((1, 128, 2)), training=True))
    # The mean of 4 * 64 * 2 * 64 masks: its deviation is 0.58 / 181.
    assert abs(output.mean() - 1) < 0.015
    assert output.std() > 0.01


def test_scores_that_are_asked_for_are_those_of_all_rows():
    make, chunk_size, arguments, keywords = attention_case("bi")
    output, scores = make(chunk_size)(*arguments, **keywords, return_attention_scores=True)
    expected = make(None)(*arguments, **keywords, return_attention_scores=True)
    np.testing.assert_array_equal(scores, expected[1])
    np.testing.assert_array_equal(output, expected[0])


@pytest.mark.parametrize("jit_compile", [False, True])
def test_checkpointing_draws_the_same_masks_again_in_a_graph(jit_compile):
    found = []
    for checkpointing in (False, True):
        block = layers.TwoStreamBlock(
            2, 4, 12, dropout=0.3, attention_dropout=0.3, seed=3,
            gradient_checkpointing=checkpointing,
        )  # fmt: skip
        content = tf.constant(np.random.default_rng(0).normal(size=(2, T, H)), tf.float32)
        positions = layers.RelativePositionEncoding(H)(content)
        block(content, position_encoding=positions)
        long_sequences.fill(block)
        weights = [weight.value for weight in block.trainable_weights]

        @tf.function(jit_compile=jit_compile)
        def step(content, block=block, weights=weights, positions=positions):
            with tf.GradientTape() as tape:
                loss = sine(block(content, position_encoding=positions, training=True))
            return loss, dict(enumerate(tape.gradient(loss, weights)))

        found.append([step(content), step(content)])
    for plain, again in zip(*found, strict=True):
        assert worst_of(plain, again) < 2e-5
    assert abs(float(found[0][0][0]) - float(found[0][1][0])) > 1e-3


@pytest.mark.parametrize("value", [0, -3, 2.5, True, "all"])
def test_bad_chunk_sizes_are_refused(value):
    with pytest.raises(ValueError, match="`attention_chunk_size` must be a positive integer"):
        layers.TwoStreamBlock(2, 4, 8, attention_chunk_size=value)


def test_configs_keep_both():
    block = layers.TwoStreamBlock(2, 4, 8, attention_chunk_size=3, gradient_checkpointing=True)
    copy = layers.TwoStreamBlock.from_config(block.get_config())
    assert copy.attention.attention_chunk_size == 3
    assert copy.gradient_checkpointing is True
    assert keras.saving.get_registered_name(type(copy)) == "keras_xlnet>TwoStreamBlock"
