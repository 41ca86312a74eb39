"""Keras 3 layers and models for XLNet and Transformer-XL."""

import contextlib
import importlib

import keras

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
from keras_xlnet.lazy_modules import install_command
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


def __getattr__(name):
    if name in _OF_TENSORFLOW:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            raise ImportError(
                f"`keras_xlnet.{name}` needs the package {error.name!r}: "
                f"{install_command('tensorflow')}"
            ) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if keras.backend.backend() == "tensorflow":
    # TensorFlow is loaded anyway. Keras then finds all classes in saved models.
    with contextlib.suppress(ImportError):
        for _name in _OF_TENSORFLOW:
            importlib.import_module(f"{__name__}.{_name}")
