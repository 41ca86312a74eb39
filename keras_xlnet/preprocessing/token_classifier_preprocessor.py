"""Packs sentences that are divided into words, for models with an output for each token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_xlnet.compat.unknown_arguments import register
from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.packing_layer import (
    SEGMENT_A,
    SEGMENT_CLS,
    PackingLayer,
    first_tokens,
    repeated,
)
from keras_xlnet.tokenizers.string_inputs import as_strings
from keras_xlnet.tokenizers.xlnet_tokenizer import XLNetTokenizer

_NO_WORD = -1
# <sep> and <cls>.
_NUM_SPECIAL = 2


@register
class XLNetTokenClassifierPreprocessor(PackingLayer):
    """Converts words to the inputs of `XLNetTokenClassifier`, and tells the word of each token.

    A sentence is packed as `[pieces of all words, <sep>, <cls>]`. Each word is tokenized alone, and
    has at least one token: a word of which cleaning leaves nothing is `<unk>`. Words that do not
    fit are left out at the end.

    Args:
        tokenizer: An `XLNetTokenizer`.
        sequence_length: Int, length of the outputs, at least 3.
        padding_side: String, `"left"` or `"right"`.
        padding_token_id: Int, as in `XLNetTextPreprocessor`.
        **kwargs: Other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Lists of words, or a ragged string tensor `(batch, None)`.

    Returns:
        A dict of `token_ids`, `segment_ids`, `padding_mask` and `word_index`
        `(batch, sequence_length)`. `word_index` is the place of the word of a token in its
        sentence, int32, -1 for padding, `<sep>` and `<cls>`.

    Raises:
        ValueError: If an argument is not as above.

    Example:

    >>> from keras_xlnet.preprocessing import XLNetTokenClassifierPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
    >>> preprocessor = XLNetTokenClassifierPreprocessor(tokenizer, sequence_length=9)
    >>> preprocessor([["a", "rose"], ["is"]])["word_index"].numpy()[0].tolist()[-4:]
    [1, 1, -1, -1]
    """

    def __init__(
        self,
        tokenizer: XLNetTokenizer,
        sequence_length: int = 128,
        padding_side: str = "left",
        padding_token_id: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(tokenizer, sequence_length, padding_side, padding_token_id, **kwargs)

    def call(self, inputs: Any) -> dict[str, tf.Tensor]:
        with tf.device("CPU:0"):
            words = as_strings(inputs)
            if not isinstance(words, tf.RaggedTensor):
                words = tf.RaggedTensor.from_tensor(tf.ensure_shape(words, (None, None)))
            words = words.with_row_splits_dtype(tf.int64)
            pieces = self.tokenizer(words.values)
            is_empty = tf.cast(pieces.row_lengths() == 0, tf.int64)
            pieces = tf.concat([pieces, repeated(self.tokenizer.unk_token_id, is_empty)], axis=1)
            index = tf.cast(tf.ragged.range(words.row_lengths()).values, tf.int32)
            index = pieces.with_values(tf.repeat(index, pieces.row_lengths()))
            # The tokens of a sentence, and the words of these.
            ids, index = (words.with_values(part).merge_dims(1, 2) for part in (pieces, index))
            length = tf.minimum(ids.row_lengths(), self.sequence_length - _NUM_SPECIAL)
            ids, index = first_tokens(ids, length), first_tokens(index, length)
            one = tf.ones_like(length)
            features = self._pack(
                [
                    (ids, SEGMENT_A),
                    (repeated(self.tokenizer.sep_token_id, one), SEGMENT_A),
                    (repeated(self.tokenizer.cls_token_id, one), SEGMENT_CLS),
                ]
            )
            index, _ = self._place([index, repeated(_NO_WORD, _NUM_SPECIAL * one)], _NO_WORD)
            return {**features, "word_index": index}

    def encode(
        self, sentences: Sequence[Sequence[str]], shorten: bool = True
    ) -> dict[str, np.ndarray]:
        """Converts sentences to arrays on the host, without TensorFlow.

        Args:
            sentences: List of lists of words.
            shorten: Bool, whether the arrays are as long as the longest row needs, or
                `sequence_length`.

        Returns:
            The dict of the call as NumPy arrays.
        """
        pieces = iter(self.tokenizer.encode([word for words in sentences for word in words]))
        unknown = np.array([self.tokenizer.unk_token_id], "int32")
        room = self.sequence_length - _NUM_SPECIAL
        sep, cls = self.tokenizer.sep_token_id, self.tokenizer.cls_token_id
        rows, indices = [], []
        for words in sentences:
            parts = [next(pieces) for _ in words]
            parts = [ids if len(ids) else unknown for ids in parts]
            ids = np.concatenate([unknown[:0], *parts])[:room]
            counts = [len(part) for part in parts]
            indices.append(np.repeat(np.arange(len(words), dtype="int32"), counts)[:room])
            rows.append([(ids, SEGMENT_A), (sep, SEGMENT_A), (cls, SEGMENT_CLS)])
        features = self._pack_rows(rows, shorten)
        word_index = np.full(features["token_ids"].shape, _NO_WORD, "int32")
        begin = features["padding_mask"].argmax(axis=1)
        for row, index in enumerate(indices):
            word_index[row, begin[row] : begin[row] + len(index)] = index
        return {**features, "word_index": word_index}

    def compute_output_spec(self, inputs: Any) -> Any:
        raise ValueError(
            "The numbers of words differ: call the preprocessor in a dataset or on lists of words, "
            "not on symbolic inputs"
        )
