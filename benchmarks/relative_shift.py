"""Forms of the relative shift, side by side: why `relative_shift` is written as it is.

    python benchmarks/relative_shift.py

Prints the median time of each form relative to the one in use, forward alone and with the
gradient, in plain graphs and with XLA. About a minute.
"""

import os
import platform
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from absl import app
from keras import ops

from keras_xlnet.ops import relative_shift

# (heads, batch, query rows, context rows)
SHAPES = [(2, 32, 64, 64), (12, 8, 128, 128), (12, 2, 512, 512), (8, 4, 256, 384)]
REPETITIONS = 9


def basic_indexing(scores, context_length):
    """The same reshapes with `x[...]`, whose gradient is StridedSliceGrad."""
    num_heads, batch_size, query_length, num_positions = ops.shape(scores)
    flat = ops.reshape(scores, (num_heads, batch_size, query_length * num_positions))
    flat = flat[:, :, query_length:]
    shifted = ops.reshape(flat, (num_heads, batch_size, query_length, num_positions - 1))
    return shifted[..., :context_length]


def matrices(scores, context_length):
    """The same reshapes and slices of matrices, which TensorFlow cuts in one thread."""
    *leading, query_length, num_positions = scores.shape
    rows, columns = leading[0] * leading[1], num_positions - 1
    flat = ops.reshape(scores, (rows, query_length * num_positions))
    flat = ops.slice(flat, (0, query_length), (rows, query_length * columns))
    flat = ops.reshape(flat, (rows * query_length, columns))
    flat = ops.slice(flat, (0, 0), (rows * query_length, context_length))
    return ops.reshape(flat, (*leading, query_length, context_length))


def gather(scores, context_length):
    """One gather along the last axis."""
    query_length = scores.shape[2]
    rows = np.arange(context_length)[None] + query_length - np.arange(query_length)[:, None]
    return ops.take_along_axis(scores, rows[None, None], axis=-1)


def query_blocks(scores, context_length, block=64):
    """Blocks of query rows, each with only the table rows that it needs."""
    query_length = scores.shape[2]
    parts = []
    for start in range(0, query_length, block):
        stop = min(start + block, query_length)
        first = query_length - stop
        part = scores[:, :, start:stop, first : first + context_length + stop - start]
        parts.append(relative_shift(part, context_length))
    return ops.concatenate(parts, axis=2)


def main(_):
    forms = (relative_shift, matrices, basic_indexing, gather, query_blocks)
    forms = {form.__name__: form for form in forms}
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    for shape in SHAPES:
        for jit_compile in (False, True):
            print(f"\n{shape}, {'XLA' if jit_compile else 'graph'}: ratio to relative_shift")
            measure(forms, shape, jit_compile)


def measure(forms, shape, jit_compile):
    *leading, query_length, context_length = shape
    scores = tf.random.normal((*leading, query_length, context_length + query_length))
    weights = tf.random.normal(shape)
    functions = {}
    for name, form in forms.items():

        @tf.function(jit_compile=jit_compile)
        def forward(scores, form=form):
            return form(scores, context_length) * 1.0

        @tf.function(jit_compile=jit_compile)
        def gradient(scores, form=form):
            with tf.GradientTape() as tape:
                tape.watch(scores)
                loss = tf.reduce_sum(form(scores, context_length) * weights)
            return tape.gradient(loss, scores)

        np.testing.assert_array_equal(forward(scores), relative_shift(scores, context_length))
        gradient(scores)
        functions[name] = (forward, gradient)
    times = {name: ([], []) for name in functions}
    for _ in range(REPETITIONS):  # interleaved, so that a busy moment hits all alike
        for name, pair in functions.items():
            for function, found in zip(pair, times[name], strict=True):
                start = time.perf_counter()
                function(scores)
                found.append(time.perf_counter() - start)
    reference = [np.array(found) for found in times["relative_shift"]]
    for name, pair in times.items():
        ratios = [np.median(np.array(t) / r) for t, r in zip(pair, reference, strict=True)]
        print(f"  {name:16} forward {ratios[0]:6.2f}   with gradient {ratios[1]:6.2f}")


if __name__ == "__main__":
    app.run(main)
