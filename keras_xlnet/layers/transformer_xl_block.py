from typing import Any

import keras

from keras_xlnet.arguments import check_positions, check_rate
from keras_xlnet.compat.recompute import recomputable
from keras_xlnet.compat.shared_graph import shared_graph
from keras_xlnet.compat.sublayers import RestoresSublayers
from keras_xlnet.compat.unknown_arguments import register
from keras_xlnet.layers.activations import serialize_activation
from keras_xlnet.layers.attention_masks import mask_of_context, without_padding
from keras_xlnet.layers.feed_forward import FeedForward
from keras_xlnet.layers.hash_dropout import HashDropout
from keras_xlnet.layers.initializers import spawn_seeds
from keras_xlnet.layers.memory import join_memory
from keras_xlnet.layers.relative_multi_head_attention import RelativeMultiHeadAttention
from keras_xlnet.types import Activation, Initializer, Shape, Tensor


@register
class TransformerXLBlock(RestoresSublayers, keras.layers.Layer):
    """One layer of Transformer-XL: relative attention to memory and content, then feed-forward.

    Each of the two is added to its input and normalized: `norm(x + attention(x))`, or with
    `normalize_first`, `x + attention(norm(x))`. `TwoStreamBlock` also has a query stream.

    Args:
        num_heads: Int, number of attention heads.
        head_dim: Int, size of each head.
        intermediate_dim: Int, width of the feed-forward network.
        dropout: Float, dropout rate of the attention output and the feed-forward network.
        attention_dropout: Float, dropout rate of the attention probabilities.
        activation: Any Keras activation.
        normalize_first: If `True`, the inputs of attention and feed-forward are normalized, memory
            too, and not their outputs ("pre-norm"). The last block's output is then not normalized.
        layer_norm_epsilon: Float. That of the authors' PyTorch code is 1e-5.
        kernel_initializer: Initializer of all kernels and of the biases of attention. `None` for
            normal(0, 0.02).
        seed: Optional int that fixes the dropout masks.
        attention_chunk_size: Int, see `RelativeMultiHeadAttention`. `None` for all rows at once.
        gradient_checkpointing: If `True`, calls with `training=True` keep only their arguments,
            and the backward pass computes the block again.

    Call arguments:
        content: Tensor `(batch, length, hidden_dim)`.
        memory: Optional tensor `(batch, memory_length, hidden_dim)`, the context before the
            content.
        position_encoding: Tensor `(1, num_positions, hidden_dim)` of `RelativePositionEncoding`.
        attention_mask: Optional bool tensor `(batch or 1, length, memory_length + length)`,
            `True` = may attend.
        attention_biases: Optional tensor `(2, num_heads, head_dim)` of an `AttentionBiases` layer.
        training: Whether dropout is applied.
        content_mask: Optional bool tensor `(batch, length)`, `True` for real rows: nothing attends
            to others. By default the mask that Keras attached to `content`.

    Returns:
        Tensor `(batch, length, hidden_dim)`.

    Example:

    >>> content = np.random.normal(size=(2, 6, 16)).astype("float32")
    >>> positions = keras_xlnet.layers.RelativePositionEncoding(16, "uni")(content)
    >>> causal, _ = keras_xlnet.layers.AttentionMask("uni")(content)
    >>> block = keras_xlnet.layers.TransformerXLBlock(num_heads=4, head_dim=4, intermediate_dim=32)
    >>> block(content, position_encoding=positions, attention_mask=causal).shape
    TensorShape([2, 6, 16])

    Source: Dai et al. 2019 (Transformer-XL), section 3.3.
    """

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        intermediate_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation: Activation = "relu",
        normalize_first: bool = False,
        layer_norm_epsilon: float = 1e-5,
        kernel_initializer: Initializer | None = None,
        seed: int | None = None,
        attention_chunk_size: int | None = None,
        gradient_checkpointing: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.dropout = check_rate("dropout", dropout)
        self.normalize_first = normalize_first
        self.layer_norm_epsilon = layer_norm_epsilon
        self.seed = seed
        self.gradient_checkpointing = gradient_checkpointing
        seeds = spawn_seeds(seed, 4, "TransformerXLBlock")
        self.attention = RelativeMultiHeadAttention(
            num_heads,
            head_dim,
            dropout=check_rate("attention_dropout", attention_dropout),
            kernel_initializer=kernel_initializer,
            seed=seeds[0],
            attention_chunk_size=attention_chunk_size,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.feed_forward = FeedForward(
            intermediate_dim,
            dropout=dropout,
            activation=activation,
            kernel_initializer=kernel_initializer,
            seed=seeds[1],
            dtype=self.dtype_policy,
            name="feed_forward",
        )
        self.attention_norm, self.feed_forward_norm = (
            keras.layers.LayerNormalization(
                epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name=name
            )
            for name in ("attention_norm", "feed_forward_norm")
        )
        self.attention_output_dropout, self.feed_forward_output_dropout = (
            HashDropout(dropout, seed=s, dtype=self.dtype_policy, name=name)
            for s, name in zip(
                seeds[2:], ("attention_output_dropout", "feed_forward_output_dropout"), strict=True
            )
        )

    def build(
        self,
        content_shape: Shape,
        position_encoding_shape: Shape | None = None,
        attention_biases_shape: Shape | None = None,
    ) -> None:
        position_encoding_shape = check_positions(position_encoding_shape)
        self.attention.build(
            content_shape,
            content_shape,
            position_encoding_shape,
            attention_biases_shape=attention_biases_shape,
        )
        for layer in (self.attention_norm, self.feed_forward, self.feed_forward_norm):
            layer.build(content_shape)
        self.restore_sublayers()

    @shared_graph
    @recomputable
    def call(
        self,
        content: Tensor,
        memory: Tensor | None = None,
        position_encoding: Tensor | None = None,
        attention_mask: Tensor | None = None,
        attention_biases: Tensor | None = None,
        training: bool | None = None,
        content_mask: Tensor | None = None,
    ) -> Tensor:
        context = self.join(content, memory)
        key, value, position_key = self.attention.project_context(context, position_encoding)
        context_mask = mask_of_context(content, memory, content_mask)
        return self.attend(
            content,
            key,
            value,
            position_key,
            attention_mask=without_padding(attention_mask, context_mask),
            attention_biases=attention_biases,
            training=training,
        )

    def join(self, content: Tensor, memory: Tensor | None = None) -> Tensor:
        """Returns memory followed by content, as the keys and values are projected from them.

        Args:
            content, memory: As in the call.

        Returns:
            Tensor `(batch, memory_length + length, hidden_dim)`, normalized with
            `normalize_first`.
        """
        context = join_memory(content, memory)
        return self.attention_norm(context) if self.normalize_first else context

    def attend(
        self,
        content: Tensor,
        key: Tensor,
        value: Tensor,
        position_key: Tensor,
        training: bool | None = None,
        **attention_arguments: Any,
    ) -> Tensor:
        """Computes the block for keys and values that are projected already.

        Args:
            content: As in the call.
            key, value, position_key: As `RelativeMultiHeadAttention.project_context` returned
                them for the context.
            training: As in the call.
            **attention_arguments: As in `RelativeMultiHeadAttention.attend`.

        Returns:
            As the call.
        """
        first = self.normalize_first
        query = self.attention_norm(content) if first else content
        attended = self.attention.attend(
            query, key, value, position_key, training=training, **attention_arguments
        )
        # Not `+=`: PyTorch would add in place, to what the gradient needs.
        content = content + self.attention_output_dropout(attended, training=training)
        content = content if first else self.attention_norm(content)
        inputs = self.feed_forward_norm(content) if first else content
        transformed = self.feed_forward(inputs, training=training)
        content = content + self.feed_forward_output_dropout(transformed, training=training)
        return content if first else self.feed_forward_norm(content)

    def compute_output_shape(self, content_shape: Shape) -> Shape:
        return tuple(content_shape)

    def compute_output_spec(self, content: Tensor, **kwargs: Any) -> keras.KerasTensor:
        return keras.KerasTensor(content.shape, dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_heads": self.attention.num_heads,
            "head_dim": self.attention.head_dim,
            "intermediate_dim": self.feed_forward.intermediate_dim,
            "dropout": self.dropout,
            "attention_dropout": self.attention.dropout,
            "activation": serialize_activation(self.feed_forward.activation),
            "normalize_first": self.normalize_first,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "kernel_initializer": keras.initializers.serialize(self.attention.kernel_initializer),
            "seed": self.seed,
            "attention_chunk_size": self.attention.attention_chunk_size,
            "gradient_checkpointing": self.gradient_checkpointing,
        }
