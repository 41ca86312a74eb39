"""`import tensorflow` writes to stderr, whatever TF_CPP_MIN_LOG_LEVEL is."""

import os
import subprocess
import sys

environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
command = [sys.executable, "-c", "import tensorflow as tf; print('TensorFlow', tf.__version__)"]
run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
print(run.stdout.strip())
print("expected: nothing on stderr with TF_CPP_MIN_LOG_LEVEL=3")
print("happens: ", *(f"\n{line[:120]}" for line in run.stderr.splitlines()) or ["nothing"])
raise SystemExit(bool(run.stderr.strip()))
