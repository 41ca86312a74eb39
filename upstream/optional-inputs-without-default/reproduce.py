"""An optional input can be `None`, but it cannot be omitted, and has no default."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np


@keras.saving.register_keras_serializable("reproduce")
class AddIfGiven(keras.layers.Layer):
    def call(self, a, b=None):
        return a if b is None else a + b

    def compute_output_shape(self, a_shape, b_shape=None):
        return a_shape


a = keras.Input((1,), name="a")
b = keras.Input((1,), name="b", optional=True)
model = keras.Model({"a": a, "b": b}, AddIfGiven()(a, b))
x = np.ones((2, 1), "float32")
print("Keras", keras.__version__)
print("with b=None:", model({"a": x, "b": None}).numpy().tolist())
print("expected: the same without b")
try:
    print("happens: ", model({"a": x}).numpy().tolist())
except Exception as error:
    print("happens: ", type(error).__name__, str(error)[:200])
    raise SystemExit(1) from None
