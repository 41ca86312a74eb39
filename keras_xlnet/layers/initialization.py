"""How XLNet draws its first weights, and how one seed serves many random sublayers."""

import keras
import numpy as np


def get_kernel_initializer(identifier):
    """Resolves an initializer identifier; `None` is XLNet's own: normal, deviation 0.02."""
    if identifier is None:
        return keras.initializers.RandomNormal(stddev=0.02)
    return keras.initializers.get(identifier)


def clone_initializer(initializer):
    """A fresh copy: an unseeded Keras initializer gives the same numbers each time it is used."""
    return initializer.__class__.from_config(initializer.get_config())


def spawn_seeds(seed, count):
    """`count` independent seeds from one, or that many `None` for `None`."""
    if seed is None:
        return [None] * count
    return [int(s) for s in np.random.SeedSequence(seed).generate_state(count) >> 1]
