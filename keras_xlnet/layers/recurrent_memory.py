import keras
from keras import ops

from keras_xlnet.layers.arguments import check_positive_int
from keras_xlnet.layers.full_batch import full_batch


@keras.saving.register_keras_serializable(package="keras_xlnet")
class RecurrentMemory(keras.layers.Layer):
    """Remembers rows of one segment for the next. Memory carries no gradient.

    Pure (the default): memory in, new memory out. Stateful: the layer keeps the memory of each
    row of the batch in variables from call to call, like a stateful RNN of Keras, so that row `r`
    of a batch has to go on where row `r` of the batch before it ended.

    Stateful memory of training (`training=True`) and of everything else are two: evaluation and
    prediction do not disturb training. Under a `tf.distribute` strategy every replica keeps the
    memory of its own rows. With one replica, it is saved and loaded with the weights; with more,
    or for another batch size, it starts afresh.

    Args:
        memory_length: Int, how many rows to keep.
        reuse_length: Int, how many rows from the START of `content` are kept: segments of
            pretraining data overlap, and the next one starts after these rows. `None` or 0 for
            all of them.
        stateful: Whether the layer keeps the memory itself.

    Call arguments:
        content: Tensor `(batch, ..., content_length, hidden_dim)` of any dtype, or
            `(batch, content_length)` for masks and ids. Stateful layers need a fixed batch size.
        memory: Optional tensor of older rows, shaped like `content` but for the length. Only if
            not stateful.
        reset: Optional bool tensor `(batch,)`, `True` for rows of the batch that begin something
            new: what was remembered for them is forgotten. Only if stateful.
        training: Whether the memory of training is meant. Only if stateful.

    Returns:
        Pure: the newest `min(memory_length, old rows + reused rows)` rows, in the dtype of
        `content`: the memory for the next call. Stateful: `memory_length` rows that were
        remembered before this call, zeros (`False`) where there were none: the memory to attend
        to now; `content` is then remembered for the next call.

    Raises:
        ValueError: If an argument is not as above, or the batch size of a stateful layer is not
            known or changes.

    Example:

    >>> memory = keras_xlnet.layers.RecurrentMemory(memory_length=4, reuse_length=3)
    >>> ids = memory(np.array([[4, 5, 6, 7, 8]]), np.array([[0, 1, 2, 3]]))
    >>> print(keras.ops.convert_to_numpy(ids))
    [[3 4 5 6]]
    >>> memory = keras_xlnet.layers.RecurrentMemory(memory_length=4, stateful=True)
    >>> ids = memory(np.array([[4, 5, 6]]))
    >>> ids = memory(np.array([[7, 8, 9]]))
    >>> print(keras.ops.convert_to_numpy(ids))
    [[0 4 5 6]]

    Source: Dai et al. 2019 (Transformer-XL), section 3.2; Yang et al. 2019 (XLNet), section 2.4.
    """

    def __init__(self, memory_length, reuse_length=None, stateful=False, **kwargs):
        # Ids and masks are remembered too, and must not be turned into floats on the way in.
        super().__init__(**{"autocast": False, **kwargs})
        self.memory_length = check_positive_int("memory_length", memory_length)
        self.reuse_length = (
            check_positive_int("reuse_length", reuse_length) if reuse_length else None
        )
        self.stateful = bool(stateful)

    def build(self, content_shape, memory_shape=None, reset_shape=None):
        if not self.stateful:
            return
        if None in content_shape[: _time_axis(content_shape)]:
            raise ValueError(
                "Stateful memory needs a fixed batch size: one row of memory for each row. Give "
                f"`keras.Input` a `batch_size`. Received: content of shape {content_shape}"
            )
        shape = list(content_shape)
        shape[_time_axis(content_shape)] = self.memory_length
        self.training_state, self.evaluation_state = (
            self.add_weight(
                shape=shape,
                initializer="zeros",
                dtype="int32" if len(shape) == 2 else self.compute_dtype,
                trainable=False,
                name=name,
            )
            for name in ("training_state", "evaluation_state")
        )

    def call(self, content, memory=None, reset=None, training=None):
        if not self.stateful:
            if reset is not None:
                raise ValueError("`reset` is for `stateful=True`: pass zeros as `memory`")
            return self._remember(content, memory)
        if memory is not None:
            raise ValueError("A stateful memory keeps `memory` itself. Received: memory")
        state = self.training_state if training else self.evaluation_state
        content = full_batch(content, state.shape[0])
        # A copy: PyTorch assigns in place.
        memory = ops.cast(ops.copy(state), content.dtype)
        if reset is not None:
            reset = full_batch(reset, state.shape[0])
            reset = ops.reshape(ops.cast(reset, "bool"), (-1, *[1] * (len(memory.shape) - 1)))
            memory = ops.where(reset, ops.zeros_like(memory), memory)
        state.assign(ops.cast(self._remember(content, memory), state.dtype))
        return memory

    def _remember(self, content, memory):
        axis = _time_axis(content.shape)
        rows = content
        if self.reuse_length is not None:
            rows = _slice(content, slice(None, self.reuse_length))
        if memory is not None:
            rows = ops.concatenate([ops.cast(memory, rows.dtype), rows], axis=axis)
        return ops.stop_gradient(_slice(rows, slice(-self.memory_length, None)))

    def reset_state(self):
        """Forgets everything: the memory of training and of evaluation."""
        self.reset_training_state()
        self.reset_evaluation_state()

    def reset_training_state(self):
        """Forgets what was remembered in training."""
        self._forget("training_state")

    def reset_evaluation_state(self):
        """Forgets what was remembered outside of training."""
        self._forget("evaluation_state")

    def _forget(self, name):
        if self.stateful and self.built:
            state = getattr(self, name)
            state.assign(ops.zeros(state.shape, dtype=state.dtype))

    def save_own_variables(self, store):
        # Under a strategy only the first replica could be saved: rather nothing.
        if self.stateful and _num_replicas() == 1:
            super().save_own_variables(store)

    def load_own_variables(self, store):
        if not self.stateful:
            return
        saved = [store[key] for key in sorted(store.keys())]
        if _num_replicas() == 1 and [v.shape for v in saved] == [
            tuple(v.shape) for v in (self.training_state, self.evaluation_state)
        ]:
            super().load_own_variables(store)
        else:
            self.reset_state()

    def compute_output_spec(self, content, memory=None, reset=None, training=None):
        axis = _time_axis(content.shape)
        shape = list(content.shape)
        if self.stateful:
            shape[axis] = self.memory_length
            return keras.KerasTensor(shape, dtype=content.dtype)
        length = shape[axis]
        if length is not None and self.reuse_length is not None:
            length = min(length, self.reuse_length)
        remembered = 0 if memory is None else memory.shape[axis]
        if length is None or remembered is None:
            length = None
        else:
            length = min(self.memory_length, remembered + length)
        shape[axis] = length
        return keras.KerasTensor(shape, dtype=content.dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "memory_length": self.memory_length,
            "reuse_length": self.reuse_length,
            "stateful": self.stateful,
        }


def _time_axis(shape):
    return 1 if len(shape) == 2 else len(shape) - 2


def _slice(x, rows):
    return x[:, rows] if len(x.shape) == 2 else x[..., rows, :]


def _num_replicas():
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf  # `tf.distribute` is the only one who knows.

    return tf.distribute.get_strategy().num_replicas_in_sync
