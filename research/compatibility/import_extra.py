"""Imports this package and every package that it and its extras name, where they are installed."""

import importlib.metadata
import importlib.util
import os
import re

from reading import report

_BACKENDS = ("tensorflow", "jax", "torch")


def imported():
    """Returns 0 after all imports, so that the cell of the table is "equal"."""
    backends = [name for name in _BACKENDS if importlib.util.find_spec(name)]
    # The backend of the extra. Keras itself can't be imported without one.
    if backends:
        os.environ["KERAS_BACKEND"] = backends[0]
        importlib.import_module("keras_xlnet.models")
    for module in modules():
        if backends or not module.startswith("keras"):
            importlib.import_module(module)
    return 0


def modules():
    """Returns the names of the modules of installed packages that this package requires."""
    by_module = importlib.metadata.packages_distributions()
    required = importlib.metadata.requires("xlnet-keras")
    required = {normalized(re.match(r"[\w.-]+", line)[0]) for line in required}
    # Commands without a module, and helpers with an underscore, are left out.
    return sorted(
        module
        for module, packages in by_module.items()
        if required & {*map(normalized, packages)} and module.isidentifier() and module[0] != "_"
    )


def normalized(name):
    return re.sub(r"[-_.]+", "-", name).lower()


report(["xlnet-keras", "numpy"], imported=imported)
