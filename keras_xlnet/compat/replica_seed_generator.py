"""Random numbers that differ from replica to replica.

Upstream: every replica of a `tf.distribute` strategy draws the same numbers from a
`keras.random.SeedGenerator`, so the dropout masks of all replicas are equal.
Without it: the dropout masks of two replicas agree in 100 % of their entries; with it, in 52 % (50
% is chance, with a rate of 0.5).
Reproduction: docs/upstream.md, "Replicas draw equal numbers".
Delete this file when: each replica draws its own numbers.
"""

import keras

from keras_xlnet.lazy_modules import tf
from keras_xlnet.registration import register
from keras_xlnet.types import Tensor


@register
class ReplicaSeedGenerator(keras.random.SeedGenerator):
    """A `keras.random.SeedGenerator` whose numbers differ between replicas.

    Args:
        seed: Optional int. `None` draws one.
        name: Optional name.

    Example:

    >>> generator = keras_xlnet.compat.ReplicaSeedGenerator(seed=7)
    >>> keras.random.uniform((2, 3), seed=generator).shape
    TensorShape([2, 3])
    """

    def next(self, ordered: bool = True) -> Tensor:
        """Returns the next seed, two uint32 that depend on the number of the replica."""
        seed = super().next(ordered=ordered)
        if keras.backend.backend() != "tensorflow":
            return seed  # JAX draws for the global batch; PyTorch has one process per replica.
        return _fold_in_replica(seed)


def _fold_in_replica(seed):
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return seed
    folded = tf.random.experimental.stateless_fold_in(
        tf.cast(seed, "int32"), context.replica_id_in_sync_group
    )
    return tf.cast(folded, seed.dtype)
