"""Texts and pairs of texts, each with a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.encoded import Encoded
from keras_xlnet.preprocessing.labels import (
    Classes,
    as_columns,
    as_label_array,
    check_finite,
    is_names,
    numbers_of_strings,
)
from keras_xlnet.preprocessing.text_preprocessor import XLNetTextPreprocessor
from keras_xlnet.preprocessing.texts import is_text
from keras_xlnet.registration import register


@register
class XLNetTextRegressorPreprocessor(XLNetTextPreprocessor):
    """Converts texts, or pairs of texts, and their numbers to the arrays of a regressor.

    Arguments, call arguments and features are as in `XLNetTextClassifierPreprocessor`.

    Example:

    >>> from keras_xlnet.preprocessing import XLNetTextRegressorPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
    >>> preprocessor = XLNetTextRegressorPreprocessor(tokenizer, sequence_length=16)
    >>> encoded = preprocessor.encode(["a rose", "is"])
    >>> encoded.features["token_ids"].shape, preprocessor.encode_labels([1, 2.5], encoded).shape
    ((2, 16), (2, 1))
    """

    def decode(self, outputs: Any, encoded: Encoded | None = None, **options: Any) -> list[Any]:
        """Returns a float for each row of outputs `(batch, 1)`, or an array of several."""
        return numbers_of(outputs)

    @classmethod
    def check_labels(cls, y: Any, features: Any, classes: Classes | None = None) -> Any:
        y = as_label_array(y)
        if is_names(y):
            y = numbers_of_strings(y)
        check_finite(y)
        width = _width(classes)
        of_row = "one number" if width == 1 else f"{width} numbers"
        return as_columns(y, width, f"{of_row} for each text")

    @classmethod
    def label_mapper(cls, spec: Any, classes: Classes | None = None) -> Callable[[Any], Any] | None:
        def encode(labels):
            numbers = tf.strings.to_number(labels) if is_text(spec) else labels
            # As arrays: with labels of two ranks, TensorFlow traces a step for any rank.
            return tf.reshape(numbers, (-1, _width(classes)))

        return encode


def numbers_of(outputs: Any) -> list[Any]:
    """Returns a float for each row of outputs `(batch, 1)`, or an array of several."""
    return [float(row[0]) if len(row) == 1 else row for row in outputs]


def _width(classes):
    """The numbers of a text."""
    return 1 if classes is None else classes.num_classes
