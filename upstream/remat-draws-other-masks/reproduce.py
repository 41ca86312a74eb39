"""`keras.remat` of a call with dropout: the second run draws another mask than the first."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

dropout = keras.layers.Dropout(0.5, seed=1)
drop = keras.remat(lambda x: dropout(x, training=True))
x = tf.ones((8,))
with tf.GradientTape() as tape:
    tape.watch(x)
    y = drop(x)
# The output for ones is the mask, and so is the gradient.
gradient = tape.gradient(y, x)
print("Keras", keras.__version__, "TensorFlow", tf.__version__)
print("expected gradient, the mask of the output:", y.numpy())
print("happens:                                  ", gradient.numpy())
raise SystemExit(not np.array_equal(gradient, y))
