"""Modules of extras, which are imported when they are used first."""

import importlib
from typing import Any


def install_command(extra: str) -> str:
    """Returns how to install an extra, for messages. There is no release on PyPI yet.

    Args:
        extra: String, the name of the extra.
    """
    return f'`pip install ".[{extra}]"` in a clone of keras_xlnet'


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
        try:
            module = importlib.import_module(self._lazy_name)
        except ImportError as error:
            raise ImportError(
                f"This needs the package {self._lazy_name!r}, which cannot be imported ({error}): "
                f"{install_command(self._lazy_extra)}"
            ) from error
        vars(self).update(vars(module))
        return getattr(module, attribute)


sentencepiece: Any = LazyModule("sentencepiece", "text")
tf: Any = LazyModule("tensorflow", "tensorflow")
tensorflow_text: Any = LazyModule("tensorflow_text", "tensorflow")
