"""Tokenizer and preprocessor: strings to ids and back, in the TensorFlow graph."""

from keras_xlnet.text.preprocessor import XLNetPreprocessor
from keras_xlnet.text.tokenizer import XLNetTokenizer

__all__ = ["XLNetPreprocessor", "XLNetTokenizer"]
