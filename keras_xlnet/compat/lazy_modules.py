"""TensorFlow, imported when it is first used.

Upstream: TensorFlow takes seconds to import, and on JAX and PyTorch only `tf.data`, SavedModels and
records need it. A `LazyLoader` of `importlib` cannot say what to install.
Seen in: Python 3.10 to 3.13.
Reproduction: `import tensorflow` without TensorFlow says nothing of `pip install`.
Delete this file when: Python has lazy imports (PEP 810), in 3.15.
"""

import importlib
from typing import Any


class LazyModule:
    """A module that is imported when one of its attributes is read.

    Args:
        name: String, the name of the module.

    Raises:
        ImportError: When an attribute is read, if the module is not installed.
    """

    def __init__(self, name: str) -> None:
        self._lazy_name = name

    def __getattr__(self, attribute: str) -> Any:
        try:
            module = importlib.import_module(self._lazy_name)
        except ImportError as error:
            raise ImportError(
                f"This needs {self._lazy_name}, which cannot be imported ({error}): "
                'pip install "xlnet-keras[text]"'
            ) from error
        vars(self).update(vars(module))
        return getattr(module, attribute)


tf: Any = LazyModule("tensorflow")
tensorflow_text: Any = LazyModule("tensorflow_text")
