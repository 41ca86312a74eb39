"""Keras 3 layers and models for XLNet and Transformer-XL."""

from keras_xlnet import (
    checkpoints,
    compat,
    evaluation,
    layers,
    models,
    ops,
    preset_files,
    pretraining,
    serving,
    text,
    training,
)
from keras_xlnet.preset_files import presets

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
    "text",
    "training",
]
