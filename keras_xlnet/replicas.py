"""The number of replicas that train together."""

import keras

from keras_xlnet.lazy_modules import tf


def num_replicas() -> int:
    """Returns the number of replicas of the `tf.distribute` strategy, 1 on other backends."""
    if keras.backend.backend() != "tensorflow":
        return 1
    return tf.distribute.get_strategy().num_replicas_in_sync
