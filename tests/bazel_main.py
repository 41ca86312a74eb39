"""Runs pytest on the files that a Bazel test target names. `make test` does not use it."""

import os
import sys

import pytest


class _Deselected:
    """Counts the tests that `-m` or `-k` left out."""

    def __init__(self):
        self.count = 0

    def pytest_deselected(self, items):
        self.count += len(items)


def main(arguments):
    # Keras writes its configuration at import; a sandbox has no home folder for it.
    os.environ.setdefault("KERAS_HOME", os.environ["TEST_TMPDIR"])
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    options = [
        "--config-file=pyproject.toml",
        "--rootdir=.",
        f"--basetemp={os.environ['TEST_TMPDIR']}/pytest",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
    ]
    if "XML_OUTPUT_FILE" in os.environ:
        options.append(f"--junitxml={os.environ['XML_OUTPUT_FILE']}")
    if "TESTBRIDGE_TEST_ONLY" in os.environ:  # bazel test --test_filter=...
        options += ["-k", os.environ["TESTBRIDGE_TEST_ONLY"]]
    deselected = _Deselected()
    code = pytest.main(options + arguments, plugins=[deselected])
    # A file whose tests are all slow has nothing to run here; a file without tests is a mistake.
    if code == pytest.ExitCode.NO_TESTS_COLLECTED and deselected.count:
        return 0
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
