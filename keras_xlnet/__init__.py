"""Keras 3 layers and models for XLNet and Transformer-XL."""

from keras_xlnet import (
    checkpoints,
    evaluation,
    layers,
    models,
    presets,
    pretraining,
    serving,
    text,
    training,
)

__version__ = "0.1.0"

__all__ = [
    "checkpoints",
    "evaluation",
    "layers",
    "models",
    "presets",
    "pretraining",
    "serving",
    "text",
    "training",
]
