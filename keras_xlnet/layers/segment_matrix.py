import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_xlnet")
class SegmentMatrix(keras.layers.Layer):
    """Which pairs of content and context rows are in different segments.

    Call arguments:
        segment_ids: Int tensor `(batch, content_length)`. Ids are only compared with each other.
        memory: Optional tensor `(..., memory_length, hidden_dim)`. Only its length is looked at.
        memory_segment_ids: Optional int tensor `(batch, memory_length)`. Without it all of memory
            is segment 0, whatever it was, as in the original.

    Returns:
        Bool tensor `(batch, content_length, memory_length + content_length)`, `True` where the
        two rows are in DIFFERENT segments.

    Example:

    >>> matrix = keras_xlnet.layers.SegmentMatrix()(np.array([[0, 0, 1]]))
    >>> print(keras.ops.convert_to_numpy(matrix)[0].astype(int))
    [[0 0 1]
     [0 0 1]
     [1 1 0]]

    Source: Yang et al. 2019 (XLNet), section 2.5.
    """

    def call(self, segment_ids, memory=None, memory_segment_ids=None):
        context_ids = segment_ids
        if memory_segment_ids is None and memory is not None:
            shape = (ops.shape(segment_ids)[0], ops.shape(memory)[-2])
            memory_segment_ids = ops.zeros(shape, dtype=segment_ids.dtype)
        if memory_segment_ids is not None:
            memory_segment_ids = ops.cast(memory_segment_ids, segment_ids.dtype)
            context_ids = ops.concatenate([memory_segment_ids, segment_ids], axis=1)
        return ops.not_equal(ops.expand_dims(segment_ids, 2), ops.expand_dims(context_ids, 1))

    def compute_output_spec(self, segment_ids, memory=None, memory_segment_ids=None):
        batch_size, content_length = segment_ids.shape
        memory_length = 0
        if memory_segment_ids is not None:
            memory_length = memory_segment_ids.shape[1]
        elif memory is not None:
            memory_length = memory.shape[-2]
        unknown = content_length is None or memory_length is None
        context_length = None if unknown else memory_length + content_length
        return keras.KerasTensor((batch_size, content_length, context_length), dtype="bool")
