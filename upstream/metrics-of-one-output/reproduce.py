"""A metric for one of two outputs raises `KeyError`, although the same loss is accepted."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np

inputs = keras.Input((3,))
memory = keras.layers.Dense(2, name="memory")(inputs)
logits = keras.layers.Dense(1, name="logits")(memory)
model = keras.Model(inputs, {"logits": logits, "memory": memory})
x, y = np.ones((8, 3), "float32"), {"logits": np.ones((8, 1), "float32")}
print("Keras", keras.__version__)
model.compile("sgd", loss={"logits": "mse"})
print("without metrics:", list(model.fit(x, y, verbose=0).history))
model.compile("sgd", loss={"logits": "mse"}, metrics={"logits": "mae"})
print("expected: the metric of `logits`; `memory` has neither loss nor metric, and needs no label")
try:
    print("happens: ", list(model.fit(x, y, verbose=0).history))
except KeyError as error:
    print("happens:  KeyError", error)
    raise SystemExit(1) from None
