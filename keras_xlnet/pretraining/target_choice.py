"""Which tokens of a row are to be predicted, in the context and in the new segments."""

import numpy as np
import tensorflow as tf

from keras_xlnet.layers import SpanMaskSampler
from keras_xlnet.pretraining.graph_or_twin import graph_or_twin


class TargetChoice:
    """Draws the targets of rows, in each part of them as many as there are meant to be.

    Args:
        num_predictions: int, at least 2. The context gets half of them, and one more if it is odd.
        lengths: tuple of two ints, the tokens of the context and of what follows.
        unit: see `SpanMaskSampler`.
        word_starts: bool array `(vocabulary_size,)`.
        special_ids: ints, the ids of tokens that are never chosen.
        num_special: int, how many of them stand in the second part.

    Raises:
        ValueError: a part has not enough tokens to choose from.

    Source: `create_tfrecords` in the original's `data_utils.py`, which may choose `<sep>` and
    `<cls>` and drop them later.
    """

    def __init__(self, num_predictions, lengths, unit, word_starts, special_ids, num_special):
        second = num_predictions // 2
        counts = (num_predictions - second, second)
        for count, length in zip(counts, (lengths[0], lengths[1] - num_special), strict=True):
            if count > length:
                raise ValueError(
                    f"num_predictions={num_predictions} makes {counts[0]} targets in the context "
                    f"of {lengths[0]} tokens and {second} in the segments of "
                    f"{lengths[1] - num_special} tokens: too many for them"
                )
        self._lengths = lengths
        self._samplers = [SpanMaskSampler(count, unit=unit) for count in counts]
        self._part_draws = [s.num_draws(n) for s, n in zip(self._samplers, lengths, strict=True)]
        self._word_starts = word_starts
        self._special_ids = np.array(special_ids, "int32")

    @property
    def num_draws(self):
        """int: how many random numbers a row takes."""
        return sum(self._part_draws)

    def __call__(self, token_ids, reverse, draws):
        """Chooses, in the graph.

        Args:
            token_ids: int32 `(batch, length)`.
            reverse: bool array `(batch,)`, True for rows that read backwards.
            draws: float32 `(batch, num_draws)`, uniform random numbers.

        Returns:
            Bool `(batch, length)`, True for targets.
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
    spec = tf.TensorSpec(word_starts.shape, tf.bool)
    return graph_or_twin(sampler, sampler.sample, inputs, spec)
