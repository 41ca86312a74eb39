"""`keras.ops.map` has ten elements in memory at once, and no argument to change that."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import inspect

import keras
import tensorflow as tf


def loops(function):
    """The `parallel_iterations` of the loops in a graph."""
    graph = tf.function(function).get_concrete_function(tf.zeros((16, 4))).graph
    return [
        op.get_attr("parallel_iterations") for op in graph.get_operations() if "While" in op.type
    ]


def one_at_a_time(x):
    return tf.map_fn(tf.square, x, parallel_iterations=1)


print("Keras", keras.__version__, "TensorFlow", tf.__version__)
print("expected:", loops(one_at_a_time), "is possible, as with `tf.map_fn`")
print("happens: ", loops(lambda x: keras.ops.map(keras.ops.square, x)))
arguments = set(inspect.signature(keras.ops.map).parameters)
print("arguments of `keras.ops.map`:", sorted(arguments))
raise SystemExit(arguments == {"f", "xs"})
