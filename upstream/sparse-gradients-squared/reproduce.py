"""The gradient of an embedding: Adam squares its slices, where it should square their sum."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf


def train(make_gradient):
    variable = keras.Variable(np.zeros((2, 1), "float32"))
    optimizer = keras.optimizers.Adam(1.0)
    for scale in (1.0, 3.0):
        optimizer.apply([make_gradient(scale)], [variable])
    return float(variable.numpy()[0, 0])


def sparse(scale):
    """Token 0 occurs twice: the sum of its slices is `2 * scale`."""
    return tf.IndexedSlices(scale * tf.ones((2, 1)), tf.constant([0, 0]), tf.constant([2, 1]))


dense_weight = train(lambda scale: tf.convert_to_tensor(sparse(scale)))
sparse_weight = train(sparse)
print("Keras", keras.__version__, "TensorFlow", tf.__version__)
print("expected:", dense_weight, "(the same gradient as a dense tensor)")
print("happens: ", sparse_weight)
raise SystemExit(abs(dense_weight - sparse_weight) > 1e-4)
