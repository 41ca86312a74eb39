"""`RematScope` fails in `fit` for every layer that is called with a keyword argument."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np

with keras.RematScope(mode="full"):
    dense, dropout = keras.layers.Dense(3), keras.layers.Dropout(0.5)
inputs = keras.Input((3,))
model = keras.Model(inputs, dropout(dense(inputs)))
model.compile("sgd", "mse")
x = np.ones((8, 3), "float32")
print("Keras", keras.__version__)
print("expected: `fit` trains, as it does without the scope")
try:
    print("happens:  loss", model.fit(x, x, verbose=0).history["loss"])
except ValueError as error:
    print("happens: ", type(error).__name__, str(error)[:300])
    raise SystemExit(1) from None
