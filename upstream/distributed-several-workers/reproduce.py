"""`fit` under a `MultiWorkerMirroredStrategy`: this program starts itself twice."""

import json
import os
import socket
import subprocess
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

if len(sys.argv) == 1:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        ports = [s.getsockname()[1] for s in (first, second)]
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    workers = []
    for index in range(2):
        task = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
        environment = {**os.environ, "TF_CONFIG": task, "CUDA_VISIBLE_DEVICES": ""}
        command = [sys.executable, __file__, "worker"]
        # What the workers print is the same: that of the second is not shown.
        quiet = None if index == 0 else subprocess.DEVNULL
        workers.append(subprocess.Popen(command, env=environment, stdout=quiet))
    raise SystemExit(int(any([worker.wait(timeout=300) for worker in workers])))

import tensorflow as tf

if len(sys.argv) == 2:
    # Before anything else of TensorFlow is used.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

import keras
import numpy as np

with strategy.scope():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
x, y = np.ones((16, 3), "float32"), np.ones((16, 1), "float32")
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(4, drop_remainder=True)
print("Keras", keras.__version__, "TensorFlow", tf.__version__)
print("expected: `fit` trains, as it does in one process")
try:
    print("happens:  loss", model.fit(data.with_options(options), verbose=0).history["loss"])
except Exception as error:
    print("happens: ", type(error).__name__, str(error)[:300], flush=True)
    os._exit(1)  # Without the barrier at exit, at which the other worker may be missing.
