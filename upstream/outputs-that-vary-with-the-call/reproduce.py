"""A layer that returns one tensor in its first call and two in the second."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras


class OneOrTwo(keras.layers.Layer):
    def call(self, a, b=None):
        return a if b is None else (a, b)

    def compute_output_spec(self, a, b=None):
        a = keras.KerasTensor(a.shape)
        return a if b is None else (a, keras.KerasTensor(b.shape))


layer, a, b = OneOrTwo(), keras.Input((2,)), keras.Input((2,))
layer(a)
print("Keras", keras.__version__)
print("expected: a model with two outputs")
try:
    print("happens: ", len(keras.Model([a, b], list(layer(a, b))).outputs), "outputs")
except ValueError as error:
    print("happens: ", type(error).__name__, error)
    raise SystemExit(1) from None
