"""Batches of rows of similar length: half of the padding, and half of the time."""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_xlnet.compat.prefetched import prefetched
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.preprocessing.token_lists import rounded

# Rows of similar length are brought together within this many batches.
POOL = 8
TEST_BATCH = 64


@dataclasses.dataclass
class BatchesByLength:
    """Tokenized texts in batches of rows of similar length, without most of the padding.

    Args:
        preprocessor: An `XLNetTextClassifierPreprocessor` that pads on the left.
        texts: Array of str, `(examples,)` or `(examples, 2)`.
        labels: Array `(examples,)`, or `None`.
    """

    preprocessor: XLNetTextClassifierPreprocessor
    texts: np.ndarray
    labels: np.ndarray | None = None

    def __post_init__(self):
        texts = self.texts if self.texts.ndim == 1 else (self.texts[:, 0], self.texts[:, 1])
        features = self.preprocessor(texts)
        self.features = {key: np.asarray(value) for key, value in features.items()}
        self.lengths = self.features["padding_mask"].sum(1)

    def shuffled(self, batch_size, steps, rng):
        """Yields batches, all of `batch_size` rows: pass after pass over the rows."""
        count = batch_size * steps
        passes = -(-count // len(self.lengths))
        order = np.concatenate([rng.permutation(len(self.lengths)) for _ in range(passes)])[:count]
        for start in range(0, count, POOL * batch_size):
            pool = order[start : start + POOL * batch_size]
            pool = pool[np.argsort(self.lengths[pool], kind="stable")]
            for batch in rng.permutation(pool.reshape(-1, batch_size)):
                yield self.rows(batch)

    def by_length(self):
        """Returns a dataset of all rows, from short to long, and their order."""
        order = np.argsort(self.lengths, kind="stable")
        batches = np.array_split(order, -(-len(order) // TEST_BATCH))
        return self.dataset(lambda: map(self.rows, batches), len(batches)), order

    def rows(self, rows):
        """Returns the features of rows, and their labels if there are any."""
        longest = self.preprocessor.sequence_length
        length = min(longest, rounded(int(self.lengths[rows].max())))
        features = {key: value[rows, longest - length :] for key, value in self.features.items()}
        return features if self.labels is None else (features, self.labels[rows])

    def dataset(self, generate, count):
        """Returns a `tf.data.Dataset` of the `count` batches that a function generates."""
        spec = tf.nest.map_structure(
            lambda array: tf.TensorSpec((None,) * array.ndim, array.dtype),
            self.rows(np.arange(1)),
        )
        dataset = tf.data.Dataset.from_generator(generate, output_signature=spec)
        return prefetched(dataset.apply(tf.data.experimental.assert_cardinality(count)))

    def predict(self, model):
        """Returns the outputs of a model for all rows."""
        dataset, order = self.by_length()
        outputs = model.predict(dataset, verbose=0)
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        return outputs[inverse]
