"""Metrics of language models."""

from keras_xlnet.evaluation.perplexity import Perplexity

__all__ = ["Perplexity"]
