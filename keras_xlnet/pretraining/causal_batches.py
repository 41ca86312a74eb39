"""Batches for a causal language model with memory."""

import itertools

import numpy as np
import tensorflow as tf

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.compat.generated_dataset import generated_dataset
from keras_xlnet.compat.prefetched import prefetched
from keras_xlnet.registration import refuse_unknown_arguments


@refuse_unknown_arguments
class CausalBatches:
    """Segments of a long text, in batches that continue each other row by row, for `model.fit`.

    The text is divided into `batch_size` equal parts, and each part is read by one row, segment
    after segment. Row `r` of a batch continues row `r` of the batch before, as a stateful language
    model requires. Tokens at the end that do not fill all rows are left out.

    Args:
        token_ids: Int array `(num_tokens,)`.
        batch_size: Int, the number of rows.
        sequence_length: Int, the number of tokens of a segment.

    Raises:
        ValueError: If there are too few tokens for one segment of each row, or an argument is not
            as above.

    Example:

    >>> batches = keras_xlnet.pretraining.CausalBatches(np.arange(25), 2, 4)
    >>> for features, labels in batches.evaluation_dataset():
    ...     print(features["token_ids"].numpy().tolist(), labels.numpy().tolist())
    [[0, 1, 2, 3], [12, 13, 14, 15]] [[1, 2, 3, 4], [13, 14, 15, 16]]
    [[4, 5, 6, 7], [16, 17, 18, 19]] [[5, 6, 7, 8], [17, 18, 19, 20]]

    Source: Dai et al. 2019; kimiyoung/transformer-xl, `LMOrderedIterator`.
    """

    def __init__(self, token_ids: np.ndarray, batch_size: int, sequence_length: int) -> None:
        self.batch_size = check_positive_int("batch_size", batch_size)
        self.sequence_length = check_positive_int("sequence_length", sequence_length)
        token_ids = np.asarray(token_ids, "int32")
        if token_ids.ndim != 1:
            raise ValueError(
                f"`token_ids` must be one row of tokens. Received: shape {token_ids.shape}"
            )
        length = len(token_ids) // batch_size
        if length <= sequence_length:
            raise ValueError(
                f"`token_ids` must have at least {batch_size * (sequence_length + 1)} tokens for "
                f"{batch_size} rows of {sequence_length} and their labels. Received: "
                f"{len(token_ids)}"
            )
        self.rows = token_ids[: length * batch_size].reshape(batch_size, length)
        # `ResumeBatches` sets it.
        self.first_step = 0

    @property
    def steps_per_pass(self) -> int:
        """Int, the number of full batches in a pass over the text."""
        return (self.rows.shape[1] - 1) // self.sequence_length

    def dataset(self) -> tf.data.Dataset:
        """Returns the batches from `first_step` on, pass after pass, endlessly.

        Memory is reset at the start of each pass. Pass `steps_per_epoch` to `fit`.

        Returns:
            A `tf.data.Dataset` of features, `token_ids` int32 `(batch, length)` and `reset_memory`
            int8 `(batch,)`, and of labels int32 `(batch, length)`.
        """
        steps = generated_dataset(
            lambda: itertools.count(self.first_step), tf.TensorSpec((), tf.int64)
        )
        infinite = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
        return self._batches(steps).apply(infinite)

    def evaluation_dataset(self) -> tf.data.Dataset:
        """Returns one pass over the text."""
        return self._batches(tf.data.Dataset.range(self.steps_per_pass))

    def _batches(self, steps):
        rows = tf.constant(self.rows)

        def batch_at(step):
            start = step % self.steps_per_pass * self.sequence_length
            segment = rows[:, start : start + self.sequence_length + 1]
            segment = tf.ensure_shape(segment, (self.batch_size, self.sequence_length + 1))
            # Not bool: under a strategy Keras averages a batch to build the model.
            reset = tf.fill([self.batch_size], tf.cast(start == 0, tf.int8))
            return {"token_ids": segment[:, :-1], "reset_memory": reset}, segment[:, 1:]

        return prefetched(steps.map(batch_at))
