"""On TensorFlow, `fit` traces the train step twice before it begins."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import time

import keras
import numpy as np

traces = []


class Model(keras.Model):
    def train_step(self, data):
        traces.append(data)
        return super().train_step(data)


def make():
    inputs = x = keras.Input((64,))
    for _ in range(50):
        x = keras.layers.Dense(64, "relu")(x)
    model = Model(inputs, keras.layers.Dense(1)(x))
    model.compile("adam", "mse", metrics=["mae"])
    return model


x, y = np.ones((8, 64)), np.ones((8, 1))
model = make()
start = time.perf_counter()
model.fit(x, y, verbose=0)
seconds = time.perf_counter() - start
print("Keras", keras.__version__)
print("expected: the train step is traced once")
print(f"happens:  it is traced {len(traces)} times, the first step takes {seconds:.1f} s")
raise SystemExit(int(len(traces) > 1))
