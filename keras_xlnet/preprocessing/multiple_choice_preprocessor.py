"""Texts with several choices, one of which is right."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras
import numpy as np

from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.choices import (
    choice_columns,
    choice_labels,
)
from keras_xlnet.preprocessing.labels import Classes, as_label_array, check_class_indices
from keras_xlnet.preprocessing.packing import (
    SEGMENT_A,
    SEGMENT_B,
    SEGMENT_CLS,
    first_tokens,
    last_tokens,
    repeated,
    rows_of_lists,
)
from keras_xlnet.preprocessing.preprocessor import Encoded, Preprocessor
from keras_xlnet.registration import register
from keras_xlnet.results import Result
from keras_xlnet.tokenizers.string_inputs import as_strings
from keras_xlnet.tokenizers.xlnet_tokenizer import XLNetTokenizer
from keras_xlnet.types import Shape

# <sep> after the text and after the choice, and <cls>.
_NUM_SPECIAL = 3


@dataclasses.dataclass(frozen=True, repr=False)
class Choice(Result):
    """The choice of a model.

    Args:
        index: Int, its place among the choices.
        text: String.
        score: Float, its probability.
        scores: Tuple of the probabilities of all choices.

    Example:

    >>> from keras_xlnet.preprocessing import Choice
    >>> Choice(1, "a mat", 0.81234, (0.18766, 0.81234))
    Choice(index=1, text='a mat', score=0.8123, scores=(0.1877, 0.8123))
    """

    index: int
    text: str
    score: float
    scores: tuple[float, ...]


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
        if not isinstance(max_choice_length, int) or max_choice_length < 1:
            raise ValueError(
                "`max_choice_length` must be a positive integer. Received: "
                f"max_choice_length={max_choice_length!r}"
            )
        if sequence_length <= max_choice_length + _NUM_SPECIAL:
            raise ValueError(
                f"`sequence_length` must be above `max_choice_length` + {_NUM_SPECIAL}, so that "
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
            text_ids = self.tokenizer(text)
            choice_ids = last_tokens(self.tokenizer(choices.values), self.max_choice_length)
            if self.as_original:
                parts = self._with_leftovers(text_ids, choices.with_values(choice_ids))
            else:
                parts = (tf.gather(text_ids, choices.value_rowids()), choice_ids)
            features = self._pack_choices(*parts)
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
        columns = choice_columns(x)
        features, num_cut = self._encode_columns(columns["text"], columns["choices"], shorten)
        return Encoded(features, columns, num_cut=num_cut)

    def _encode_columns(self, text, choices, shorten):
        text_ids = self.tokenizer.encode(text)
        counts = [len(options) for options in choices]
        flat = self.tokenizer.encode([option for options in choices for option in options])
        texts = [ids for ids, count in zip(text_ids, counts, strict=True) for _ in range(count)]
        given = np.array([len(a) + len(b) for a, b in zip(texts, flat, strict=True)])
        flat = [ids[max(0, len(ids) - self.max_choice_length) :] for ids in flat]
        if self.as_original:
            texts = self._texts_with_leftovers(texts, flat, counts)
        features = self._pack_rows(
            [self._choice_parts(a, b) for a, b in zip(texts, flat, strict=True)], shorten
        )
        num_cut = np.maximum(given + _NUM_SPECIAL - features["padding_mask"].sum(axis=1), 0)
        padding = {"token_ids": self.padding_token_id, "segment_ids": self._padding_segment}
        lists = {
            key: rows_of_lists(value, counts, padding.get(key, False))
            for key, value in features.items()
        }
        return lists, num_cut

    def encode_labels(self, y: Any, encoded: Encoded, classes: Classes | None = None) -> np.ndarray:
        return choice_labels(y, encoded.columns["choices"])

    def decode(self, outputs: Any, encoded: Encoded, **options: Any) -> list[Choice]:
        """Returns the most probable `Choice` for each text.

        Args:
            outputs: Probabilities `(batch, num_choices)`.
            encoded: What `encode` returned.
            **options: None are needed.
        """
        pairs = zip(encoded.columns["choice_lists"], outputs, strict=True)
        return [_choice(choices, row[: len(choices)]) for choices, row in pairs]

    @classmethod
    def check_labels(cls, y: Any, features: Any, classes: Classes | None = None) -> Any:
        y = as_label_array(y)
        # Vectors are for custom losses.
        if isinstance(features, dict) and np.shape(y)[1:] in ((), (1,)):
            check_class_indices(y, np.shape(features["token_ids"])[1])
        return y

    def _choice_parts(self, text, choice):
        sep, cls = self.tokenizer.sep_token_id, self.tokenizer.cls_token_id
        room = self.sequence_length - _NUM_SPECIAL - len(choice)
        first, second = (text[:room], SEGMENT_A), (choice, SEGMENT_B)
        return [first, (sep, SEGMENT_A), second, (sep, SEGMENT_B), (cls, SEGMENT_CLS)]

    def _texts_with_leftovers(self, texts, choices, counts):
        """The text of each choice, with what the original leaves in it of the choices before."""
        sep, cls = self.tokenizer.sep_token_id, self.tokenizer.cls_token_id
        firsts = set(np.cumsum([0, *counts]).tolist())
        found: list[np.ndarray] = []
        left = np.zeros(0, "int32")
        for place, (text, choice) in enumerate(zip(texts, choices, strict=True)):
            left = text if place in firsts else left
            found.append(left)
            if len(left) + len(choice) <= self.sequence_length - _NUM_SPECIAL:
                left = np.concatenate([left, [sep], choice, [sep, cls]]).astype("int32")
        return found

    def _pack_choices(self, text_ids, choice_ids):
        room = self.sequence_length - _NUM_SPECIAL - choice_ids.row_lengths()
        text_ids = first_tokens(text_ids, tf.minimum(text_ids.row_lengths(), room))
        # Unlike a pair, a choice without tokens has its <sep> too.
        sep = repeated(self.tokenizer.sep_token_id, tf.ones_like(room))
        cls = repeated(self.tokenizer.cls_token_id, tf.ones_like(room))
        return self._pack(
            [
                (text_ids, SEGMENT_A),
                (sep, SEGMENT_A),
                (choice_ids, SEGMENT_B),
                (sep, SEGMENT_B),
                (cls, SEGMENT_CLS),
            ]
        )

    def _with_leftovers(self, text_ids, choice_ids):
        """The text of each choice, with what the original leaves in it of the choices before.

        It runs eagerly: no useful model needs it in a graph.
        """
        texts, choices = [], []
        for row in range(int(text_ids.nrows())):
            text = text_ids[row]
            for place in range(int(choice_ids[row].nrows())):
                choice = choice_ids[row, place]
                texts.append(text)
                choices.append(choice)
                if len(text) + len(choice) <= self.sequence_length - _NUM_SPECIAL:
                    sep, cls = self.tokenizer.sep_token_id, self.tokenizer.cls_token_id
                    text = tf.concat([text, [sep], choice, [sep, cls]], axis=0)
        return tuple(
            tf.ragged.stack(ids).with_row_splits_dtype(tf.int64) for ids in (texts, choices)
        )

    def compute_output_shape(self, input_shape: dict[str, Shape]) -> dict[str, Shape]:
        shape = (*input_shape["choices"], self.sequence_length)
        return {"token_ids": shape, "segment_ids": shape, "padding_mask": shape}

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "max_choice_length": self.max_choice_length,
            "as_original": self.as_original,
        }


def _choice(choices, scores):
    index = int(np.argmax(scores))
    return Choice(index, choices[index], float(scores[index]), tuple(map(float, scores)))
