"""Models in other programs: mteb, lm-eval and spaCy.

A name is imported when it is first used, because its file needs the program.
"""

import importlib

from keras_xlnet.lazy_modules import requires_extra

# The file of each name.
_FILES = {
    "MTEBEncoder": "mteb_encoder",
    "HarnessLM": "harness_lm",
}
__all__ = [*_FILES]


def __getattr__(name):
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with requires_extra("integrations", f"`{__name__}.{name}`"):
        module = importlib.import_module(f"{__name__}.{_FILES[name]}")
    return getattr(module, name)
