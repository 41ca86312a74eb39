"""The TensorFlow graph of `XLNetTokenizer`."""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable
from typing import Any

from keras_xlnet.lazy_modules import tensorflow_text, tf
from keras_xlnet.tokenizers.aligned_cleaning import clean_aligned
from keras_xlnet.tokenizers.digit_comma import digit_comma_rows
from keras_xlnet.tokenizers.normalization import preprocess_text
from keras_xlnet.tokenizers.sentencepiece_model import special_ids
from keras_xlnet.tokenizers.sentencepiece_proto import USER_DEFINED, SentencePieceProto
from keras_xlnet.tokenizers.token_ids import remove_special_ids
from keras_xlnet.tokenizers.token_offsets import OffsetFinder

_WORD_START = "\u2581"
# Characters that compose with the one before them: marks, vowels and final consonants of Hangul,
# voiced sound marks.
_COMPOSING = r"[\p{M}\x{1160}-\x{11ff}\x{ff9e}\x{ff9f}]"


class GraphTokenizer:
    """Functions of string tensors `(batch,)` for one SentencePiece model.

    Args:
        proto: Bytes of the model.
        processor: A `sentencepiece.SentencePieceProcessor` of the model.
        lowercase, remove_space, remove_accents: As in `XLNetTokenizer`.
    """

    def __init__(
        self,
        proto: bytes,
        processor: Any,
        lowercase: bool,
        remove_space: bool,
        remove_accents: bool,
    ) -> None:
        self._proto = proto
        self._processor = processor
        self._cleaning = (lowercase, remove_space, remove_accents)
        self._offset_finder: Any = None  # Made at the first use.
        pieces = SentencePieceProto.parse(proto).pieces
        self._is_space = [not piece.piece.strip(_WORD_START) for piece in pieces]
        special = special_ids(processor)
        self._is_special = [index in special for index in range(len(pieces))]
        self._separate_symbols = _symbol_separator(pieces, processor)
        # In `init_scope`, because the object can be created while a graph is traced and must remain
        # usable after that.
        with tf.init_scope(), tf.device("CPU:0"):
            # Not SentencepieceTokenizer: it loses its model when keras.utils.set_random_seed is
            # called, and breaks ties between splits of equal score in another way.
            self._pieces = tensorflow_text.FastSentencepieceTokenizer(proto)
            self._digit_comma_table = tf.ragged.constant(
                digit_comma_rows(processor), tf.int32, row_splits_dtype=tf.int64
            )
        self._compiled_tokenize = self._compiled(self._tokenize)
        self._compiled_offsets = self._compiled(
            lambda texts: self.split(texts, None, return_offsets=True)
        )

    @staticmethod
    def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = [tf.TensorSpec([None], tf.string)]
        return tf.function(function, autograph=False, input_signature=signature)

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the int32 ids of texts, `(batch, None)`."""
        # Compiled, because a hundred eager ops take longer than splitting one text, and tracing
        # them for each dataset takes longer than splitting a thousand texts.
        ids = self._compiled_tokenize(texts)
        if texts.shape[0] is not None:
            ids.row_splits.set_shape([texts.shape[0] + 1])
        return ids

    def tokenize_with_offsets(self, texts: tf.Tensor) -> Any:
        """Returns the ids of texts and their `TokenOffsets`."""
        self._require_offset_finder()
        return self._compiled_offsets(texts)

    def split(self, texts: tf.Tensor, sampling_alpha: float | None, return_offsets: bool) -> Any:
        """Returns the ids of a call of `XLNetTokenizer`, with offsets if asked for."""
        cleaned = preprocess_text(texts, *self._cleaning)
        if sampling_alpha is None:
            pieces = self._pieces.tokenize(self._separate_symbols(cleaned))
            pieces = self._without_spaces_at_end(pieces)
        else:
            pieces = _sample_pieces(self._proto, cleaned, sampling_alpha)
        ids = self._split_digit_comma(pieces)
        if not return_offsets:
            return ids
        text, byte_start = clean_aligned(texts, *self._cleaning)
        return ids, self._require_offset_finder().offsets(text, byte_start, pieces)

    def detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Returns the texts of ids `(batch, None)`."""
        ids = remove_special_ids(ids, self._is_special)
        texts = self._pieces.detokenize(ids.with_row_splits_dtype(tf.int32))
        # After ids were removed from the front, the text can begin with several word starts.
        # sentencepiece removes all of them.
        return tf.strings.regex_replace(texts, "^ +", "")

    def _require_offset_finder(self):
        if self._offset_finder is None:
            self._offset_finder = OffsetFinder(self._proto, self._processor)
        return self._offset_finder

    def _tokenize(self, texts):
        return self.split(texts, None, return_offsets=False)

    def _without_spaces_at_end(self, ids):
        """Drops the `▁` at the end of texts, which sentencepiece strips as a space."""
        ids = ids.with_row_splits_dtype(tf.int64)
        place = tf.ragged.range(ids.row_lengths())
        is_other = ~tf.gather(self._is_space, ids.values)
        kept = tf.reduce_max(ids.with_values(tf.where(is_other, place.values + 1, 0)), axis=1)
        return tf.ragged.boolean_mask(ids, place < tf.maximum(kept, 0)[:, tf.newaxis])

    def _split_digit_comma(self, ids):
        ids = ids.with_row_splits_dtype(tf.int64)
        split = tf.gather(self._digit_comma_table, ids.values)
        return ids.with_values(split).merge_dims(1, 2)


def _symbol_separator(pieces, processor):
    """Returns a function that protects the user-defined symbols in texts.

    sentencepiece finds these symbols before it normalizes a text. `FastSentencepieceTokenizer`
    finds them afterwards, when "<eop>" followed by a combining character has become "<eop" and
    another character. The function inserts between the two a character that normalization drops.
    """
    symbols = [piece.piece for piece in pieces if piece.type == USER_DEFINED]
    # A model without such a character does not compose characters.
    dropped = next(
        (c for c in map(chr, range(1, 32)) if processor.normalize(f"a{c}b") == "▁ab"), ""
    )
    if not symbols or not dropped:
        return lambda texts: texts
    found = "|".join(map(re.escape, sorted(symbols, key=len, reverse=True)))
    pattern = f"({found})({_COMPOSING})"
    return lambda texts: tf.strings.regex_replace(texts, pattern, rf"\1{dropped}\2")


def _sample_pieces(proto: bytes, texts: tf.Tensor, alpha: float) -> tf.RaggedTensor:
    """Returns the ids of random splits, whose probabilities are proportional to P(split)^alpha.

    Args:
        proto: Bytes of a SentencePiece unigram model.
        texts: String tensor `(batch,)`, cleaned.
        alpha: Float above 0. Smaller values make the probabilities of splits more even.

    Returns:
        An int32 `tf.RaggedTensor` `(batch, None)`.

    Raises:
        ValueError: If `alpha` is not as above.

    Source: Kudo 2018, "Subword Regularization", section 3.2, over all splits (`nbest_size=-1`).
    """
    is_number = isinstance(alpha, numbers.Real) and not isinstance(alpha, bool)
    if not is_number or not alpha > 0:
        raise ValueError(
            f"`sampling_alpha` must be a number above 0. Received: sampling_alpha={alpha!r}"
        )
    # Created in each call, because `keras.utils.set_random_seed` deletes stored resources.
    pieces = tensorflow_text.SentencepieceTokenizer(proto, nbest_size=-1, alpha=float(alpha))
    return pieces.tokenize(texts)
