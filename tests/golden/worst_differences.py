"""Prints the worst difference to the original's numbers, group by group.

    python tests/golden/worst_differences.py

Runs the golden tests and collects what every comparison in them found.
"""

import collections
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
TESTS = [
    "tests/layers/test_layers_golden.py",
    "tests/models/test_xlnet_permutation_lm_golden.py",
    "tests/models/test_xlnet_backbone_golden.py",
    "tests/models/test_xlnet_text_classifier.py",
    "tests/models/test_task_models_golden.py",
]


class WorstDifferences:
    """A pytest plugin that listens to `numpy.testing.assert_allclose`."""

    def __init__(self):
        self.worst = collections.defaultdict(float)
        self.current = None
        self.compare = np.testing.assert_allclose

    def pytest_runtest_setup(self, item):
        self.current = item.originalname if "golden" in item.fixturenames else None

    def listen(self, actual, desired, *args, **kwargs):
        if self.current:
            # In float64 and on the host, whatever the backend's tensor is.
            a, d = (np.asarray(x, dtype="float64") for x in (actual, desired))
            self.worst[self.current] = max(self.worst[self.current], float(np.abs(a - d).max()))
        return self.compare(actual, desired, *args, **kwargs)


def main():
    plugin = WorstDifferences()
    np.testing.assert_allclose = plugin.listen
    os.chdir(ROOT)
    arguments = [
        "-q",
        "--no-header",
        "-p",
        "no:warnings",
        "-k",
        "golden or original or tied or pooling",
    ]
    status = pytest.main([*arguments, *TESTS], plugins=[plugin])
    print("\nworst absolute difference to the original")
    for name, difference in sorted(plugin.worst.items(), key=lambda item: -item[1]):
        print(f"  {difference:.1e}  {name}")
    return status


if __name__ == "__main__":
    sys.exit(main())
