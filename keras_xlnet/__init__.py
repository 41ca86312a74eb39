"""Keras 3 layers and models for XLNet and Transformer-XL."""

__version__ = "0.1.0"
