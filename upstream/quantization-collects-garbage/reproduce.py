"""`quantize` runs one full garbage collection for each layer that it quantizes."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import gc
import time

import keras

collections = []
gc.callbacks.append(
    lambda phase, info: collections.append(info["generation"]) if phase == "start" else None
)
layers = [keras.layers.Dense(8) for _ in range(40)]
model = keras.Sequential([keras.Input((8,)), *layers])
objects = [[] for _ in range(5_000_000)]  # What a long session holds.
gc.collect()

collections.clear()
start = time.perf_counter()
model.quantize("int8")
seconds = time.perf_counter() - start
full = collections.count(2)
print("Keras", keras.__version__)
print("expected: at most one full collection for 40 layers")
print(f"happens:  {full} full collections, {seconds:.1f} s")
raise SystemExit(int(full > 5))
