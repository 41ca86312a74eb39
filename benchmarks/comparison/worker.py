"""The driver's end of the process of one subject."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading

ROOT = pathlib.Path(__file__).parents[2]


class SubjectError(Exception):
    """The reason why a subject could not be measured, in one line."""


class Worker:
    """A process that runs `serve.py`. `facts` is its first answer.

    Raises `SubjectError` if it does not become ready or does not answer.
    """

    def __init__(self, subject, workload, peers_dir, assets, log_file, timeout):
        self._log_file, self._timeout = pathlib.Path(log_file), timeout
        python = subject.python(peers_dir)
        if not os.path.exists(python):
            raise SubjectError(f"not installed: there is no {python}")
        command = [python, "-m", "benchmarks.comparison.serve", subject.module, workload.name]
        environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "COMPARISON_ASSETS": str(assets)}
        with open(self._log_file, "w") as log:
            self._process = subprocess.Popen(
                [*command, json.dumps(subject.options)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
                env=os.environ | environment | subject.environment,
            )
        self.facts = self._answer()

    def repeat(self):
        """Returns what `serve.Meter` measured in one repetition, a dict."""
        with contextlib.suppress(BrokenPipeError):  # `_answer` says why.
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        return self._answer()

    def close(self):
        self._process.kill()
        self._process.wait()

    def _answer(self):
        timer = threading.Timer(self._timeout, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        in_time = timer.is_alive()
        timer.cancel()
        if line:
            return json.loads(line)
        # Waits for the end of the process, and for its last lines in the log.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self._process.kill()
        code = self._process.wait()
        if not in_time:
            raise SubjectError(f"no answer in {self._timeout:.0f} s")
        if code < 0:
            raise SubjectError(f"ended by {signal.Signals(-code).name}")
        lines = [line.strip() for line in self._log_file.read_text(errors="replace").splitlines()]
        errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Interrupt)\b", line)]
        raise SubjectError((errors or [*filter(None, lines)] or ["no message"])[-1][:200])


class FreshWorker:
    """Measures the start of a process: as `Worker`, with a new process for each repetition.

    The first one is a warm-up: it reads the files of the libraries from disk.
    """

    def __init__(self, *arguments):
        self._arguments = arguments
        self.facts = self.repeat()

    def repeat(self):
        """Returns the measurement of a new process, which then ends."""
        worker = Worker(*self._arguments)
        worker.close()
        return worker.facts

    def close(self):
        """Does nothing: no process is left."""
