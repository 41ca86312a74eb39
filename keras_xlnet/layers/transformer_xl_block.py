from typing import Any

import keras
from keras import ops

from keras_xlnet.compat.recompute import recomputable
from keras_xlnet.layers.attention_masks import mask_of_context, without_padding
from keras_xlnet.layers.block import Block
from keras_xlnet.layers.hash_dropout import HashDropout
from keras_xlnet.layers.memory import join_memory
from keras_xlnet.registration import register
from keras_xlnet.types import Activation, Initializer, Shape, Tensor


@register
class TransformerXLBlock(Block):
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
        normalize_first: If `True`, the inputs of attention (with memory) and feed-forward are
            normalized instead of their outputs ("pre-norm"). Then the last block's output is not
            normalized.
        layer_norm_epsilon: Float. The authors' PyTorch code uses 1e-5.
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
        position_encoding: Tensor `(1, num_positions, hidden_dim)` of `RelativePositionEncoding`,
            which several blocks can share. `None` for the distances of memory and content.
        attention_mask: Optional bool tensor `(batch or 1, length, memory_length + length)`,
            `True` = may attend.
        attention_biases: Optional tensor `(2, num_heads, head_dim)` of an `AttentionBiases` layer.
        training: Whether dropout is applied.
        content_mask: Optional bool tensor `(batch, length)`, `True` for real rows. Nothing attends
            to other rows. By default the mask that Keras attached to `content`.

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

    norm_names = ("attention_norm", "feed_forward_norm")

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
        super().__init__(
            num_heads,
            head_dim,
            intermediate_dim,
            dropout,
            attention_dropout,
            activation,
            layer_norm_epsilon,
            kernel_initializer,
            seed,
            attention_chunk_size,
            gradient_checkpointing,
            **kwargs,
        )
        self.normalize_first = normalize_first

    def create_norms(self, attention_seed: int | None, feed_forward_seed: int | None) -> None:
        dtype, epsilon = self.dtype_policy, self.layer_norm_epsilon
        self.attention_norm, self.feed_forward_norm = (
            keras.layers.LayerNormalization(epsilon=epsilon, dtype=dtype, name=name)
            for name in self.norm_names
        )
        self.attention_output_dropout = HashDropout(
            self.dropout, seed=attention_seed, dtype=dtype, name="attention_output_dropout"
        )
        self.feed_forward_output_dropout = HashDropout(
            self.dropout, seed=feed_forward_seed, dtype=dtype, name="feed_forward_output_dropout"
        )

    def build(
        self,
        content_shape: Shape,
        position_encoding_shape: Shape | None = None,
        attention_biases_shape: Shape | None = None,
    ) -> None:
        self.build_parts(
            content_shape,
            position_encoding_shape,
            attention_biases_shape=attention_biases_shape,
        )

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
        context_mask = mask_of_context(content, memory, content_mask)
        attended = self.attention.attend(
            self.query_of(content),
            *self.attention.project_context(
                self.join(content, memory), position_encoding, ops.shape(content)[1]
            ),
            attention_mask=without_padding(attention_mask, context_mask),
            attention_biases=attention_biases,
            training=training,
        )
        return self.finish(content, attended, training)

    def join(self, content: Tensor, memory: Tensor | None = None) -> Tensor:
        """Returns memory followed by content, as the keys and values are projected from them.

        Args:
            content, memory: As in the call.

        Returns:
            Tensor `(batch, memory_length + length, hidden_dim)`, normalized with
            `normalize_first`.
        """
        return self.query_of(join_memory(content, memory))

    def query_of(self, stream: Tensor) -> Tensor:
        return self.attention_norm(stream) if self.normalize_first else stream

    def finish(self, stream: Tensor, attended: Tensor, training: bool | None = None) -> Tensor:
        first = self.normalize_first
        # On PyTorch `+=` would add in place, to a tensor that the gradient needs.
        stream = stream + self.attention_output_dropout(attended, training=training)
        stream = stream if first else self.attention_norm(stream)
        inputs = self.feed_forward_norm(stream) if first else stream
        transformed = self.feed_forward(inputs, training=training)
        stream = stream + self.feed_forward_output_dropout(transformed, training=training)
        return stream if first else self.feed_forward_norm(stream)

    def compute_output_shape(self, content_shape: Shape) -> Shape:
        return tuple(content_shape)

    def compute_output_spec(self, content: Tensor, **kwargs: Any) -> keras.KerasTensor:
        return keras.KerasTensor(content.shape, dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "normalize_first": self.normalize_first}
