"""What a chain of elementwise operations costs in a train step: fused, and operation by operation.

    python benchmarks/fused_chains.py

Prints medians of the forward pass and of forward and backward together, for the chains of a
TwoStreamBlock at XLNet-Base size (batch 8, length 128), beside the product of matrices that such a
chain follows. About a minute.
"""

import os
import platform
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from absl import app
from keras import ops

from keras_xlnet.compat.fused import fused
from keras_xlnet.layers import AddAndNorm, gelu_tanh
from keras_xlnet.ops import attention_weights, hash_dropout, masked_softmax

REPETITIONS = 15
ROWS, HIDDEN, INTERMEDIATE, RATE = 8 * 128, 768, 3072, 0.1
_dropout = keras.layers.Dropout(RATE, seed=1)
_seed = np.array([3, 4], "uint32")


@fused
def fused_gelu_and_dropout(x, seed):
    return hash_dropout(gelu_tanh(x), RATE, seed)


def gelu_and_dropout():
    x = tf.random.normal((ROWS, INTERMEDIATE))
    return {
        "Keras": (lambda x: _dropout(gelu_tanh(x), training=True), (x,)),
        "fused": (lambda x: fused_gelu_and_dropout(x, _seed, fuse=True), (x,)),
    }


def dropout_residual_and_norm():
    x, change = (tf.random.normal((ROWS, HIDDEN)) for _ in range(2))
    gamma, beta = tf.ones(HIDDEN), tf.zeros(HIDDEN)

    def by_operation(x, change):
        return ops.layer_normalization(
            x + _dropout(change, training=True), gamma, beta, epsilon=1e-12
        )

    add_and_norm = AddAndNorm(RATE, seed=1)
    add_and_norm.build(x.shape)

    def in_one_program(x, change):
        return add_and_norm(x, change, training=True)

    return {"Keras": (by_operation, (x, change)), "fused": (in_one_program, (x, change))}


def softmax_and_dropout():
    scores, segments = tf.random.normal((12, 8, 128, 128)), tf.random.normal((12, 8, 128, 1))
    different, allowed = (tf.random.uniform((8, 128, 128)) < 0.7 for _ in range(2))

    def by_operation(scores, segments):
        scores += ops.where(different, segments, 0.0)
        return _dropout(masked_softmax(scores, allowed), training=True)

    def in_one_program(scores, segments):
        return attention_weights(
            scores, segments, different, allowed, _seed, dropout=RATE, fuse=True
        )

    return {
        "Keras": (by_operation, (scores, segments)),
        "fused": (in_one_program, (scores, segments)),
    }


def product_of_matrices():
    x, kernel = tf.random.normal((ROWS, HIDDEN)), tf.random.normal((HIDDEN, INTERMEDIATE))
    return {"product": (tf.matmul, (x, kernel))}


def main(_):
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, milliseconds")
    print(f"{'':36} forward   and backward")
    for chain in (
        product_of_matrices,
        gelu_and_dropout,
        dropout_residual_and_norm,
        softmax_and_dropout,
    ):
        forms = {f"{chain.__name__}, {name}": _graphs(*form) for name, form in chain().items()}
        times = {name: ([], []) for name in forms}
        for _ in range(REPETITIONS):  # interleaved, so that a busy moment hits all alike
            for name, graphs in forms.items():
                for graph, found in zip(graphs, times[name], strict=True):
                    start = time.perf_counter()
                    graph()
                    found.append(time.perf_counter() - start)
        for name, pair in times.items():
            forward, both = (1e3 * np.median(found[2:]) for found in pair)
            print(f"{name:36} {forward:7.2f}   {both:7.2f}")


def _graphs(function, tensors):
    """The forward pass, and forward and backward, as graphs without arguments."""

    def forward():
        return function(*tensors)

    def both():
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            output = function(*tensors)
        return tape.gradient(output, tensors, output)

    return tf.function(forward), tf.function(both)


if __name__ == "__main__":
    app.run(main)
