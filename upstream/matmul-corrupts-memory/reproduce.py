"""`tf.matmul` of (B, 1, T, D) and (1, 1, D, R) with oneDNN writes beyond its buffer."""

import os
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

if len(sys.argv) == 1:
    # In a process of its own, because it is killed.
    status = subprocess.run([sys.executable, __file__, "multiply"]).returncode
    print("expected: exit status 0")
    print("happens:  exit status", status, "(-11 is SIGSEGV, -6 is SIGABRT, 1 is a wrong product)")
    raise SystemExit(status != 0)

import numpy as np
import tensorflow as tf

print("TensorFlow", tf.__version__, flush=True)
rng = np.random.default_rng(0)
for batch, rows, depth, columns in [(4, 6, 8, 12), (8, 128, 64, 256)]:
    a = rng.normal(size=(batch, 1, rows, depth)).astype("float32")
    b = rng.normal(size=(1, 1, depth, columns)).astype("float32")
    for _ in range(10):
        error = np.abs(tf.matmul(a, b).numpy() - a @ b).max()
        if not error < 1e-3:
            print(f"{a.shape} x {b.shape}: wrong by {error}", flush=True)
            raise SystemExit(1)
