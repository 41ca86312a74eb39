"""A chain of elementwise operations on a CPU: one pass over memory for each operation."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import time

import tensorflow as tf


def chain(x):
    """The tanh form of GELU, a selection and a residual connection."""
    y = 0.5 * x * (1.0 + tf.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
    return x + 1.1 * tf.where(x > -1.28, y, 0.0)


def milliseconds(function, x):
    function(x)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        function(x)
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


x = tf.random.normal((1024, 3072))
default = milliseconds(tf.function(chain), x)
compiled = milliseconds(tf.function(chain, jit_compile=True), x)
print("TensorFlow", tf.__version__, "clustering:", repr(tf.config.optimizer.get_jit()))
print(f"expected: {compiled:.1f} ms, as with jit_compile=True")
print(f"happens:  {default:.1f} ms")
raise SystemExit(tf.config.optimizer.get_jit() == "")
