"""Functional models made of the layers."""

from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.models.xlnet_text_classifier import XLNetTextClassifier

__all__ = ["XLNetBackbone", "XLNetTextClassifier"]
