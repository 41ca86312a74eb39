"""Texts with several choices, one of which is right."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.choices import (
    NUM_SPECIAL,
    Choice,
    choice_labels,
    encode_choices,
    most_probable_choices,
    pack_choices,
)
from keras_xlnet.preprocessing.encoded import Encoded
from keras_xlnet.preprocessing.labels import Classes, as_label_array, check_class_indices
from keras_xlnet.preprocessing.preprocessor import Preprocessor
from keras_xlnet.registration import register
from keras_xlnet.tokenizers.string_inputs import as_strings
from keras_xlnet.tokenizers.xlnet_tokenizer import XLNetTokenizer
from keras_xlnet.types import Shape


@register
class XLNetMultipleChoicePreprocessor(Preprocessor):
    """Converts texts with choices to the arrays of `XLNetMultipleChoice`.

    Each choice is packed with its text as `[text, <sep>, choice, <sep>, <cls>]`. If that is too
    long, the text is truncated at the end. The last `max_choice_length` tokens of a choice are
    kept, as in the original, whose choices are a question followed by an answer.

    Args:
        tokenizer: An `XLNetTokenizer`.
        sequence_length: Int, length of the outputs.
        max_choice_length: Int, the most tokens of a choice.
        padding_side: String, `"left"` as in the original, or `"right"`.
        padding_token_id: Int, as in `XLNetTextClassifierPreprocessor`.
        as_original: Bool, whether to reproduce a mistake of the original: if a text and a choice
            fit, the choice and the special tokens stay in the text of the next choice.
        **kwargs: Other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: A dict of `"text"`, strings `(batch,)`, and `"choices"`, strings
            `(batch, num_choices)` or a ragged tensor of these.

    Returns:
        A dict of `token_ids`, `segment_ids` and `padding_mask`
        `(batch, num_choices, sequence_length)`. A row with fewer choices than others has rows of
        padding at its end.

    Raises:
        ValueError: If an argument is not as above, or leaves no place for the text.

    Example:

    >>> from keras_xlnet.preprocessing import XLNetMultipleChoicePreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
    >>> preprocessor = XLNetMultipleChoicePreprocessor(
    ...     tokenizer, sequence_length=16, max_choice_length=8)
    >>> features = preprocessor({"text": ["a rose"], "choices": [["a", "is", "rose"]]})
    >>> features["token_ids"].shape
    TensorShape([1, 3, 16])

    Source: `convert_single_example` of the original's `run_race.py`.
    """

    def __init__(
        self,
        tokenizer: XLNetTokenizer,
        sequence_length: int = 512,
        max_choice_length: int = 128,
        padding_side: str = "left",
        padding_token_id: int = 0,
        as_original: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(tokenizer, sequence_length, padding_side, padding_token_id, **kwargs)
        check_positive_int("max_choice_length", max_choice_length)
        if sequence_length <= max_choice_length + NUM_SPECIAL:
            raise ValueError(
                f"`sequence_length` must be above `max_choice_length` + {NUM_SPECIAL}, so that "
                f"there is a place for the text. Received: sequence_length={sequence_length}, "
                f"max_choice_length={max_choice_length}"
            )
        self.max_choice_length = max_choice_length
        self.as_original = as_original

    def __call__(self, inputs: dict[str, Any], **kwargs: Any) -> Any:
        # Keras refuses a mix of lists and tensors. Rows with different numbers of choices are
        # ragged.
        parts = inputs.items()
        inputs = {k: v if isinstance(v, keras.KerasTensor) else as_strings(v, k) for k, v in parts}
        return super().__call__(inputs, **kwargs)

    def call(self, inputs: dict[str, Any]) -> dict[str, tf.Tensor]:
        with tf.device("CPU:0"):
            text, choices = inputs["text"], inputs["choices"]
            if not isinstance(choices, tf.RaggedTensor):
                choices = tf.RaggedTensor.from_tensor(tf.ensure_shape(choices, (None, None)))
            choices = choices.with_row_splits_dtype(tf.int64)
            features, _ = pack_choices(
                *(self.tokenizer(text), self.tokenizer(choices.values), choices.row_lengths()),
                *(self.layout, self.max_choice_length, self.as_original),
                xp=tf,
            )
            padding = {"token_ids": self.padding_token_id, "segment_ids": self._padding_segment}
            return {
                key: choices.with_values(value).to_tensor(padding.get(key))
                for key, value in features.items()
            }

    def encode(self, x: Any, shorten: bool = True) -> Encoded:
        """Converts texts with choices to arrays on the host, without TensorFlow.

        Args:
            x: A dict with the columns `text` and `choices` and optionally `question`, a tuple of
                these columns, or a list of rows; see `XLNetMultipleChoice`.
            shorten: Bool, whether the arrays are as long as the longest row needs, or
                `sequence_length`.

        Returns:
            `Encoded`, whose `features` are the features of the call as NumPy arrays `(batch, most
            choices, length)`, and whose `columns` have the choices with their questions.

        Raises:
            ValueError: If something is not a string, the lengths differ or a text has no choices.
                The message names the row.
        """
        return encode_choices(
            x, self.tokenizer, self.layout, self.max_choice_length, self.as_original, shorten
        )

    def encode_labels(self, y: Any, encoded: Encoded, classes: Classes | None = None) -> np.ndarray:
        return choice_labels(y, encoded.columns["choices"])

    def decode(self, outputs: Any, encoded: Encoded, **options: Any) -> list[Choice]:
        """Returns the most probable `Choice` for each text.

        Args:
            outputs: Probabilities `(batch, num_choices)`.
            encoded: What `encode` returned.
            **options: None are needed.
        """
        return most_probable_choices(outputs, encoded)

    @classmethod
    def check_labels(cls, y: Any, features: Any, classes: Classes | None = None) -> Any:
        y = as_label_array(y)
        # Vectors are for custom losses.
        if isinstance(features, dict) and np.shape(y)[1:] in ((), (1,)):
            check_class_indices(y, np.shape(features["token_ids"])[1])
        return y

    def compute_output_shape(self, input_shape: dict[str, Shape]) -> dict[str, Shape]:
        shape = (*input_shape["choices"], self.sequence_length)
        return {"token_ids": shape, "segment_ids": shape, "padding_mask": shape}

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "max_choice_length": self.max_choice_length,
            "as_original": self.as_original,
        }
