"""TensorFlow warns of retracing although each `tf.function` is traced once."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import logging

import tensorflow as tf


class Doubles:
    def __init__(self):
        self.double = tf.function(self._double)

    def _double(self, x):
        return 2 * x


records = []
handler = logging.Handler()
handler.emit = records.append
tf.get_logger().addHandler(handler)
objects = [Doubles() for _ in range(6)]
for item in objects:
    for _ in range(2):
        item.double(tf.zeros(3))
traces = [item.double.experimental_get_tracing_count() for item in objects]
warnings = [record.getMessage() for record in records if "retracing" in record.getMessage()]
print("TensorFlow", tf.__version__)
print("expected: no warning of retracing")
print(f"happens:  {len(warnings)} warnings; the functions are traced {traces} times")
raise SystemExit(int(bool(warnings)))
