"""Packages of extras: imported when they are used first, and named if they are missing."""

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

# What else to know before an extra is installed.
_NOTES = {
    "onnx": ". On Linux, torch brings several GB of CUDA libraries, unless its CPU build is there "
    "first: `pip install torch --index-url https://download.pytorch.org/whl/cpu`"
}


def install_command(extra: str) -> str:
    """Returns how to install an extra, for messages. There is no release on PyPI yet.

    Args:
        extra: String, the name of the extra.
    """
    return f'`pip install ".[{extra}]"` in a clone of keras_xlnet{_NOTES.get(extra, "")}'


@contextlib.contextmanager
def requires_extra(extra: str, user: str) -> Iterator[None]:
    """Says in the `ImportError` of a block which extra installs the package that is missing.

    Args:
        extra: String, the name of the extra.
        user: String, what the message begins with: what needs the package.

    Raises:
        ImportError: If a package that is not this one cannot be imported in the block.
    """
    try:
        yield
    except ImportError as error:
        # A library that cannot be loaded has no name.
        package = (error.name or extra).partition(".")[0]
        if package == __name__.partition(".")[0]:  # No package of an extra, or named already.
            raise
        raise ImportError(
            f"{user} needs the package {package!r}, which cannot be imported ({error}): "
            f"{install_command(extra)}"
        ) from error


class LazyModule:
    """A module that is imported when one of its attributes is read.

    Args:
        name: String, the name of the module.
        extra: String, the extra of this package that installs it.

    Raises:
        ImportError: When an attribute is read, if the module is not installed.
    """

    def __init__(self, name: str, extra: str) -> None:
        self._lazy_name = name
        self._lazy_extra = extra

    def __getattr__(self, attribute: str) -> Any:
        with requires_extra(self._lazy_extra, "This"):
            module = importlib.import_module(self._lazy_name)
        vars(self).update(vars(module))
        return getattr(module, attribute)


sentencepiece: Any = LazyModule("sentencepiece", "text")
tf: Any = LazyModule("tensorflow", "tensorflow")
tensorflow_text: Any = LazyModule("tensorflow_text", "tensorflow")
