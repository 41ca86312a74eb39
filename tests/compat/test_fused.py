"""Fused chains are the same functions, compiled only where they are meant to be."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_xlnet.compat.fused import fused

_rng = np.random.default_rng(5)
X, Y = (_rng.normal(size=(6, 4)).astype("float32") for _ in range(2))
MASK = _rng.random((6, 4)) < 0.5


@fused
def chain(x, y, mask, *, factor):
    x = ops.tanh(x) * factor
    x = x if y is None else x * y
    return x if mask is None else ops.where(mask, x, 0.0)


def value_and_gradients(tensors, fuse):
    floats = [t for t in tensors if t is not None and t.dtype == tf.float32]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        value = chain(*tensors, factor=3.0, fuse=fuse)
        total = tf.reduce_sum(tf.sin(value))
    return value, tape.gradient(total, floats)


@pytest.mark.parametrize("given", [(1, 1, 1), (1, 0, 1), (1, 1, 0), (1, 0, 0)])
def test_values_and_gradients_are_those_of_the_function(given):
    tensors = [tf.constant(t) if g else None for t, g in zip((X, Y, MASK), given, strict=True)]
    expected = value_and_gradients(tensors, fuse=False)
    actual = tf.function(lambda: value_and_gradients(tensors, fuse=True))()
    keras.tree.map_structure(
        lambda a, e: np.testing.assert_allclose(a, e, atol=3e-6), actual, expected
    )


def test_unknown_batch():
    @tf.function(input_signature=[tf.TensorSpec((None, 4)), tf.TensorSpec((None, 4))])
    def call(x, y):
        return chain(x, y, None, factor=2.0, fuse=True)

    for rows in (6, 3):
        expected = chain(X[:rows], Y[:rows], None, factor=2.0)
        np.testing.assert_allclose(call(X[:rows], Y[:rows]), expected, atol=1e-6)


def test_gradient_of_gradient():
    x = tf.constant(X)

    def second(fuse):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                total = tf.reduce_sum(chain(x, None, None, factor=2.0, fuse=fuse) ** 2)
            slope = tf.reduce_sum(inner.gradient(total, x) ** 2)
        return outer.gradient(slope, x)

    np.testing.assert_allclose(tf.function(second)(True), second(False), atol=2e-4)


@pytest.mark.parametrize("fuse", [True, False])
def test_only_what_is_to_be_fused_needs_xla(fuse):
    graph = tf.function(lambda x: chain(x, None, None, factor=2.0, fuse=fuse))
    graph = graph.get_concrete_function(tf.constant(X)).graph.as_graph_def()
    assert any("_XlaMustCompile" in f.attr for f in graph.library.function) == fuse


def test_layers_of_one_size_share_a_program():
    def call(x):
        for _ in range(3):
            x = chain(x, None, None, factor=2.0, fuse=True)
        return x

    graph = tf.function(call).get_concrete_function(tf.constant(X)).graph.as_graph_def()
    calls = [node for node in graph.node if node.op.endswith("PartitionedCall")]
    assert len(calls) == 3
    assert len({node.attr["f"].func.name for node in calls}) == 1


def sizes_in_graph(shape):
    """Sizes of what the calls in a graph return, in which `chain` and its gradient are called."""

    @tf.function(input_signature=[tf.TensorSpec(shape)])
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = chain(x, None, None, factor=0.5, fuse=True)
        return tape.gradient(y, x)

    graph = gradient.get_concrete_function().graph.as_graph_def(add_shapes=True)
    calls = [node for node in graph.node if node.op.endswith("PartitionedCall")]
    shapes = (shape for node in calls for shape in node.attr["_output_shapes"].list.shape)
    return {axis.size for shape in shapes for axis in shape.dim}


def test_known_sizes_stay_known_after_unknown_ones():
    assert sizes_in_graph((None, 7)) == {-1, 7}
    assert sizes_in_graph((5, 7)) == {5, 7}
