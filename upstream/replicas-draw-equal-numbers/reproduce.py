"""Every replica draws the same numbers, so all replicas have one dropout mask."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import tensorflow as tf

processor = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

with strategy.scope():
    dropout = keras.layers.Dropout(0.5, seed=1)
drop = tf.function(lambda: dropout(tf.ones((8,)), training=True))
masks = [mask.numpy() for mask in strategy.experimental_local_results(strategy.run(drop))]
print("Keras", keras.__version__, "TensorFlow", tf.__version__)
print("expected: the replicas have different masks")
print("happens: ", *masks)
raise SystemExit(bool((masks[0] == masks[1]).all()))
