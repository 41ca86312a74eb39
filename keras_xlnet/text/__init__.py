"""Tokenizer and preprocessor: strings to ids and back, in the TensorFlow graph."""

from keras_xlnet.text.multiple_choice_preprocessor import XLNetMultipleChoicePreprocessor
from keras_xlnet.text.preprocessor import XLNetPreprocessor
from keras_xlnet.text.question_answering_preprocessor import XLNetQuestionAnsweringPreprocessor
from keras_xlnet.text.token_offsets import TokenOffsets
from keras_xlnet.text.tokenizer import XLNetTokenizer
from keras_xlnet.text.vocabulary_tokenizer import VocabularyTokenizer
from keras_xlnet.text.word_preprocessor import XLNetWordPreprocessor

__all__ = [
    "TokenOffsets",
    "VocabularyTokenizer",
    "XLNetMultipleChoicePreprocessor",
    "XLNetPreprocessor",
    "XLNetQuestionAnsweringPreprocessor",
    "XLNetTokenizer",
    "XLNetWordPreprocessor",
]
