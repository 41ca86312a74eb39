"""Export of models that take text, for TF Serving and other programs."""

from keras_xlnet.serving.exporting import export

__all__ = ["export"]
