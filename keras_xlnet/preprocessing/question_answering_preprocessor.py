"""Questions with contexts, which are divided into windows, and their answers."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from keras_xlnet.arguments import as_values, check_positive_int, check_range
from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.answer_decoding import AnswerPrediction, decode_answers
from keras_xlnet.preprocessing.answer_windows import (
    NUM_SPECIAL,
    AnswerWindows,
    answer_limits,
    encode_questions,
    pack_questions,
)
from keras_xlnet.preprocessing.answers import gold_answers
from keras_xlnet.preprocessing.encoded import Encoded
from keras_xlnet.preprocessing.labels import Classes
from keras_xlnet.preprocessing.preprocessor import Preprocessor
from keras_xlnet.registration import register
from keras_xlnet.tokenizers.string_inputs import as_strings
from keras_xlnet.tokenizers.xlnet_tokenizer import XLNetTokenizer


class WindowPlaces(NamedTuple):
    """The positions of windows in contexts.

    Args:
        question: Int64 `(windows,)`, the row of the question.
        first_position: Int64 `(windows,)`, the first position of the context in the window.
        first_token: Int64 `(windows,)`, the token of the context at that position.
        num_tokens: Int64 `(windows,)`, the tokens of the context in the window.
        token_start, token_end: Int64 `tf.RaggedTensor` `(questions, None)`, the place of each token
            of the context, in characters.
    """

    question: tf.Tensor
    first_position: tf.Tensor
    first_token: tf.Tensor
    num_tokens: tf.Tensor
    token_start: tf.RaggedTensor
    token_end: tf.RaggedTensor


@register
class XLNetQuestionAnsweringPreprocessor(Preprocessor):
    """Converts questions, contexts and answers to the arrays of `XLNetQuestionAnswering`.

    A window is packed as `[context, <sep>, question, <sep>, <cls>]`. A context that does not fit
    is divided into windows that start `doc_stride` tokens apart, until one of them has
    its last token. Segment ids are 0 for the context, 1 for the question (each with its `<sep>`),
    2 for `<cls>` and 3 for padding, as in the original.

    Args:
        tokenizer: An `XLNetTokenizer`.
        sequence_length: Int, tokens of a window.
        doc_stride: Int, tokens from the start of a window to the start of the next one. It is
            smaller if a window has fewer tokens of the context.
        max_question_length: Int, a longer question is truncated at the end.
        padding_side: String, `"right"` as in the original, or `"left"`.
        padding_token_id: Int, as in `XLNetTextClassifierPreprocessor`.
        **kwargs: Other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: A dict with the keys `"question"` and `"context"`, string tensors `(batch,)`.

    Returns:
        A tuple of the features, a dict with `token_ids`, `segment_ids`, `padding_mask` and
        `paragraph_mask` `(windows, sequence_length)` and `cls_index` `(windows,)`, and their
        `WindowPlaces`. `encode` returns both as an `AnswerWindows` of NumPy arrays.

    Raises:
        ValueError: If an argument is not as above, or leaves no place for the context.

    Example:

    >>> from keras_xlnet.preprocessing import XLNetQuestionAnsweringPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> context = "the cat sat on the mat and the dog sat on the cat"
    >>> tokenizer = XLNetTokenizer.train(iter([context] * 20), vocabulary_size=30)
    >>> preprocessor = XLNetQuestionAnsweringPreprocessor(
    ...     tokenizer, sequence_length=32, doc_stride=8, max_question_length=8)
    >>> windows = preprocessor.encode({"question": ["who sat"], "context": [context]})
    >>> windows.features["token_ids"].shape[1], len(windows) > 1
    (32, True)

    Source: `convert_examples_to_features` of the original's `run_squad.py`.
    """

    row_name = "question"
    _padding_segment = 3
    _cut_by = "max_question_length"

    def __init__(
        self,
        tokenizer: XLNetTokenizer,
        sequence_length: int = 512,
        doc_stride: int = 128,
        max_question_length: int = 64,
        padding_side: str = "right",
        padding_token_id: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(tokenizer, sequence_length, padding_side, padding_token_id, **kwargs)
        check_positive_int("doc_stride", doc_stride)
        check_positive_int("max_question_length", max_question_length)
        if sequence_length <= max_question_length + NUM_SPECIAL:
            raise ValueError(
                f"`sequence_length` must be above `max_question_length` + {NUM_SPECIAL}, so that "
                f"there is a place for the context. Received: sequence_length={sequence_length}, "
                f"max_question_length={max_question_length}"
            )
        self.doc_stride = doc_stride
        self.max_question_length = max_question_length

    def call(self, inputs: dict[str, Any]) -> tuple[dict[str, tf.Tensor], WindowPlaces]:
        with tf.device("CPU:0"):
            question, context = (as_strings(inputs[key], key) for key in ("question", "context"))
            # Many questions share a context.
            different, index = tf.unique(context, tf.int64)
            context_ids, offsets = self.tokenizer(different, return_offsets=True)
            features, row, (begin, first, count), _ = pack_questions(
                *(self.tokenizer(question), context_ids, index),
                *(self.layout, self.doc_stride, self.max_question_length),
                xp=tf,
            )
            start, end = (tf.gather(part, index) for part in (offsets.start, offsets.end))
            return features, WindowPlaces(row, begin, first, count, start, end)

    def encode(self, x: Any, shorten: bool = True) -> AnswerWindows:
        """Converts questions with contexts to windows on the host, without TensorFlow.

        Args:
            x: A dict of the columns `question` and `context`, a tuple of these columns, or a list
                of pairs `(question, context)`.
            shorten: Bool, whether the arrays are as long as the longest window needs, or
                `sequence_length`.

        Returns:
            An `AnswerWindows`.

        Raises:
            ValueError: If something is not a text. The message names the row.
        """
        return encode_questions(
            x, self.tokenizer, self.layout, self.doc_stride, self.max_question_length, shorten
        )

    def answer_limits(self, token_ids: Any, max_answer_length: int, xp: ModuleType = np) -> Any:
        """Returns the largest number of tokens of an answer that starts at each token.

        A single token that is only a space is not an answer.

        Args:
            token_ids: Int array or tensor `(windows, length)`.
            max_answer_length: Int.
            xp: `numpy` or `tensorflow`.

        Returns:
            Int32, of the shape of `token_ids`.
        """
        return answer_limits(token_ids, self.tokenizer, max_answer_length, xp)

    def encode_labels(
        self, y: Any, encoded: Encoded, classes: Classes | None = None
    ) -> dict[str, np.ndarray]:
        assert isinstance(encoded, AnswerWindows)
        return encoded.labels(gold_answers(y, encoded.contexts))

    def decode(self, outputs: Any, encoded: Encoded, **options: Any) -> list[AnswerPrediction]:
        """Returns an `AnswerPrediction` for each question.

        Args:
            outputs: The outputs of the model.
            encoded: What `encode` returned.
            **options: Other arguments of `decode_answers`.
        """
        assert isinstance(encoded, AnswerWindows)
        return decode_answers(encoded, outputs, **options)

    @classmethod
    def check_labels(cls, y: Any, features: Any, classes: Classes | None = None) -> Any:
        if isinstance(features, dict) and isinstance(y, dict) and "token_ids" in features:
            last = np.shape(features["token_ids"])[-1] - 1
            for key in ("start_positions", "end_positions"):
                check_range(key, as_values(y.get(key)), 0, last, f"length {last + 1}")
        return y

    def compute_output_spec(self, inputs: Any) -> Any:
        raise ValueError(
            "The number of windows depends on the texts: call the preprocessor in a dataset or on "
            "strings, not on symbolic inputs"
        )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "doc_stride": self.doc_stride,
            "max_question_length": self.max_question_length,
        }
