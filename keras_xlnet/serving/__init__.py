"""Export of SavedModels whose signatures take text, for TF Serving and other programs."""

from keras_xlnet.serving.text_classifier_export import export_text_classifier

__all__ = ["export_text_classifier"]
