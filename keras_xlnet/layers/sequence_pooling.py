from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_choice, check_positive_int, check_rate
from keras_xlnet.compat.sublayers import RestoresSublayers, set_trainable
from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.layers.hash_dropout import HashDropout
from keras_xlnet.layers.initializers import (
    clone_initializer,
    get_kernel_initializer,
    spawn_seeds,
)
from keras_xlnet.registration import register
from keras_xlnet.types import Initializer, Shape, Tensor

#: The values of `mode`.
MODES = ("last", "first", "mean", "attention", "cls")


class SequenceReduction(RestoresSublayers, ConfiguredLayer):
    """Base class of layers that make one vector of a sequence. Arguments: see `SequencePooling`."""

    def __init__(
        self,
        mode: str = "last",
        num_heads: int | None = None,
        head_dim: int | None = None,
        dropout: float = 0.0,
        layer_norm_epsilon: float = 1e-12,
        kernel_initializer: Initializer | None = None,
        cls_token_id: int = 3,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.mode = check_choice("mode", mode, MODES)
        if mode == "attention":
            check_positive_int("num_heads", num_heads)
            check_positive_int("head_dim", head_dim)
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.dropout = check_rate("dropout", dropout)
        self.layer_norm_epsilon = layer_norm_epsilon
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)
        self.cls_token_id = cls_token_id
        self.seed = seed
        self._create_layers()

    def _create_layers(self):
        """Creates the sublayers that do not need a shape."""

    def compute_mask(self, sequence: Tensor, mask: Tensor | None = None) -> None:
        return None  # The output has one row per text.

    def compute_output_shape(self, sequence_shape: Shape) -> Shape:
        return (sequence_shape[0], sequence_shape[-1])


