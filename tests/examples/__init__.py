"""What the tests of the examples have in common."""

import csv
import pathlib
import subprocess
import sys

from tests.forks import fork_program

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES, RESEARCH = ROOT / "examples", ROOT / "research"


def run_example(name, *arguments, timeout=420):
    """Runs an example as its users do, in a new process, and returns what it did."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


def fork_example(name, *arguments):
    """Does the same without the time of the imports: for all but one run of an example."""
    return fork_program(EXAMPLES / f"{name}.py", *arguments)


def assert_one_error(result, message):
    """Fails unless a run ended with one error, in one line, with a message in it."""
    assert result.returncode == 1
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and message in errors[0]
    assert "Traceback" not in result.stderr


def spam_messages():
    """Returns the texts of `spam_messages.tsv`."""
    with open(EXAMPLES / "data" / "spam_messages.tsv", encoding="utf-8") as file:
        return [row[1] for row in csv.reader(file, "excel-tab", quoting=csv.QUOTE_NONE)][1:]
