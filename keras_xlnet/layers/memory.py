from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_positive_int, check_shape
from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.lazy_modules import tf
from keras_xlnet.registration import register
from keras_xlnet.replicas import num_replicas
from keras_xlnet.types import Shape, Tensor


class Memory(ConfiguredLayer):
    """Base class of layers that remember the newest rows of sequences.

    Args:
        memory_length, reuse_length: As in `RecurrentMemory`.
    """

    def __init__(self, memory_length: int, reuse_length: int | None = None, **kwargs: Any) -> None:
        # Ids and masks are remembered too, and must not be cast to floats.
        super().__init__(**{"autocast": False, **kwargs})
        self.memory_length = check_positive_int("memory_length", memory_length)
        self.reuse_length = reuse_length or None
        if reuse_length:
            check_positive_int("reuse_length", reuse_length)

    def newest_rows(self, content: Tensor, memory: Tensor | None) -> Tensor:
        """Returns what is remembered of memory and content. Arguments as in `RecurrentMemory`."""
        axis = _time_axis(content.shape)
        rows = content
        if self.reuse_length is not None:
            rows = _slice(content, slice(None, self.reuse_length))
        if memory is not None:
            rows = ops.concatenate([ops.cast(memory, rows.dtype), rows], axis=axis)
        return ops.stop_gradient(_slice(rows, slice(-self.memory_length, None)))


@register
class RecurrentMemory(Memory):
    """Memory of earlier segments as input and output: memory in, new memory out.

    Memory carries no gradient. `StatefulMemory` keeps it in variables.

    Args:
        memory_length: Int, the largest number of rows to keep.
        reuse_length: Int, the number of rows from the START of `content` that are kept. Segments
            of pretraining data overlap, and the next one starts after these rows. `None` or 0 for
            all rows.

    Call arguments:
        content: Tensor `(batch, ..., content_length, hidden_dim)` of any dtype, or
            `(batch, content_length)` for masks and ids.
        memory: Optional tensor of older rows, with the shape of `content` except for the length.

    Returns:
        The newest `min(memory_length, old rows + kept rows)` rows, in the dtype of `content`.

    Raises:
        ValueError: If an argument is not as above.

    Example:

    >>> remember = keras_xlnet.layers.RecurrentMemory(memory_length=4, reuse_length=3)
    >>> new_memory = remember(np.array([[4, 5, 6, 7, 8]]), np.array([[0, 1, 2, 3]]))
    >>> print(keras.ops.convert_to_numpy(new_memory))
    [[3 4 5 6]]

    Source: Dai et al. 2019 (Transformer-XL), section 3.2; Yang et al. 2019 (XLNet), section 2.4.
    """

    def call(self, content: Tensor, memory: Tensor | None = None) -> Tensor:
        return self.newest_rows(content, memory)

    def compute_output_spec(
        self, content: Tensor, memory: Tensor | None = None
    ) -> keras.KerasTensor:
        axis = _time_axis(content.shape)
        shape = list(content.shape)
        length = shape[axis]
        if length is not None and self.reuse_length is not None:
            length = min(length, self.reuse_length)
        remembered = 0 if memory is None else memory.shape[axis]
        if length is None or remembered is None:
            shape[axis] = None
        else:
            shape[axis] = min(self.memory_length, remembered + length)
        return keras.KerasTensor(shape, dtype=content.dtype)


