"""Texts as lists of token ids, as rectangular arrays, and through a model."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.preprocessing.packing import rounded
from keras_xlnet.tokenizers.string_inputs import as_texts, plain_texts
from keras_xlnet.types import Tensor


def as_token_lists(
    texts: Any, model: keras.Model, tokenizer: Callable[..., Any] | None = None, name: str = "texts"
) -> list[np.ndarray]:
    """Returns an int32 array of token ids for each text.

    Args:
        texts: A column of strings, a list of sequences of token ids, or an int array
            `(texts, length)`.
        model: The model that the ids are for.
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
        if row.min() < 0 or row.max() >= model.vocabulary_size:
            raise ValueError(
                f"`{name}` must have token ids from 0 to {model.vocabulary_size - 1}. Received in "
                f"row {i}: {row[(row < 0) | (row >= model.vocabulary_size)][0]}"
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


def predict(model: keras.Model, features: dict[str, Tensor]) -> Any:
    """Returns the predictions of a model for a batch as NumPy arrays.

    Args:
        model: A functional model.
        features: Dict of arrays and tensors.
    """
    # PyTorch refuses a mix of arrays and tensors.
    return model.predict_on_batch({k: ops.convert_to_tensor(v) for k, v in features.items()})
