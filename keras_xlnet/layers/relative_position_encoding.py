from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.arguments import check_choice, check_positive_int
from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.registration import register
from keras_xlnet.types import Shape, Tensor


@register
class RelativePositionEncoding(ConfiguredLayer):
    """The position table: sinusoids of the distances between a query row and the context rows.

    Row `n` of the table encodes the distance `context_length - n`, which is positive where the
    context row is before the query row. The table has no batch axis: all rows of the batch share
    it.

    Args:
        hidden_dim: Even int, the width of the table.
        attention_type: `"bi"` for distances of both signs, `"uni"` for distances `>= 0` (causal
            attention masks the others).
        clamp_length: Positive int, the largest distance: larger ones are replaced by it. `None`
            for no limit.
        bidirectional_data: If `True`, the second half of the batch is text in reverse, whose
            distances have the opposite sign.

    Call arguments:
        content: Tensor `(batch, content_length, ...)`. Only its first two axes are used.
        memory: Optional tensor `(..., memory_length, hidden_dim)`. Only its length is used.

    Returns:
        Tensor `(directions, num_positions, hidden_dim)` in the layer's compute dtype, computed
        in float32. `directions` is 1, or 2 (forward, backward) with `bidirectional_data`;
        `num_positions` is `context_length + content_length` for `"bi"`, `context_length + 1`
        for `"uni"`, where `context_length = memory_length + content_length`.

    Raises:
        ValueError: If `hidden_dim` is odd, or the batch size is odd with `bidirectional_data`.

    Example:

    >>> content = np.zeros((2, 5, 8), "float32")
    >>> keras_xlnet.layers.RelativePositionEncoding(hidden_dim=8)(content).shape
    TensorShape([1, 10, 8])

    Source: Dai et al. 2019 (Transformer-XL), section 3.3; Yang et al. 2019 (XLNet), section 2.4.
    """

    def __init__(
        self,
        hidden_dim: int,
        attention_type: str = "bi",
        clamp_length: int | None = None,
        bidirectional_data: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.hidden_dim = check_width(hidden_dim)
        self.attention_type = check_choice("attention_type", attention_type, ("bi", "uni"))
        if clamp_length is not None:
            check_positive_int("clamp_length", clamp_length)
        self.clamp_length = clamp_length
        self.bidirectional_data = bidirectional_data

    def compute_mask(self, content: Tensor, mask: Tensor | None = None) -> None:
        return None  # Positions belong to no text.

    def build(self, content_shape: Shape, memory_shape: Shape | None = None) -> None:
        self._check_batch(content_shape[0])

    def call(self, content: Tensor, memory: Tensor | None = None) -> Tensor:
        self._check_batch(content.shape[0])
        distances = self._distances(
            ops.shape(content)[1], 0 if memory is None else ops.shape(memory)[-2]
        )
        return ops.cast(_sinusoids(distances, self.hidden_dim), self.compute_dtype)

    def _distances(self, content_length, memory_length):
        """`(directions, num_positions)` distances in float32, a row for each direction."""
        last = -content_length if self.attention_type == "bi" else -1
        distances = _distances(memory_length + content_length, last)
        directions = [distances, -distances] if self.bidirectional_data else [distances]
        distances = ops.stack(directions, axis=0)
        if self.clamp_length is not None:
            distances = ops.clip(distances, -float(self.clamp_length), float(self.clamp_length))
        return distances

    def _check_batch(self, batch_size):
        if self.bidirectional_data and batch_size is not None and batch_size % 2:
            raise ValueError(
                "`bidirectional_data=True` treats the second half of the batch as reversed, so the "
                f"batch size must be even. Received: batch size {batch_size}"
            )

    def compute_output_shape(
        self, content_shape: Shape, memory_shape: Shape | None = None
    ) -> Shape:
        content_length = content_shape[1]
        memory_length = 0 if memory_shape is None else memory_shape[-2]
        num_positions = None
        if content_length is not None and memory_length is not None:
            context_length = memory_length + content_length
            future = content_length if self.attention_type == "bi" else 1
            num_positions = context_length + future
        return (2 if self.bidirectional_data else 1, num_positions, self.hidden_dim)


def check_width(hidden_dim: int) -> int:
    """Returns the width of a position table, otherwise raises `ValueError`."""
    if check_positive_int("hidden_dim", hidden_dim) % 2:
        raise ValueError(f"`hidden_dim` must be even. Received: hidden_dim={hidden_dim}")
    return hidden_dim


def default_positions(context: Tensor, content_length: int | Tensor) -> Tensor:
    """Returns the table of `RelativePositionEncoding(hidden_dim)` for a context.

    It has the distances of both signs, so it is also that of causal attention.

    Args:
        context: Tensor `(batch, context_length, hidden_dim)`: memory followed by content.
        content_length: Int, or a scalar tensor.

    Returns:
        Tensor `(1, context_length + content_length, hidden_dim)` of the dtype of `context`.
    """
    distances = _distances(ops.shape(context)[1], -content_length)
    return ops.cast(_sinusoids(distances[None], context.shape[-1]), context.dtype)


def _distances(first, last):
    return ops.cast(ops.arange(first, last, -1, dtype="int32"), "float32")


def _sinusoids(distances, hidden_dim):
    # Always float32: in half precision neighbouring distances become equal.
    frequencies = np.arange(0, hidden_dim, 2, dtype="float32") / hidden_dim
    frequencies = (1 / 10000**frequencies).astype("float32")
    if keras.backend.backend() == "torch":
        import torch

        # `torch.compile` does not follow the conversion of Keras.
        frequencies = torch.from_numpy(frequencies)
    angles = ops.multiply(ops.expand_dims(distances, -1), frequencies)
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)
