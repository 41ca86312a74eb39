"""Texts as words, in a TensorFlow graph."""

import functools
import re
import sys

import numpy as np
import tensorflow as tf

from keras_xlnet.preprocessing.words import ZERO_WIDTH_SPACE, marks
from keras_xlnet.serving.ragged_rows import decode_characters, parts_of_texts

# Classes of characters, each written as one letter, so that the pattern below needs no large sets.
_LETTER, _DIGIT, _MARK, _JOINER, _ZERO_WIDTH, _SPACE, _FLAG, _OTHER = "wdmjz fo"
# The characters that have a meaning of their own in words.
_INSIDE = {character: "i" for character in "-'’./·‧״"} | {"@": "@", "#": "#", ",": ","}
# The start of a word.
_START = "<"


def split_words(texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Returns the words of texts and their positions, as `sentence_words` does on the host.

    Args:
        texts: String tensor `(batch,)`, UTF-8. Invalid bytes are replaced by U+FFFD.

    Returns:
        Ragged tensors `(batch, None)` with the same row splits: the words, strings; and their first
        character and the one after the last, int64.
    """
    codes = decode_characters(texts)
    first_codes, letters = _character_classes()
    index = tf.searchsorted(tf.constant(first_codes), codes.values, side="right") - 1
    classes = codes.with_values(tf.gather(tf.constant(letters), index))
    marked = tf.strings.unicode_encode(classes, "UTF-8")
    marked = tf.strings.regex_replace(marked, f"({_pattern()})", rf"{_START}\1")
    marked = tf.strings.unicode_decode(marked, "UTF-8").with_row_splits_dtype(tf.int64)

    # Each place of `marked` is the start of a word or a character of `codes`.
    is_start = marked.values == ord(_START)
    is_character = (marked.values != ord(_SPACE)) & ~is_start
    # Words before this place, and characters before it, including white space.
    word = tf.cumsum(tf.cast(is_start, tf.int64)) - 1
    character = tf.cumsum(tf.cast(~is_start, tf.int64), exclusive=True)
    num_words = tf.reduce_sum(tf.cast(is_start, tf.int64))
    length = tf.math.unsorted_segment_sum(
        tf.ones_like(word[is_character]), word[is_character], num_words
    )
    row = marked.value_rowids()[is_start]
    words_of_row = tf.math.unsorted_segment_sum(tf.ones_like(row), row, codes.nrows())
    start = character[is_start] - tf.gather(codes.row_starts(), row)
    words = parts_of_texts(codes, row, start, start + length)
    rows = tf.RaggedTensor.from_row_lengths(words, words_of_row, validate=False)
    return rows, rows.with_values(start), rows.with_values(start + length)


@functools.cache
def _character_classes():
    """The first code point of each run of characters of a class, and its letter, int32 arrays."""
    codes = [ord(_class_of(chr(code))) for code in range(sys.maxunicode + 1)]
    letters = np.array(codes, "int32")
    first = np.flatnonzero(np.diff(letters, prepend=-1)).astype("int32")
    return first, letters[first]


@functools.cache
def _is_mark():
    return re.compile(f"[{marks()}]").match


def _class_of(character):
    if character in _INSIDE:
        return _INSIDE[character]
    if character == ZERO_WIDTH_SPACE:
        return _ZERO_WIDTH
    if character == "\u200d":
        return _JOINER
    if "\U0001f1e6" <= character <= "\U0001f1ff":
        return _FLAG
    if _is_mark()(character):
        return _MARK
    # As `\d`, `\w` and `\s` do.
    if character.isdecimal():
        return _DIGIT
    if character.isalnum() or character == "_":
        return _LETTER
    return _SPACE if character.isspace() else _OTHER


def _pattern():
    """The pattern of `sentence_words` for letters of classes, without conditions on neighbors."""
    mark = f"[{_MARK}{_JOINER}]"
    # Digits with commas between them, or any first character of a word.
    begin = f"(?:{_DIGIT}(?:,{_DIGIT})*|{_LETTER})"
    word = (
        f"[{_MARK}{_JOINER}{_ZERO_WIDTH}]*[@#]?"
        f"{begin}(?:{begin}|{mark}|[i@]{mark}*{begin})*{_ZERO_WIDTH}*"
    )
    flag = f"{_FLAG}{{2}}{mark}*"
    # A joiner is followed by a character that is joined, or is a mark.
    joined = f"{_JOINER}[{_ZERO_WIDTH}{_FLAG}{_OTHER}i@#,]"
    other = f"(?:{joined}|[^{_SPACE}])(?:{joined}|{mark})*"
    return f"{word}|{flag}|{other}"
