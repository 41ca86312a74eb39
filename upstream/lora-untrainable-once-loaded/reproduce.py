"""A layer with LoRA that was saved and loaded cannot be trained: both matrices are zeros."""

import os
import tempfile

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="dense")])
model.layers[0].enable_lora(2)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.keras")
    model.save(path)
    loaded = keras.models.load_model(path)
dense = loaded.layers[0]
loaded.compile("sgd", "mse")
loaded.fit(np.ones((8, 4)), np.ones((8, 3)), epochs=3, verbose=0)
a, b = np.array(dense.lora_kernel_a), np.array(dense.lora_kernel_b)
print("Keras", keras.__version__)
print("expected: `lora_kernel_b` is not zero after training, as in the model that was saved")
print("happens:  `lora_kernel_a` is zero:", not a.any(), "and `lora_kernel_b`:", not b.any())
raise SystemExit(not b.any())
