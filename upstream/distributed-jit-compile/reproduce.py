"""`jit_compile=True` under two replicas."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

processor = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

with strategy.scope():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=True)
x, y = np.ones((16, 3), "float32"), np.ones((16, 1), "float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(4, drop_remainder=True)
print("Keras", keras.__version__, "TensorFlow", tf.__version__)
print("expected: `fit` trains, as it does on one device")
try:
    print("happens:  loss", model.fit(data, verbose=0).history["loss"])
except Exception as error:
    print("happens: ", type(error).__name__, str(error)[-300:])
    raise SystemExit(1) from None
