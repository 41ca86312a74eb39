"""Keras 3 layers and models for XLNet and Transformer-XL."""

import contextlib
import importlib

from keras_xlnet.quiet_start import quiet_start

with quiet_start():
    import keras

if tuple(map(int, keras.__version__.split(".")[:2])) < (3, 12):
    raise ImportError(
        f"keras_xlnet needs Keras 3.12 or newer: pip install -U keras. Found: {keras.__version__}"
    )

from keras_xlnet import (
    checkpoints,
    compat,
    evaluation,
    layers,
    models,
    ops,
    preprocessing,
    preset_files,
    task_files,
    tokenizers,
    training,
)
from keras_xlnet.preset_files import adapters, presets, upload_preset

__version__ = "0.1.0"

__all__ = [
    "adapters",
    "checkpoints",
    "compat",
    "evaluation",
    "layers",
    "models",
    "ops",
    "preprocessing",
    "preset_files",
    "presets",
    "pretraining",
    "serving",
    "task_files",
    "tokenizers",
    "training",
    "upload_preset",
]

# These read and write files of TensorFlow, on every backend.
_OF_TENSORFLOW = ("pretraining", "serving")
# Rooms that need packages of extras, and say so when they are imported.
_WHEN_USED = (*_OF_TENSORFLOW, "integrations", "server", "visualization")


def __getattr__(name):
    if name in _WHEN_USED:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if keras.backend.backend() == "tensorflow":
    # TensorFlow is loaded anyway. Keras then finds all classes in saved models.
    with contextlib.suppress(ImportError), quiet_start():
        for _name in _OF_TENSORFLOW:
            importlib.import_module(f"{__name__}.{_name}")
