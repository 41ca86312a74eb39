"""Measures the memory that loading a large model takes, as a ratio to the bytes of its weights.

    python benchmarks/checkpoint_memory.py

Makes a random model of a released size, writes it in every format, and loads each in a process of
its own. The peak is that of the process (ru_maxrss) above its value after TensorFlow was started
and a tiny model was loaded from the same format. Takes about 2 minutes and 8 GB for XLNet-Large.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags

from keras_xlnet.checkpoints import FORMATS, load_checkpoint, save_checkpoint
from keras_xlnet.models import XLNetBackbone

FLAGS = flags.FLAGS
flags.DEFINE_string("size", "xlnet_large", "A name for XLNetBackbone.from_config_name.")
flags.DEFINE_string("folder", None, "Used by the command itself: where the models are.")
flags.DEFINE_string("format", None, "Used by the command itself: load this format, or write all.")


def main(_):
    if FLAGS.format:
        measure(pathlib.Path(FLAGS.folder), FLAGS.format)
    elif FLAGS.folder:
        write(pathlib.Path(FLAGS.folder))
    else:
        with tempfile.TemporaryDirectory() as folder:
            report(folder)


def report(folder):
    """Prints a table. Every model is loaded in a new process, whose peak is only its own."""
    in_process(folder)
    print(f"{'format':12}{'weights':>12}{'peak above':>12}{'ratio':>8}{'seconds':>9}")
    for format in FORMATS:
        row = json.loads(in_process(folder, "--format", format).splitlines()[-1])
        print(
            f"{format:12}{row['weights']:8.0f} MiB{row['peak']:8.0f} MiB"
            f"{row['peak'] / row['weights']:8.2f}{row['seconds']:9.1f}"
        )


def in_process(folder, *arguments):
    """Runs this file with more arguments. Returns its output."""
    command = [sys.executable, __file__, "--size", FLAGS.size, "--folder", folder, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def write(folder):
    """Writes the model, and a tiny one, in every format."""
    for name in (FLAGS.size, "xlnet_tiny"):
        model = XLNetBackbone.from_config_name(name)
        for format in FORMATS:
            save_checkpoint(model, folder / f"{name}-{format}", format)


def measure(folder, format):
    """Prints a line of JSON: MiB of the weights and of the peak, and seconds."""
    load_checkpoint(folder / f"xlnet_tiny-{format}", format)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    model = load_checkpoint(folder / f"{FLAGS.size}-{format}", format)
    seconds = time.perf_counter() - start
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10
    print(
        json.dumps({"weights": model.count_params() * 4 / 2**20, "peak": peak, "seconds": seconds})
    )


if __name__ == "__main__":
    app.run(main)
