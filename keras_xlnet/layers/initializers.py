"""Initializers of XLNet, and independent seeds for the random sublayers of a layer."""

import zlib
from typing import Any

import keras
import numpy as np

from keras_xlnet.types import Initializer


def get_kernel_initializer(identifier: Initializer | None) -> keras.initializers.Initializer:
    """Returns the initializer of an identifier; `None` is XLNet's, normal(0, 0.02)."""
    if identifier is None:
        return keras.initializers.RandomNormal(stddev=0.02)
    return keras.initializers.get(identifier)


def clone_initializer(
    initializer: keras.initializers.Initializer,
) -> keras.initializers.Initializer:
    """Returns a copy, because an initializer without a seed returns the same numbers each time."""
    return initializer.__class__.from_config(initializer.get_config())


def spawn_seeds(seed: int | None, count: int, owner: str) -> Any:
    """Returns independent seeds for the parts of a layer or a model.

    Args:
        seed: Int, or `None`.
        count: Int, the number of seeds.
        owner: String, the name of the class that the parts belong to. A model and its head have
            the same `seed`; they get different seeds because their owners differ.

    Returns:
        A list of `count` ints, or of `count` times `None` for `seed=None`.
    """
    if seed is None:
        return [None] * count
    sequence = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(owner.encode()),))
    return [int(s) for s in sequence.generate_state(count) >> 1]