@register
class SequencePooling(SequenceReduction):
    """Pooling: one vector for the real tokens of a sequence, with padding on either side.

    Args:
        mode: `"last"` or `"first"` for this real token, `"mean"` for the mean of the real tokens,
            `"cls"` for the token with the id `cls_token_id`, or `"attention"` for a learned query
            that attends to the real tokens.
        num_heads: Int, number of heads. Only for `"attention"`.
        head_dim: Int, size of each head. Only for `"attention"`.
        dropout: Float, dropout rate of the attention output and probabilities. Only for
            `"attention"`.
        layer_norm_epsilon: Float. Only for `"attention"`.
        kernel_initializer: Initializer of the weights, `None` for normal(0, 0.02). Only for
            `"attention"`.
        cls_token_id: Int. Only for `"cls"`.
        seed: Optional int that fixes the dropout masks.

    Call arguments:
        sequence: Tensor `(batch, length, hidden_dim)`.
        padding_mask: Optional tensor `(batch, length)`, `True` / 1 for real tokens. By default
            `mask`. The original masks padding only for `"attention"`.
        token_ids: Int tensor `(batch, length)`. Required for `"cls"`, not used otherwise.
        training: Whether dropout is applied.
        mask: The mask that Keras attached to `sequence`; without one, all tokens are real.

    Returns:
        Tensor `(batch, hidden_dim)`, zeros for a row without a real token. (`"attention"` then
        attends to all tokens equally.)

    Example:

    >>> sequence = np.arange(6, dtype="float32").reshape(1, 3, 2)
    >>> pooling = keras_xlnet.layers.SequencePooling("last")
    >>> pooled = pooling(sequence, padding_mask=np.array([[1, 1, 0]]))
    >>> print(keras.ops.convert_to_numpy(pooled))
    [[2. 3.]]

    Source: the original's `summarize_sequence`.
    """

    def build(self, sequence_shape: Shape) -> None:
        if self.mode != "attention":
            return
        attention_seed, dropout_seed = spawn_seeds(self.seed, 2, "SequencePooling")
        hidden_dim = sequence_shape[-1]
        self.query = self.add_kernel("query", (hidden_dim,))
        self.attention = keras.layers.MultiHeadAttention(
            self.num_heads,
            self.head_dim,
            dropout=self.dropout,
            use_bias=False,
            flash_attention=False,
            kernel_initializer=self.kernel_initializer,
            seed=attention_seed,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.dropout_layer = HashDropout(
            self.dropout, seed=dropout_seed, dtype=self.dtype_policy, name="dropout"
        )
        self.norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
        )
        query_shape = (sequence_shape[0], 1, hidden_dim)
        self.attention.build(query_shape, sequence_shape)
        if not self.trainable:
            set_trainable(self.attention, False)  # Also the layers that it has made.
        self.norm.build(query_shape)
        self.restore_sublayers()

    def call(
        self,
        sequence: Tensor,
        padding_mask: Tensor | None = None,
        token_ids: Tensor | None = None,
        training: bool | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if padding_mask is None:
            padding_mask = ops.ones(ops.shape(sequence)[:2], "bool") if mask is None else mask
        padding_mask = ops.cast(padding_mask, "bool")
        if self.mode == "attention":
            return self._attend(sequence, padding_mask, training)
        if self.mode == "cls":
            if token_ids is None:
                raise ValueError("`mode='cls'` needs `token_ids`. Received: token_ids=None")
            padding_mask = ops.logical_and(padding_mask, ops.equal(token_ids, self.cls_token_id))
        weights = ops.cast(self._weights(padding_mask), sequence.dtype)
        # A product with a one-hot vector: a gather is slow on some accelerators.
        return ops.squeeze(ops.matmul(ops.expand_dims(weights, 1), sequence), 1)

    def _weights(self, padding_mask):
        """Returns the weights of the tokens, `(batch, length)`."""
        real = ops.cast(padding_mask, "int32")
        if self.mode == "mean":
            real = ops.cast(padding_mask, "float32")
            return real / ops.maximum(ops.sum(real, axis=1, keepdims=True), 1.0)
        if self.mode == "first":
            return ops.logical_and(padding_mask, ops.cumsum(real, axis=1) == 1)
        count = ops.cumsum(real, axis=1)
        return ops.logical_and(padding_mask, count == count[:, -1:])

    def _attend(self, sequence, padding_mask, training):
        batch_size = ops.shape(sequence)[0]
        query = ops.broadcast_to(self.query, (batch_size, 1, sequence.shape[-1]))
        attended = self.attention(
            ops.cast(query, sequence.dtype),
            sequence,
            attention_mask=ops.expand_dims(padding_mask, 1),
            training=training,
        )
        attended = self.dropout_layer(attended, training=training)
        return ops.squeeze(self.norm(attended), 1)


@register
class SequenceSummary(SequenceReduction):
    """A summary of a sequence: pooling, a dense layer with tanh, dropout.

    Args:
        mode: Mode of `SequencePooling`. The default `"last"` is `<cls>`, with padding on either
            side.
        num_heads: Int, number of heads. Only for `"attention"`.
        head_dim: Int, size of each head. Only for `"attention"`.
        dropout: Float, dropout rate of the summary, and in the pooling of `"attention"`.
        layer_norm_epsilon: Float. Only for `"attention"`.
        kernel_initializer: Initializer of the weights, `None` for normal(0, 0.02).
        cls_token_id: Int. Only for `"cls"`.
        seed: Optional int that fixes the dropout masks.

    Call arguments:
        sequence: Tensor `(batch, length, hidden_dim)`.
        padding_mask: Optional tensor `(batch, length)`, `True` / 1 for real tokens. By default
            `mask`.
        token_ids: Int tensor `(batch, length)`. Required for `"cls"`, not used otherwise.
        training: Whether dropout is applied.
        mask: The mask that Keras attached to `sequence`; without one, all tokens are real.

    Returns:
        Tensor `(batch, hidden_dim)`.

    Example:

    >>> sequence = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    >>> summary = keras_xlnet.layers.SequenceSummary()
    >>> summary(sequence, padding_mask=np.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])).shape
    TensorShape([2, 8])

    Source: the original's `summarize_sequence`.
    """

    def _create_layers(self):
        dropout_seed, pooling_seed = spawn_seeds(self.seed, 2, "SequenceSummary")
        self.pooling = SequencePooling(
            self.mode,
            num_heads=self.num_heads,
            head_dim=self.head_dim,
            dropout=self.dropout,
            layer_norm_epsilon=self.layer_norm_epsilon,
            kernel_initializer=clone_initializer(self.kernel_initializer),
            cls_token_id=self.cls_token_id,
            seed=pooling_seed,
            dtype=self.dtype_policy,
            name="pooling",
        )
        self.dropout_layer = HashDropout(
            self.dropout, seed=dropout_seed, dtype=self.dtype_policy, name="dropout"
        )

    def build(self, sequence_shape: Shape) -> None:
        self.dense = self.new_dense("dense", sequence_shape[-1], activation="tanh")
        self.pooling.build(sequence_shape)
        self.dense.build((sequence_shape[0], sequence_shape[-1]))
        self.restore_sublayers()

    def call(
        self,
        sequence: Tensor,
        padding_mask: Tensor | None = None,
        token_ids: Tensor | None = None,
        training: bool | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        padding_mask = mask if padding_mask is None else padding_mask
        pooled = self.pooling(
            sequence, padding_mask=padding_mask, token_ids=token_ids, training=training
        )
        return self.dropout_layer(self.dense(pooled), training=training)
