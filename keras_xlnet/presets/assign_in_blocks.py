import keras

_BLOCK_BYTES = 2**24


def assign_in_blocks(variable, array):
    """Assigns to a variable, block by block of rows where that saves memory.

    For a whole assignment TensorFlow holds two more copies of a variable, beside the old value and
    the array: for the embeddings of a large model that is a quarter of its weights.

    Args:
        variable: A Keras variable.
        array: What gives NumPy arrays for slices of its rows: an array, or a dataset of a file.

    Example:

    >>> variable = keras.Variable(np.zeros((3, 2)))
    >>> keras_xlnet.presets.assign_in_blocks(variable, np.ones((3, 2)))
    >>> float(keras.ops.sum(variable))
    6.0
    """
    num_bytes = 4 * keras.ops.size(variable)
    if num_bytes <= _BLOCK_BYTES or not _has_rows_to_assign(variable):
        variable.assign(array[...])
        return
    num_rows = variable.shape[0]
    step = max(1, num_rows * _BLOCK_BYTES // int(num_bytes))
    for start in range(0, num_rows, step):
        rows = slice(start, start + step)
        variable.value[rows].assign(keras.ops.cast(array[rows], variable.dtype))


def _has_rows_to_assign(variable):
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf

    # Those of a strategy are several variables.
    return not tf.distribute.has_strategy() and isinstance(variable.value, tf.Variable)
