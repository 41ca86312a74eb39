"""Which tokens of a row are predicted, and where words begin."""

import string
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from keras_xlnet.layers import SpanMaskSampler
from keras_xlnet.pretraining.tf_data_ops import call_in_tf_data
from keras_xlnet.tokenizers import XLNetTokenizer

# The punctuation marks that the original lists. It treats "<" as the start of a special token.
_PUNCTUATION = frozenset(string.punctuation) - set("'=<>")


def word_start_table(tokenizer: XLNetTokenizer) -> np.ndarray:
    """Returns which pieces of a vocabulary begin a word.

    A piece begins a word if it starts with `▁` or `<`, or if it is an ASCII punctuation mark other
    than `'`, `=` and `>`.

    Args:
        tokenizer: An `XLNetTokenizer`.

    Returns:
        Bool array `(vocabulary_size,)`.

    Example:

    >>> from keras_xlnet.pretraining import word_start_table
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> tokenizer = XLNetTokenizer.train(iter(["the cat's mat, the cat"] * 9), vocabulary_size=28)
    >>> table = word_start_table(tokenizer)
    >>> [bool(table[tokenizer.token_to_id(piece)]) for piece in ("▁the", "<eod>", ".", "'", "a")]
    [True, True, True, False, False]

    Source: `_is_start_piece` in the original's `data_utils.py`.
    """
    pieces = map(tokenizer.id_to_token, range(tokenizer.vocabulary_size()))
    return np.array([piece.startswith(("▁", "<")) or piece in _PUNCTUATION for piece in pieces])


class TargetSampler:
    """Samples the tokens to predict, a fixed number in each of the two parts of a row.

    The first part has the reused tokens, the second part the segments A and B.

    Args:
        num_predictions: Int, at least 2. The first part gets half of them, rounded up.
        lengths: Tuple of two ints, the number of tokens in each part.
        unit: String, see `SpanMaskSampler`.
        word_starts: Bool array `(vocabulary_size,)`.
        special_ids: Ints, the ids of tokens that are never predicted.
        num_special: Int, the number of these tokens in the second part.

    Raises:
        ValueError: If a part has fewer tokens than predictions.

    Source: `create_tfrecords` in the original's `data_utils.py`. It may sample `<sep>` and `<cls>`
    and drops them later.
    """

    def __init__(
        self,
        num_predictions: int,
        lengths: tuple[int, int],
        unit: str,
        word_starts: np.ndarray,
        special_ids: Sequence[int],
        num_special: int,
    ) -> None:
        second = num_predictions // 2
        counts = (num_predictions - second, second)
        for part, count, length in (
            ("reused tokens", counts[0], lengths[0]),
            ("tokens of segments A and B", counts[1], lengths[1] - num_special),
        ):
            if count > length:
                raise ValueError(
                    f"`num_predictions` is too large: {count} targets cannot be chosen from "
                    f"{length} {part}. Received: num_predictions={num_predictions}"
                )
        self._lengths = lengths
        self._samplers = [SpanMaskSampler(count, unit=unit) for count in counts]
        self._part_draws = [s.num_draws(n) for s, n in zip(self._samplers, lengths, strict=True)]
        self._word_starts = word_starts
        self._special_ids = np.array(special_ids, "int32")

    @property
    def num_draws(self) -> int:
        """Int, the number of random numbers that a row needs."""
        return sum(self._part_draws)

    def __call__(self, token_ids: tf.Tensor, reverse: np.ndarray, draws: tf.Tensor) -> tf.Tensor:
        """Samples the targets of a batch, in the graph.

        Args:
            token_ids: Int32 tensor `(batch, length)`.
            reverse: Bool array `(batch,)`, `True` for rows that are read backward.
            draws: Float32 tensor `(batch, num_draws)`, uniform random numbers.

        Returns:
            Bool tensor `(batch, length)`, `True` for targets.
        """
        word_starts = tf.gather(tf.constant(self._word_starts), token_ids)
        candidates = tf.reduce_all(token_ids[..., tf.newaxis] != self._special_ids, axis=-1)
        parts = zip(
            self._samplers,
            tf.split(word_starts, self._lengths, axis=1),
            tf.split(candidates, self._lengths, axis=1),
            tf.split(draws, self._part_draws, axis=1),
            strict=True,
        )
        return tf.concat([_sample(*part, tf.constant(reverse)) for part in parts], axis=1)


def _sample(sampler, word_starts, candidates, draws, reverse):
    inputs = {
        "word_starts": word_starts,
        "candidates": candidates,
        "reverse": reverse,
        "draws": draws,
    }
    return call_in_tf_data(
        sampler, sampler.sample, inputs, tf.TensorSpec(word_starts.shape, tf.bool)
    )
