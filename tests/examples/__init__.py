"""What the tests of the examples have in common."""

import multiprocessing
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"

# A process that has imported what the examples import, which takes seconds. Each run is a fork of
# it: nothing of one run is left in the next.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        *("absl.app", "matplotlib.pyplot", "scipy.stats", "sklearn.linear_model"),
        *(f"keras_xlnet.{room}" for room in ("models", "pretraining", "serving", "training")),
    ]
)


def run_example(name, *arguments, timeout=420):
    """Runs an example as its users do, in a new process, and returns what it did."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


def fork_example(name, *arguments, timeout=420):
    """Does the same without the time of the imports: for all but one run of an example."""
    command = [str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        outputs = [pathlib.Path(folder, stream) for stream in ("stdout", "stderr")]
        process = _FORKS.Process(target=_run, args=(command, *outputs))
        process.start()
        process.join(timeout)
        if process.is_alive():
            process.kill()
            raise subprocess.TimeoutExpired(command, timeout)
        stdout, stderr = (path.read_text(encoding="utf-8") for path in outputs)
    return subprocess.CompletedProcess(command, process.exitcode, stdout, stderr)


def _run(command, stdout, stderr):
    for stream, path in ((1, stdout), (2, stderr)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    # Under pytest the streams of Python are not those of the process.
    sys.stdout, sys.stderr = (open(stream, "w", encoding="utf-8") for stream in (1, 2))
    sys.argv = command
    sys.path.insert(0, os.path.dirname(command[0]))
    runpy.run_path(command[0], run_name="__main__")


def assert_one_error(result, message):
    """Fails unless a run ended with one error, in one line, with a message in it."""
    assert result.returncode == 1
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and message in errors[0]
    assert "Traceback" not in result.stderr
