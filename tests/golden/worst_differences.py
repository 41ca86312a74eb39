"""Prints the worst differences to the original's numbers as the table of docs/accuracy.md.

    python tests/golden/worst_differences.py         # about a minute on 2 cores

Runs the tests of the numeric code that use golden numbers, and records what
`numpy.testing.assert_allclose` compares in them. Ids and masks are compared exactly and are not in
the table.
"""

import collections
import os
import pathlib
import platform
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
ROOMS = ("ops", "layers", "models", "training")


class WorstDifferences:
    """A pytest plugin that selects the golden tests and records their comparisons."""

    def __init__(self):
        self.worst = collections.defaultdict(float)
        self.current = None
        self.compare = np.testing.assert_allclose

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if "golden" in item.fixturenames]

    def pytest_runtest_setup(self, item):
        room = item.path.parent.name
        self.current = room, item.originalname.removeprefix("test_").replace("_", " ")

    def assert_allclose(self, actual, desired, *args, **kwargs):
        # Raises where numbers differ: some tests expect that, and such numbers are not recorded.
        self.compare(actual, desired, *args, **kwargs)
        # In float64 and on the host, whatever the backend's tensor is.
        a, d = (np.asarray(x, dtype="float64") for x in (actual, desired))
        self.worst[self.current] = max(self.worst[self.current], float(np.abs(a - d).max()))


def main():
    plugin = WorstDifferences()
    np.testing.assert_allclose = plugin.assert_allclose
    os.chdir(ROOT)
    folders = [f"tests/{room}" for room in ROOMS if pathlib.Path("tests", room).is_dir()]
    status = pytest.main(["-q", "--no-header", "--disable-warnings", *folders], plugins=[plugin])
    print(f"\n{machine()}\n")
    print("| compared with the original | worst absolute difference |\n| --- | ---: |")
    for (room, name), difference in sorted(plugin.worst.items()):
        print(f"| {room}: {name} | {difference:.1e} |")
    return status


def machine():
    """Returns processor, versions and commit in one line."""
    names = [platform.processor() or platform.machine()]
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        names += [line.split(": ")[1] for line in lines if line.startswith("model name")]
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    backend = keras.backend.backend()
    return (
        f"{names[-1]}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"Keras {keras.__version__} on {backend}, commit {commit.stdout.strip() or 'unknown'}"
    )


if __name__ == "__main__":
    sys.exit(main())
