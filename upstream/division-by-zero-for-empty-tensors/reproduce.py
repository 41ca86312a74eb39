"""Ones times an empty tensor that is broadcast: the graph optimizer divides by zero."""

import os
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

if len(sys.argv) == 1:
    # In a process of its own, because it is killed.
    status = subprocess.run([sys.executable, __file__, "multiply"]).returncode
    print("expected: exit status 0")
    print("happens:  exit status", status, "(-8 is SIGFPE)")
    raise SystemExit(status != 0)

import tensorflow as tf

print("TensorFlow", tf.__version__, flush=True)
multiply = tf.function(lambda x: tf.ones((2, 0, 3)) * tf.exp(x))
print(multiply(tf.zeros((2, 0, 1))).shape)
