"""Metrics of language models."""

from keras_xlnet.evaluation.bits_per_character import BitsPerCharacter
from keras_xlnet.evaluation.perplexity import Perplexity

__all__ = ["BitsPerCharacter", "Perplexity"]
