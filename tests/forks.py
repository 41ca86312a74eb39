"""Runs programs in forks of a process that has imported TensorFlow, which takes seconds."""

import multiprocessing
import os
import pathlib
import re
import runpy
import subprocess
import sys
import tempfile

# What the programs import. Nothing of one run is left in the next.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        *("absl.app", "matplotlib.pyplot", "scipy.stats", "sklearn.linear_model"),
        *(f"keras_xlnet.{room}" for room in ("models", "pretraining", "serving", "training")),
    ]
)


def fork_program(path, *arguments, timeout=420):
    """Runs a Python file in a process of its own, and returns what it did."""
    command = [str(path), *map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        outputs = [pathlib.Path(folder, stream) for stream in ("stdout", "stderr")]
        process = _FORKS.Process(target=_run, args=(command, *outputs))
        process.start()
        process.join(timeout)
        if process.is_alive():
            process.kill()
            raise subprocess.TimeoutExpired(command, timeout)
        stdout, stderr = (path.read_text(encoding="utf-8") for path in outputs)
        # After a crash: several thousand characters of names behind the stacks of the threads.
        stderr = re.sub(r"^Extension modules: .*$", "", stderr, flags=re.MULTILINE)
    return subprocess.CompletedProcess(command, process.exitcode, stdout, stderr)


def _run(command, stdout, stderr):
    for stream, path in ((1, stdout), (2, stderr)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    # Under pytest the streams of Python are not those of the process.
    sys.stdout, sys.stderr = (open(stream, "w", encoding="utf-8") for stream in (1, 2))
    sys.argv = command
    sys.path.insert(0, os.path.dirname(command[0]))
    runpy.run_path(command[0], run_name="__main__")
