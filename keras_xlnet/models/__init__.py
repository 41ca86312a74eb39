"""Functional models made of the layers."""

from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.models.xlnet_permutation_lm import XLNetPermutationLM
from keras_xlnet.models.xlnet_text_classifier import XLNetTextClassifier

__all__ = ["XLNetBackbone", "XLNetPermutationLM", "XLNetTextClassifier"]
