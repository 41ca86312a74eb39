"""What the readers of this folder share. It needs only NumPy."""

import importlib.metadata
import json
import pathlib
import platform
import sys

import numpy as np

DIRECTORY = pathlib.Path(sys.argv[1])
ARRAYS = np.load(DIRECTORY / "expected.npz")
LISTS = json.loads((DIRECTORY / "expected.json").read_text(encoding="utf-8"))


def report(packages, **readers):
    """Prints a line of JSON: what each reader returns, or its error.

    Args:
        packages: Names of the packages whose versions are printed.
        **readers: Functions that return the largest difference from the Python model.
    """
    found = {}
    for name, read in readers.items():
        try:
            found[name] = float(read())
        except (Exception, SystemExit) as error:
            message = str(error).strip() or "no message"
            for folder in sys.argv[1:]:
                message = message.replace(f"{folder}/", "")
            found[name] = f"{type(error).__name__}: {message.splitlines()[0][:300]}"
    versions = {name: importlib.metadata.version(name) for name in packages}
    print(json.dumps({"python": platform.python_version(), "versions": versions, "found": found}))


def difference(values, name):
    """Returns the largest difference from an array that `write_artifacts.py` wrote."""
    values, expected = np.asarray(values), ARRAYS[name]
    if values.shape != expected.shape:
        raise ValueError(f"The shape is {values.shape}, not {expected.shape}")
    return np.abs(values.astype("float64") - expected).max()


def check_equal(values, name):
    """Raises an error if a list is not one that `write_artifacts.py` wrote."""
    pairs = zip(values, LISTS[name], strict=True)
    unequal = [i for i, (found, expected) in enumerate(pairs) if found != expected]
    if unequal:
        raise ValueError(f"{name} of {len(unequal)} texts differ, for example of text {unequal[0]}")
