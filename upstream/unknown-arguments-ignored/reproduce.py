"""A functional model ignores constructor arguments that it does not have."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras

inputs = keras.Input((3,))
outputs = keras.layers.Dense(1)(inputs)
print("Keras", keras.__version__)
print("expected: an error that names `trainabel`, as layers raise it")
try:
    model = keras.Model(inputs, outputs, trainabel=False)
except (TypeError, ValueError) as error:
    print("happens: ", type(error).__name__, error)
else:
    print("happens:  no error, and trainable is", model.trainable)
    raise SystemExit(1)
