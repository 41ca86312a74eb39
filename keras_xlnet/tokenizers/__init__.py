"""Tokenizers: strings to ids and back, on the host and in the TensorFlow graph."""

from keras_xlnet.tokenizers.token_offsets import TokenOffsets
from keras_xlnet.tokenizers.vocabulary_tokenizer import VocabularyTokenizer
from keras_xlnet.tokenizers.wordpiece import WordPieceVocabulary
from keras_xlnet.tokenizers.xlnet_tokenizer import XLNetTokenizer

__all__ = ["TokenOffsets", "VocabularyTokenizer", "WordPieceVocabulary", "XLNetTokenizer"]
