"""Metrics of language models, and how they predict long texts."""

from keras_xlnet.evaluation.bits_per_character import BitsPerCharacter
from keras_xlnet.evaluation.context_length import effective_context_lengths
from keras_xlnet.evaluation.corpus import corpus_log_probs, sliding_log_probs
from keras_xlnet.evaluation.perplexity import Perplexity

__all__ = [
    "BitsPerCharacter",
    "Perplexity",
    "corpus_log_probs",
    "effective_context_lengths",
    "sliding_log_probs",
]
