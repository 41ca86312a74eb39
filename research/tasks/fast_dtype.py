"""The dtype policy that trains faster on this machine."""

import functools
import time

import numpy as np

DTYPES = ("auto", "float32", "mixed_bfloat16")
# A training step is not matrix products alone.
WORTHWHILE = 1.5


def choose(name="auto"):
    """Returns `name`, or for `"auto"` the policy whose matrix products are faster here.

    Processors without instructions for bfloat16 multiply it more slowly than float32.
    """
    if name != "auto":
        return name
    is_faster = product_seconds("float32") > WORTHWHILE * product_seconds("bfloat16")
    return "mixed_bfloat16" if is_faster else "float32"


@functools.cache  # A process chooses once: folds are trained alike.
def product_seconds(dtype, repetitions=5):
    """Returns the seconds of a matrix product as large as those of a training step, the least."""
    import tensorflow as tf  # Some seconds.

    values = np.random.default_rng(0).normal(size=(1024, 1024))
    matrix = tf.cast(values, dtype)
    tf.matmul(matrix, matrix)  # The first one prepares the library.
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        tf.matmul(matrix, matrix).numpy()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
