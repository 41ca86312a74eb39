"""Metrics of language models, and log-probabilities of long texts."""

from keras_xlnet.evaluation.bits_per_character import BitsPerCharacter
from keras_xlnet.evaluation.corpus import corpus_log_probs
from keras_xlnet.evaluation.perplexity import Perplexity

__all__ = ["BitsPerCharacter", "Perplexity", "corpus_log_probs"]
