import keras


@keras.saving.register_keras_serializable(package="keras_xlnet")
class ReplicaSeedGenerator(keras.random.SeedGenerator):
    """A seed generator whose numbers differ from replica to replica of a `tf.distribute` strategy.

    Keras gives all replicas the same random numbers. That is right for dropout of equal shards
    and wrong for factorization orders: each replica has to draw its own.

    Args:
        seed: Optional int. `None` draws one.
        name: Optional name.

    Example:

    >>> generator = keras_xlnet.layers.ReplicaSeedGenerator(seed=7)
    >>> keras.random.uniform((2, 3), seed=generator).shape
    TensorShape([2, 3])
    """

    def next(self, ordered=True):
        """The next seed, a tensor of two uint32 that is folded with the number of the replica."""
        seed = super().next(ordered=ordered)
        if keras.backend.backend() != "tensorflow":
            return seed  # JAX draws for the global batch; PyTorch has a process a replica.
        return _fold_in_replica(seed)


def _fold_in_replica(seed):
    import tensorflow as tf  # `tf.distribute` is the only one who knows the number of a replica.

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return seed
    folded = tf.random.experimental.stateless_fold_in(
        tf.cast(seed, "int32"), context.replica_id_in_sync_group
    )
    return tf.cast(folded, seed.dtype)
