"""Tokenizer and preprocessor: strings to ids and back, in the TensorFlow graph."""

from keras_xlnet.text.preprocessor import XLNetPreprocessor
from keras_xlnet.text.question_answering_preprocessor import XLNetQuestionAnsweringPreprocessor
from keras_xlnet.text.token_offsets import TokenOffsets
from keras_xlnet.text.tokenizer import XLNetTokenizer
from keras_xlnet.text.vocabulary_tokenizer import VocabularyTokenizer

__all__ = [
    "TokenOffsets",
    "VocabularyTokenizer",
    "XLNetPreprocessor",
    "XLNetQuestionAnsweringPreprocessor",
    "XLNetTokenizer",
]
