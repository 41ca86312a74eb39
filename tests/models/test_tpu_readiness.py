"""Train steps have what a TPU compiler knows: operations of XLA, static shapes. No TPU is needed.

That the numbers are right on a TPU, this cannot show (docs/tpu.md).
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.util import pywrap_xla_ops

from keras_xlnet.models import (
    XLNetBackbone,
    XLNetPermutationLM,
    XLNetQuestionAnswering,
    XLNetTextClassifier,
)

# What has kernels for XLA, and what only holds a graph together.
XLA = set(pywrap_xla_ops.get_gpu_kernel_names())
STRUCTURE = {"Placeholder", "NoOp", "_Arg", "_Retval", "Const"}
CALLS = {"PartitionedCall", "StatefulPartitionedCall"}
BATCH, LENGTH, TARGETS, MEMORY = 4, 12, 3, 6


def audit(function, *arguments):
    """Names of operations that XLA does not have, and of results whose shape is not static.

    `function` is a `tf.function`.
    """
    graph = function.get_concrete_function(*arguments).graph
    graph = graph.as_graph_def(add_shapes=True)
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    foreign = {node.op for node in nodes} - XLA - STRUCTURE - CALLS
    dynamic = {
        node.name
        for node in graph.node
        for shape in node.attr["_output_shapes"].list.shape
        # Its shape is that of axes to sum over, computed from static shapes.
        if node.op != "BroadcastGradientArgs"
        and (shape.unknown_rank or any(axis.size < 0 for axis in shape.dim))
    }
    return foreign, dynamic


def backbone(**arguments):
    return XLNetBackbone(40, 1, 2, 8, 12, seed=1, **arguments)


def permutation_lm(stateful=False, **arguments):
    batch_size = BATCH if stateful else None
    return XLNetPermutationLM(backbone(**arguments), stateful=stateful, batch_size=batch_size)


MODELS = {
    "classifier": lambda: XLNetTextClassifier(backbone(), 3),
    "packed-classifier": lambda: XLNetTextClassifier(backbone(), 3),
    "answers": lambda: XLNetQuestionAnswering(backbone(), start_n_top=2, end_n_top=2),
    "no-memory": permutation_lm,
    "memory-in-and-out": lambda: permutation_lm(memory_length=MEMORY, reuse_length=LENGTH // 2),
    "memory-in-fit": lambda: permutation_lm(True, memory_length=MEMORY, bidirectional_data=True),
}


def batch_of(model, is_packed=False):
    rng = np.random.default_rng(0)
    inputs = {
        "token_ids": rng.integers(0, 40, (BATCH, LENGTH)).astype("int32"),
        "segment_ids": rng.integers(0, 2, (BATCH, LENGTH)).astype("int32"),
        "padding_mask": np.arange(LENGTH) >= rng.integers(0, 4, (BATCH, 1)),
    }
    if is_packed:
        tokens = np.flatnonzero(inputs["padding_mask"])
        inputs["packing"] = np.pad(tokens, (0, BATCH * LENGTH - len(tokens)), constant_values=-1)
        inputs["packing"] = inputs["packing"].astype("int32").reshape(BATCH // 2, LENGTH * 2)
    if isinstance(model, XLNetTextClassifier):
        return inputs, np.array([0, 1, 2, 0])
    if isinstance(model, XLNetQuestionAnswering):
        starts = rng.integers(4, LENGTH - 2, BATCH)
        labels = {"start_positions": starts, "end_positions": starts + 1}
        return inputs, {**labels, "is_impossible": np.array([0, 1, 0, 0])}
    inputs["permutation_mask"] = rng.random((BATCH, LENGTH, LENGTH)) < 0.5
    inputs["target_positions"] = np.tile(np.arange(4, 4 + TARGETS, dtype="int32"), (BATCH, 1))
    if "memory" in model.input:
        inputs["memory"] = rng.normal(size=(BATCH, 1, MEMORY, 8)).astype("float32")
    weights = np.ones((BATCH, TARGETS), "float32")
    return inputs, rng.integers(0, 40, (BATCH, TARGETS)), weights


@pytest.mark.parametrize("name", MODELS)
def test_train_step(name):
    model = MODELS[name]()
    model.compile(keras.optimizers.AdamW(1e-3, global_clipnorm=1.0))
    batch = tf.nest.map_structure(tf.constant, batch_of(model, "packed" in name))
    model.evaluate(tf.data.Dataset.from_tensors(batch), verbose=0)
    model.optimizer.build(model.trainable_variables)
    compiled = tf.function(model.train_step, jit_compile=True)
    assert audit(compiled, batch) == (set(), set())
    assert np.isfinite(compiled(batch)["loss"])
    assert int(model.optimizer.iterations) == 1


def test_the_audit_finds_what_a_tpu_refuses():
    x = tf.constant([1, 2])
    shuffle = tf.random.experimental.stateless_shuffle
    foreign = {
        "AsString": tf.function(tf.strings.as_string),
        "StatelessShuffle": tf.function(lambda v: shuffle(v, [1, 2])),
    }
    for name, function in foreign.items():
        assert audit(function, x)[0] == {name}
    assert audit(tf.function(lambda v: tf.boolean_mask(v, v > 1)), x)[1]
    assert audit(tf.function(lambda v: v * 2), tf.TensorSpec([None, 3]))[1]
