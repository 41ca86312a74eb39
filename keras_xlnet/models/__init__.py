"""Functional models made of the layers."""

from keras_xlnet.models.xlnet_backbone import XLNetBackbone

__all__ = ["XLNetBackbone"]