@register
class StatefulMemory(Memory):
    """Memory of earlier segments in variables: returns what was remembered BEFORE the call.

    As with a stateful RNN of Keras, row `r` of a batch must continue row `r` of the batch before.
    Memory carries no gradient.

    Calls with `training=True` and other calls have separate memories: evaluation and prediction
    do not change the memory of training. Under a `tf.distribute` strategy each replica keeps the
    memory of its own rows. With one replica the memory is saved and loaded with the weights. With
    several replicas, or with another batch size, it starts empty.

    Args:
        memory_length: Int, the number of rows to keep.
        reuse_length: Int, the number of rows from the START of `content` that are kept. `None` or
            0 for all rows.

    Call arguments:
        content: Tensor `(batch, ..., content_length, hidden_dim)` of any dtype, or
            `(batch, content_length)` for masks and ids. The batch size must be static.
        reset: Optional bool tensor `(batch,)`, `True` for rows of the batch that begin a new
            document. Their memory is forgotten.
        training: Whether the memory of training is used.

    Returns:
        The `memory_length` rows that were remembered before the call, zeros (`False`) where there
        were none, in the dtype of `content`. This is the memory that `content` attends to;
        `content` itself is remembered for the next call.

    Raises:
        ValueError: If an argument is not as above, or the batch size is unknown or changes.

    Example:

    >>> memory = keras_xlnet.layers.StatefulMemory(memory_length=4)
    >>> remembered = memory(np.array([[4, 5, 6]]))
    >>> remembered = memory(np.array([[7, 8, 9]]))
    >>> print(keras.ops.convert_to_numpy(remembered))
    [[0 4 5 6]]

    Source: Dai et al. 2019 (Transformer-XL), section 3.2; Yang et al. 2019 (XLNet), section 2.4.
    """

    def build(self, content_shape: Shape, reset_shape: Shape | None = None) -> None:
        if None in content_shape[: _time_axis(content_shape)]:
            raise ValueError(
                "`StatefulMemory` needs a static batch size, as it has one row of memory for each "
                "row. Give `keras.Input` a `batch_size`. Received: content of shape "
                f"{content_shape}"
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

    def call(
        self, content: Tensor, reset: Tensor | None = None, training: bool | None = None
    ) -> Tensor:
        state = self.training_state if training else self.evaluation_state
        content = ensure_batch_size(content, state.shape[0])
        # A copy: PyTorch assigns in place.
        memory = ops.cast(ops.copy(state), content.dtype)
        if reset is not None:
            reset = ensure_batch_size(reset, state.shape[0])
            reset = ops.reshape(ops.cast(reset, "bool"), (-1, *[1] * (len(memory.shape) - 1)))
            memory = ops.where(reset, ops.zeros_like(memory), memory)
        state.assign(ops.cast(self.newest_rows(content, memory), state.dtype))
        return memory

    def reset_state(self) -> None:
        """Forgets everything: the memory of training and of evaluation."""
        self.reset_training_state()
        self.reset_evaluation_state()

    def reset_training_state(self) -> None:
        """Forgets what was remembered in training."""
        self._reset("training_state")

    def reset_evaluation_state(self) -> None:
        """Forgets what was remembered outside of training."""
        self._reset("evaluation_state")

    def _reset(self, name):
        if self.built:
            state = getattr(self, name)
            state.assign(ops.zeros(state.shape, dtype=state.dtype))

    def save_own_variables(self, store: Any) -> None:
        # With several replicas only the memory of the first would be saved, so none is.
        if num_replicas() == 1:
            super().save_own_variables(store)

    def load_own_variables(self, store: Any) -> None:
        saved = [store[key] for key in sorted(store.keys())]
        if num_replicas() == 1 and [v.shape for v in saved] == [
            tuple(v.shape) for v in (self.training_state, self.evaluation_state)
        ]:
            super().load_own_variables(store)
        else:
            self.reset_state()

    def compute_output_spec(
        self, content: Tensor, reset: Tensor | None = None, training: bool | None = None
    ) -> keras.KerasTensor:
        shape = list(content.shape)
        shape[_time_axis(shape)] = self.memory_length
        return keras.KerasTensor(shape, dtype=content.dtype)


def join_memory(content: Tensor, memory: Tensor | None) -> Tensor:
    """Returns memory followed by content, the context that a block attends to.

    Args:
        content: Tensor `(batch, length, hidden_dim)`.
        memory: Optional tensor `(batch, memory_length, hidden_dim)`.

    Returns:
        Tensor `(batch, memory_length + length, hidden_dim)`, in the dtype of `content`.

    Raises:
        ValueError: If the memory is of another batch size or width.
    """
    if memory is None:
        return content
    batch_size, _, hidden_dim = content.shape
    check_shape("memory", memory, batch_size, None, hidden_dim)
    return ops.concatenate([ops.cast(memory, content.dtype), content], axis=1)


def ensure_batch_size(x: Tensor, batch_size: int) -> Tensor:
    """Returns `x` with a static batch size.

    Args:
        x: Tensor `(batch, ...)`.
        batch_size: Int, the number of rows of a stateful memory.

    Returns:
        `x`.

    Raises:
        ValueError: If `x` has another number of rows. If that is known only when a graph runs, the
            graph fails at a node whose name gives the reason.
    """
    if x.shape[0] == batch_size:
        return x
    if x.shape[0] is not None:
        raise ValueError(
            f"A stateful memory has {batch_size} rows, one for each row of a batch. Received: a "
            f"batch of {x.shape[0]} rows. Drop incomplete batches: "
            "`dataset.batch(batch_size, drop_remainder=True)`"
        )
    if isinstance(x, keras.KerasTensor) or keras.backend.backend() != "tensorflow":
        return x  # Other backends know all shapes when they trace.
    if x.shape.rank is None:  # Sample weights of rows and of labels, in a step that is traced once.
        return x
    shape = (batch_size, *x.shape[1:])
    return tf.ensure_shape(x, shape, name="stateful_memory_needs_full_batches")


def _time_axis(shape):
    return 1 if len(shape) == 2 else len(shape) - 2


def _slice(x, rows):
    return x[:, rows] if len(x.shape) == 2 else x[..., rows, :]
