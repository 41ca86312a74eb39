"""Keras 3 layers and models for XLNet and Transformer-XL."""

import contextlib
import importlib

import keras

from keras_xlnet import (
    compat,
    evaluation,
    layers,
    models,
    ops,
    preset_files,
    task_files,
    training,
)
from keras_xlnet.preset_files import presets, upload_preset

__version__ = "0.1.0"

__all__ = [
    "compat",
    "checkpoints",
    "evaluation",
    "layers",
    "models",
    "ops",
    "preset_files",
    "presets",
    "pretraining",
    "serving",
    "task_files",
    "text",
    "training",
    "upload_preset",
]

# These need sentencepiece, which layers and models do not need.
_OF_TEXT = ("text", "checkpoints", "pretraining", "serving")


def __getattr__(name):
    if name in _OF_TEXT:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            raise ImportError(
                f"`keras_xlnet.{name}` needs the package {error.name!r}: "
                'pip install "xlnet-keras[text]"'
            ) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if keras.backend.backend() == "tensorflow":
    # TensorFlow is loaded anyway. Keras then finds tokenizers and preprocessors in saved models.
    with contextlib.suppress(ImportError):
        for _name in _OF_TEXT:
            importlib.import_module(f"{__name__}.{_name}")
