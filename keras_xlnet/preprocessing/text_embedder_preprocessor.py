"""Texts to embed one by one, or in rows of two or three for training."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_xlnet.arguments import as_values, check_range
from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.encoded import Encoded, encode_columns
from keras_xlnet.preprocessing.labels import Classes
from keras_xlnet.preprocessing.text_regressor_preprocessor import XLNetTextRegressorPreprocessor
from keras_xlnet.preprocessing.texts import read_columns
from keras_xlnet.registration import register

_NAMES = ("text", "pair", "negative")


@register
class XLNetTextEmbedderPreprocessor(XLNetTextRegressorPreprocessor):
    """Converts texts to the arrays of `XLNetTextEmbedder`.

    Each text is packed separately, `[text, <sep>, <cls>]`. A row has one text; or, for training,
    a pair; or three texts, the last of which is a hard negative for the first. In
    a dict the keys are `text`, `pair` and `negative`. Arguments are as in
    `XLNetTextClassifierPreprocessor`.

    Returns of `encode` and of the call: a dict of `token_ids`, `segment_ids` and `padding_mask`
    `(batch, texts, length)`, where `texts` is 1, 2 or 3.

    Example:

    >>> from keras_xlnet.preprocessing import XLNetTextEmbedderPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
    >>> preprocessor = XLNetTextEmbedderPreprocessor(tokenizer, sequence_length=16)
    >>> preprocessor.encode(["a rose", "is"]).features["token_ids"].shape
    (2, 1, 16)
    >>> preprocessor.encode([("a rose", "is")]).features["token_ids"].shape
    (1, 2, 16)
    """

    needs_labels = False

    def encode(self, x: Any, shorten: bool = True) -> Encoded:
        """Converts texts, or rows of texts, to arrays on the host, without TensorFlow.

        Args:
            x: List, array or column of a table of texts. Rows of two or three texts are a tuple of
                these, a list of rows `(text, pair)` or `(text, pair, negative)`, or a dict.
            shorten: Bool, whether the arrays are as long as the longest text needs, or
                `sequence_length`.

        Returns:
            `Encoded`.

        Raises:
            ValueError: If something is not a string, or the columns have different lengths. The
                message names the row.
        """
        columns = read_columns(x, [_NAMES[:1], _NAMES[:2], _NAMES])
        texts = [text for column in columns.values() for text in column]
        flat, num_cut = encode_columns(texts, None, self.tokenizer, self.layout, shorten)
        features = {key: _as_rows(values, len(columns)) for key, values in flat.items()}
        return Encoded(features, columns, num_cut=num_cut)

    def call(self, inputs: Any, sampling_alpha: float | None = None) -> dict[str, tf.Tensor]:
        pack = super().call
        texts = [pack(text, sampling_alpha=sampling_alpha) for text in _texts_of_row(inputs)]
        return {key: tf.stack([text[key] for text in texts], axis=-2) for key in texts[0]}

    def decode(self, outputs: Any, encoded: Encoded | None = None, **options: Any) -> list[Any]:
        """Returns the embedding of each row of outputs."""
        return [*outputs]

    @classmethod
    def check_labels(cls, y: Any, features: Any, classes: Classes | None = None) -> Any:
        y = super().check_labels(y, features, classes)
        if y is None:
            return y
        check_range("y", as_values(y), -1, 1, "cosines")
        is_triple = isinstance(features, dict) and np.shape(features.get("token_ids", ()))[
            1:-1
        ] == (3,)
        if is_triple:
            raise ValueError(
                "`x` must be rows (text, pair) if there are labels `y`, each of a pair. Received: "
                "three texts per row"
            )
        return y

    def compute_output_spec(
        self, inputs: Any, sampling_alpha: float | None = None
    ) -> dict[str, keras.KerasTensor]:
        texts = _texts_of_row(inputs)
        spec = super().compute_output_spec(texts[0])
        return {
            key: keras.KerasTensor((*x.shape[:-1], len(texts), x.shape[-1]), dtype=x.dtype)
            for key, x in spec.items()
        }


def _as_rows(values, num_columns):
    """`(columns * rows, length)` -> `(rows, columns, length)`."""
    return np.stack(np.split(values, num_columns), axis=1)


def _texts_of_row(inputs):
    if isinstance(inputs, dict):
        return [inputs[name] for name in _NAMES if name in inputs]
    return [*inputs] if isinstance(inputs, tuple) else [inputs]
