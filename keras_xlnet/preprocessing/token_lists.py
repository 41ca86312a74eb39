"""Texts as lists of token ids, and as rectangular arrays.

Exported directories contain this file (`serving/portable/`), so it does not import Keras.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_xlnet.preprocessing.packing import rounded
from keras_xlnet.tokenizers.text_columns import as_texts, plain_texts


def as_token_lists(
    texts: Any,
    vocabulary_size: int,
    tokenizer: Any = None,
    name: str = "texts",
) -> list[np.ndarray]:
    """Returns an int32 array of token ids for each text.

    Args:
        texts: A column of strings, a list of sequences of token ids, or an int array
            `(texts, length)`.
        vocabulary_size: Int, the number of ids of the model.
        tokenizer: An `XLNetTokenizer`, or another callable from strings to ragged ids. Required
            for strings.
        name: String, the name of the argument in errors.

    Raises:
        ValueError: If there are no texts, a text is empty, strings come without a tokenizer, or an
            id is not one of the model. The message names the row.
    """
    if isinstance(texts, (str, bytes)):
        raise ValueError(f"`{name}` must be a list of texts. Received: one text, {texts!r}")
    texts = list(plain_texts(texts))
    if not texts:
        raise ValueError(f"`{name}` must have at least one text. Received: none")
    if isinstance(texts[0], (str, bytes)):
        if tokenizer is None:
            raise ValueError(f"`{name}` contains strings: pass `tokenizer=` or token ids")
        # On the host if the tokenizer can.
        encode = getattr(tokenizer, "encode", tokenizer)
        texts = [np.asarray(row) for row in encode(as_texts(texts, name))]
    rows = [np.asarray(row) for row in texts]
    for i, row in enumerate(rows):
        if row.ndim != 1 or not len(row):
            raise ValueError(
                f"`{name}` must have at least one token each. Received in row {i}: "
                f"shape {row.shape}"
            )
        if row.dtype.kind not in "iu":
            raise ValueError(
                f"`{name}` must have token ids that are ints. Received in row {i}: {texts[i]!r}"
            )
        if row.min() < 0 or row.max() >= vocabulary_size:
            raise ValueError(
                f"`{name}` must have token ids from 0 to {vocabulary_size - 1}. Received in "
                f"row {i}: {row[(row < 0) | (row >= vocabulary_size)][0]}"
            )
    return [row.astype("int32") for row in rows]


def pad_rows(
    rows: Sequence[np.ndarray], length: int | None = None, value: Any = 0, side: str = "right"
) -> np.ndarray:
    """Returns rows of different lengths as one array.

    Args:
        rows: List of arrays `(length,)`.
        length: Int. `None`: the longest, rounded up.
        value: The padding value.
        side: `"right"` or `"left"`.
    """
    length = length or rounded(max(map(len, rows)))
    padded = np.full((len(rows), length), value, rows[0].dtype)
    for target, row in zip(padded, rows, strict=True):
        target[slice(len(row)) if side == "right" else slice(length - len(row), None)] = row
    return padded
