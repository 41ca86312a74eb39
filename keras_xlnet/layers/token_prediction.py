from typing import Any

import keras
from keras import ops

from keras_xlnet.compat.sublayers import RestoresSublayers
from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.registration import register
from keras_xlnet.types import Initializer, Shape, Tensor


@register
class MaskEmbedding(RestoresSublayers, ConfiguredLayer):
    """One trainable vector that replaces the embedding of each token to predict.

    Args:
        hidden_dim: Int, width of the embeddings.
        initializer: Initializer of the vector. The original uses Glorot uniform.

    Call arguments:
        target_mask: Tensor `(batch, length)`, `True` / 1 for tokens to predict. Without
            `embeddings` only its shape is used.
        embeddings: Optional tensor `(batch, length, hidden_dim)`, the values of the other rows.

    Returns:
        Tensor `(batch, length, hidden_dim)`: the vector in every row, or, with `embeddings`, in
        the rows of targets.

    Example:

    >>> embedding = keras_xlnet.layers.MaskEmbedding(hidden_dim=16)
    >>> target_positions = np.array([[1, 4], [0, 5]])
    >>> embedding(target_positions).shape
    TensorShape([2, 2, 16])

    Source: Yang et al. 2019 (XLNet), section 2.3 (the first query stream, `w`).
    """

    def __init__(
        self, hidden_dim: int, initializer: Initializer = "glorot_uniform", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.initializer = keras.initializers.get(initializer)

    def build(
        self, target_mask_shape: Shape | None = None, embeddings_shape: Shape | None = None
    ) -> None:
        # No shape is needed. Keras 3.12 passes no shapes of arguments whose names end in `_mask`.
        # The leading axes are the original's: Glorot's limit depends on them.
        self.embedding = self.add_weight(
            shape=(1, 1, self.hidden_dim), initializer=self.initializer, name="embedding"
        )
        self.restore_sublayers()

    def call(self, target_mask: Tensor, embeddings: Tensor | None = None) -> Tensor:
        embedding = ops.cast(self.embedding, self.compute_dtype)
        if embeddings is None:
            rows = ops.zeros_like(ops.expand_dims(target_mask, -1), dtype=self.compute_dtype)
            return rows + embedding
        is_target = ops.cast(ops.expand_dims(target_mask, -1), "bool")
        return ops.where(is_target, embedding, embeddings)

    def compute_output_spec(
        self, target_mask: Tensor, embeddings: Tensor | None = None
    ) -> keras.KerasTensor:
        return keras.KerasTensor((*target_mask.shape, self.hidden_dim), dtype=self.compute_dtype)


@register
class LogitBias(RestoresSublayers, ConfiguredLayer):
    """A trainable bias for the logits of a softmax that is tied to an embedding.

    Call arguments:
        logits: Tensor `(..., vocabulary_size)`.

    Returns:
        Tensor of the same shape.

    Example:

    >>> keras_xlnet.layers.LogitBias()(np.zeros((2, 3, 100))).shape
    TensorShape([2, 3, 100])

    Source: zihangdai/xlnet, `lm_loss`.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, logits_shape: Shape) -> None:
        self.bias = self.add_weight(shape=(logits_shape[-1],), initializer="zeros", name="bias")
        self.restore_sublayers()

    def call(self, logits: Tensor) -> Tensor:
        return logits + self.bias

    def compute_output_shape(self, logits_shape: Shape) -> Shape:
        return logits_shape
