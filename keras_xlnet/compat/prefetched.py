"""A dataset that prepares batches ahead, and whose iterators are deleted at once.

Upstream: in TensorFlow 2.21, deleting an iterator of `tf.data` can wait for the thread that
autotunes it, for up to 60 seconds. `fit` deletes an iterator after each epoch.
Without it: deleting 60 iterators took more than 9 minutes; with it, none of them waited for 0.1 s.
Reproduction: docs/upstream.md, "Deleting an iterator waits for autotuning".
Delete this file when: deleting an autotuned iterator takes no time.
"""

from __future__ import annotations

from keras_xlnet.lazy_modules import tf


def prefetched(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns `dataset`, with two batches prepared ahead and without autotuning.

    Without autotuning, `num_parallel_calls=tf.data.AUTOTUNE` is the number of processors, at most
    16.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.prefetch(2).with_options(options)
