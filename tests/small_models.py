"""Models that run in milliseconds, with weights large enough to tell right from wrong."""

import keras

from keras_xlnet import models
from keras_xlnet.models import XLNetBackbone

PUBLIC_MODELS = [
    cls
    for cls in map(vars(models).get, models.__all__)
    if isinstance(cls, type) and issubclass(cls, keras.Model) and cls is not models.Task
]


def small_backbone(**arguments):
    """A backbone of one layer, without dropout: in training it computes what it does afterwards.

    Its weights depend on `keras.utils.set_random_seed`. Arguments are those of `XLNetBackbone`.
    """
    defaults = {
        "vocabulary_size": 200,  # Of the golden tokenizer.
        "num_layers": 1,
        "num_heads": 2,
        "hidden_dim": 16,
        "intermediate_dim": 32,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "kernel_initializer": "glorot_normal",
    }
    return XLNetBackbone(**{**defaults, **arguments})
