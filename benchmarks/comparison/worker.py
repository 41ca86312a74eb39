"""The driver's end of the process of one subject."""

import json
import os
import pathlib
import re
import signal
import subprocess
import threading

ROOT = pathlib.Path(__file__).parents[2]


class SubjectError(Exception):
    """Why a subject could not be measured, in one line."""


class Worker:
    """A process that runs `serve.py`. `facts` is its first answer.

    Raises `SubjectError` where it does not get ready, or does not answer.
    """

    def __init__(self, subject, workload, peers_dir, assets, log_file, timeout):
        self._log_file = pathlib.Path(log_file)
        self._timeout = timeout
        python = subject.python(peers_dir)
        command = [python, "-m", "benchmarks.comparison.serve", subject.module, workload.name]
        environment = {
            **os.environ,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "COMPARISON_ASSETS": str(assets),
            **subject.environment,
        }
        if not os.path.exists(python):
            raise SubjectError(f"not installed: there is no {python}")
        with open(self._log_file, "w") as log:
            self._process = subprocess.Popen(
                [*command, json.dumps(subject.options)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
                env=environment,
            )
        self.facts = self._answer()

    def repeat(self):
        """One repetition: a dict of what `serve.Meter` measured."""
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # `_answer` says why.
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
        self._wait_a_moment()
        raise SubjectError(self._reason(in_time))

    def _wait_a_moment(self):
        """For the end of a process whose output has ended, and for what it writes last."""
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.close()

    def _reason(self, in_time):
        if not in_time:
            return f"no answer in {self._timeout:.0f} s"
        if self._process.returncode < 0:
            return f"ended by {signal.Signals(-self._process.returncode).name}"
        lines = [line.strip() for line in self._log_file.read_text(errors="replace").splitlines()]
        errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Interrupt)\b", line)]
        return (errors or [line for line in lines if line] or ["no message"])[-1][:200]


class FreshWorker:
    """As `Worker`, but a process for each repetition: what is measured is how it starts.

    The first one is a warm-up: it reads the files of the libraries from disk.
    """

    def __init__(self, *arguments):
        self._arguments = arguments
        self.facts = self.repeat()

    def repeat(self):
        """One repetition: a process, which ends with it."""
        worker = Worker(*self._arguments)
        worker.close()
        return worker.facts

    def close(self):
        """Does nothing: no process is left."""
