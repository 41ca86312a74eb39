import keras
from keras import ops

from keras_xlnet.layers.arguments import check_positive_int


@keras.saving.register_keras_serializable(package="keras_xlnet")
class RecurrentMemory(keras.layers.Layer):
    """The memory of the next segment: what was remembered, then what is new, the last rows kept.

    A pure function of its inputs; no gradient flows into memory.

    Args:
        memory_length: Int, how many rows are remembered at most.
        reuse_length: Int, how many rows of a segment, from its START, are remembered: segments
            of pretraining data overlap, and the next one starts after these rows. `None` or 0
            for all.

    Call arguments:
        content: Tensor `(..., content_length, hidden_dim)`, such as the input of a layer or of
            all layers stacked; or `(batch, content_length)`, such as a padding mask.
        memory: Optional tensor of the same rank, with `memory_length` rows or fewer.

    Returns:
        Tensor of the shape of `content` with
        `min(memory_length, old rows + reused rows)` rows, in the dtype of `content`.

    Example:

    >>> memory = keras_xlnet.layers.RecurrentMemory(memory_length=4, reuse_length=3)
    >>> ids = memory(np.array([[4, 5, 6, 7, 8]]), np.array([[0, 1, 2, 3]]))
    >>> print(keras.ops.convert_to_numpy(ids))
    [[3 4 5 6]]

    Source: Dai et al. 2019 (Transformer-XL), section 3.2; Yang et al. 2019 (XLNet), section 2.4.
    """

    def __init__(self, memory_length, reuse_length=None, **kwargs):
        # Ids and masks are remembered too, and must not be turned into floats on the way in.
        super().__init__(**{"autocast": False, **kwargs})
        self.memory_length = check_positive_int("memory_length", memory_length)
        self.reuse_length = (
            check_positive_int("reuse_length", reuse_length) if reuse_length else None
        )

    def call(self, content, memory=None):
        axis = _time_axis(content)
        rows = content
        if self.reuse_length is not None:
            rows = _slice(content, slice(None, self.reuse_length))
        if memory is not None:
            rows = ops.concatenate([ops.cast(memory, rows.dtype), rows], axis=axis)
        return ops.stop_gradient(_slice(rows, slice(-self.memory_length, None)))

    def compute_output_spec(self, content, memory=None):
        axis = _time_axis(content)
        length = content.shape[axis]
        if length is not None and self.reuse_length is not None:
            length = min(length, self.reuse_length)
        remembered = 0 if memory is None else memory.shape[axis]
        if length is None or remembered is None:
            length = None
        else:
            length = min(self.memory_length, remembered + length)
        shape = list(content.shape)
        shape[axis] = length
        return keras.KerasTensor(shape, dtype=content.dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "memory_length": self.memory_length,
            "reuse_length": self.reuse_length,
        }


def _time_axis(x):
    return 1 if len(x.shape) == 2 else len(x.shape) - 2


def _slice(x, rows):
    return x[:, rows] if len(x.shape) == 2 else x[..., rows, :]
