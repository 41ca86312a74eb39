"""The gradient of `x[:, :, a:]` is much slower than that of `tf.slice` with the same numbers."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import time

import tensorflow as tf

LENGTH, COLUMNS, FIRST = 256, 512, 5


def milliseconds(cut, x, upper):
    @tf.function
    def gradient(x, upper):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = cut(x)
        return tape.gradient(y, x, output_gradients=upper)

    gradient(x, upper)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        gradient(x, upper)
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


x = tf.random.normal((12, 8, LENGTH * COLUMNS))
size = (12, 8, LENGTH * COLUMNS - FIRST)
upper = tf.random.normal(size)
with_slice = milliseconds(lambda x: tf.slice(x, (0, 0, FIRST), size), x, upper)
with_brackets = milliseconds(lambda x: x[:, :, FIRST:], x, upper)
print("TensorFlow", tf.__version__)
print(f"expected: {with_slice:.1f} ms, as with tf.slice")
print(f"happens:  {with_brackets:.1f} ms")
raise SystemExit(with_brackets > 2 * with_slice)
