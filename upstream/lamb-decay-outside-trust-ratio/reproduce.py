"""Weight decay of `keras.optimizers.Lamb` is not part of the update that the trust ratio scales."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np

WEIGHTS, GRADIENT = np.array([3.0, 4.0], "float32"), np.array([1.0, -1.0], "float32")
RATE, DECAY = 0.1, 0.5

variable = keras.Variable(WEIGHTS)
optimizer = keras.optimizers.Lamb(RATE, weight_decay=DECAY, epsilon=1e-12)
optimizer.apply([GRADIENT], [variable])

# Algorithm 2 of the paper (You et al. 2019). In the first step, the moments give the sign.
update = np.sign(GRADIENT) + DECAY * WEIGHTS
ratio = np.linalg.norm(WEIGHTS) / np.linalg.norm(update)
expected = WEIGHTS - RATE * ratio * update
actual = variable.numpy()
print("Keras", keras.__version__)
print("expected:", expected)
print("happens: ", actual)
raise SystemExit(bool(np.abs(actual - expected).max() > 1e-4))
