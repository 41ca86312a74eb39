"""Which pieces of a vocabulary begin a word."""

import string

import numpy as np

# Python's `string.punctuation` without those that the original does not list ("<" begins the
# names of special pieces there).
_PUNCTUATION = frozenset(string.punctuation) - set("'=<>")


def word_start_table(tokenizer):
    """Tells of every piece whether it begins a word.

    A piece does if it begins with `▁` or `<`, or is an ASCII punctuation mark other than `'`, `=`
    and `>`.

    Args:
        tokenizer: an `XLNetTokenizer`.

    Returns:
        Bool array `(vocabulary_size,)`.

    Example:

    >>> from keras_xlnet.pretraining import word_start_table
    >>> from keras_xlnet.text import XLNetTokenizer
    >>> tokenizer = XLNetTokenizer.train(iter(["the cat's mat, the cat"] * 9), vocabulary_size=28)
    >>> table = word_start_table(tokenizer)
    >>> [bool(table[tokenizer.token_to_id(piece)]) for piece in ("▁the", "<eod>", ".", "'", "a")]
    [True, True, True, False, False]

    Source: `_is_start_piece` in the original's `data_utils.py`.
    """
    pieces = map(tokenizer.id_to_token, range(tokenizer.vocabulary_size()))
    return np.array([piece.startswith(("▁", "<")) or piece in _PUNCTUATION for piece in pieces])
