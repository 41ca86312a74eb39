"""Checkpoints of other implementations, in and out."""

from keras_xlnet.checkpoints.huggingface import load_huggingface, save_huggingface
from keras_xlnet.checkpoints.original import load_original, save_original

__all__ = ["load_huggingface", "load_original", "save_huggingface", "save_original"]
