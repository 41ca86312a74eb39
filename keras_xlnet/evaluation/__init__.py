"""How good a language model is."""

from keras_xlnet.evaluation.perplexity import Perplexity

__all__ = ["Perplexity"]
