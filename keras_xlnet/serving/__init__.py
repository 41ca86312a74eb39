"""SavedModels that take raw text, for TF Serving and for any other reader of SavedModels."""

from keras_xlnet.serving.export_text_classifier import export_text_classifier

__all__ = ["export_text_classifier"]
