"""Checkpoints of other implementations, in and out."""

from keras_xlnet.checkpoints.original import load_original

__all__ = ["load_original"]
