"""Keras compiles its train, test and predict steps, and cannot compile another function."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
from keras import ops

model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])


def energy(x):
    """A function that is not `call`, such as one step of a decoding loop."""
    return ops.sum(ops.square(model(x)))


rooms = (keras, keras.ops, keras.backend, keras.utils)
names = [f"{room.__name__}.{n}" for room in rooms for n in ("jit", "compile") if hasattr(room, n)]
print("Keras", keras.__version__)
print("expected: one public function that compiles `energy` on TensorFlow and JAX")
print("happens: ", names or "there is none")
raise SystemExit(not names)
