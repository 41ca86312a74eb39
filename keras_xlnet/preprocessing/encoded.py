"""Texts and pairs as arrays, on the host.

Exported directories contain this file (`serving/portable/`), so it does not import Keras.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from keras_xlnet.preprocessing.packing import Layout, as_rows, pack_texts
from keras_xlnet.preprocessing.texts import read_columns
from keras_xlnet.results import Result, short, titled

# One token of each text, <sep> after each text, and <cls>.
_MIN_LENGTH_PAIR = 5


@dataclasses.dataclass(frozen=True, repr=False)
class Encoded(Result):
    """Encoded texts: the inputs of a model, and the places of tokens in the texts.

    `fit`, `evaluate` and `predict` accept it instead of the texts, which are then not tokenized
    again.

    Args:
        features: Dict of NumPy arrays, the inputs of the model.
        columns: Dict of lists, what was given, such as `text` and `pair`.
        row: Int array with a number for each row of `features`: the row of `columns` that it is
            from. `None` if they are the same.
        num_cut: Int array, how many tokens of each text were truncated. `None`: of none.
    """

    features: dict[str, np.ndarray]
    columns: dict[str, Any]
    row: np.ndarray | None = None
    num_cut: np.ndarray | None = None

    def __repr__(self) -> str:
        title = f"{type(self).__name__} of {self.num_given} rows: {', '.join(self.columns)}"
        return titled(title, [f"{name}: {short(x)}" for name, x in self.features.items()])

    def __len__(self) -> int:
        """The number of rows of `features`."""
        return len(self.features["token_ids"])

    @property
    def num_given(self) -> int:
        """The number of rows of `columns`."""
        return len(next(iter(self.columns.values())))


def encode_texts(x: Any, tokenizer: Any, layout: Layout, shorten: bool = True) -> Encoded:
    """Returns what `XLNetTextPreprocessor.encode` does.

    Args:
        x, shorten: As in that method.
        tokenizer: An `XLNetTokenizer` or a `HostTokenizer`.
        layout: A `Layout`.
    """
    columns = read_columns(x, [("text",), ("text", "pair")])
    features, num_cut = encode_columns(
        columns["text"], columns.get("pair"), tokenizer, layout, shorten
    )
    return Encoded(features, columns, num_cut=num_cut)


def encode_columns(
    text: list[str], pair: list[str] | None, tokenizer: Any, layout: Layout, shorten: bool
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Returns the features of texts or pairs, and how many tokens of each were truncated."""
    first, second = as_rows(tokenizer.encode(text)), None
    if pair is not None:
        check_length_of_pairs(layout.sequence_length)
        second = as_rows(tokenizer.encode(pair))
    return pack_texts(first, second, layout, np, shorten)


def check_length_of_pairs(sequence_length: int) -> None:
    """Raises `ValueError` if rows have no place for a token of each text."""
    if sequence_length < _MIN_LENGTH_PAIR:
        raise ValueError(
            f"`sequence_length` must be at least {_MIN_LENGTH_PAIR} for pairs: one token of "
            f"each text, two <sep> and <cls>. Received: sequence_length={sequence_length}"
        )
