import keras


def full_batch(x, batch_size):
    """Returns `x`, once it is sure that it has `batch_size` rows.

    Args:
        x: Tensor `(batch, ...)`.
        batch_size: Int, one row for each row of a stateful memory.

    Returns:
        `x`, with a known batch size.

    Raises:
        ValueError: If `x` has another number of rows. Where that is known only when a graph runs,
            it fails there, at a node whose name tells why.
    """
    if x.shape[0] == batch_size:
        return x
    if x.shape[0] is not None:
        raise ValueError(
            f"A stateful memory remembers {batch_size} rows, one for each row of a batch. Received "
            f"a batch of {x.shape[0]} rows. Make all batches full: "
            "`dataset.batch(batch_size, drop_remainder=True)`"
        )
    if isinstance(x, keras.KerasTensor) or keras.backend.backend() != "tensorflow":
        return x  # Other backends know all shapes when they trace.
    import tensorflow as tf

    shape = (batch_size, *x.shape[1:])
    return tf.ensure_shape(x, shape, name="stateful_memory_needs_full_batches")
