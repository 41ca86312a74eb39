from typing import Any

import keras

from keras_xlnet.arguments import check_rate
from keras_xlnet.compat.sublayers import RestoresSublayers
from keras_xlnet.layers.activations import serialize_activation
from keras_xlnet.layers.feed_forward import FeedForward
from keras_xlnet.layers.initializers import spawn_seeds
from keras_xlnet.layers.relative_multi_head_attention import RelativeMultiHeadAttention
from keras_xlnet.types import Activation, Initializer, Shape, Tensor


class Block(RestoresSublayers, keras.layers.Layer):
    """Base class of blocks of attention and a feed-forward network.

    A block calls `self.attention.attend` with what `query_of` returns, and `finish` with the
    result. Incremental decoding does the same, with keys and values that it has kept.

    Args:
        num_heads, head_dim, intermediate_dim, dropout, attention_dropout, activation,
            layer_norm_epsilon, kernel_initializer, seed, attention_chunk_size,
            gradient_checkpointing: As in `TwoStreamBlock`.
        **kwargs: As in `keras.layers.Layer`.

    Attributes:
        norm_names: The names of the attributes of the two layers that normalize.
    """

    norm_names: tuple[str, str]

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        intermediate_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation: Activation = "gelu_tanh",
        layer_norm_epsilon: float = 1e-12,
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
        self.layer_norm_epsilon = layer_norm_epsilon
        self.seed = seed
        self.gradient_checkpointing = gradient_checkpointing
        attention_seed, feed_forward_seed, *output_seeds = spawn_seeds(seed, 4, type(self).__name__)
        self.attention = RelativeMultiHeadAttention(
            num_heads,
            head_dim,
            dropout=check_rate("attention_dropout", attention_dropout),
            kernel_initializer=kernel_initializer,
            seed=attention_seed,
            attention_chunk_size=attention_chunk_size,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.feed_forward = FeedForward(
            intermediate_dim,
            dropout=dropout,
            activation=activation,
            kernel_initializer=kernel_initializer,
            seed=feed_forward_seed,
            dtype=self.dtype_policy,
            name="feed_forward",
        )
        self.create_norms(*output_seeds)

    def create_norms(self, attention_seed: int | None, feed_forward_seed: int | None) -> None:
        """Creates the layers that drop out and normalize the outputs of the two sublayers.

        Args:
            attention_seed, feed_forward_seed: The seeds of their dropout.
        """
        raise NotImplementedError

    def build_parts(
        self, content_shape: Shape, position_encoding_shape: Shape | None, **shapes: Any
    ) -> None:
        """Builds the sublayers.

        Args:
            content_shape, position_encoding_shape: As in `build`.
            **shapes: The other shapes that the attention is built with.
        """
        self.attention.build(content_shape, content_shape, position_encoding_shape, **shapes)
        self.feed_forward.build(content_shape)
        for name in self.norm_names:
            getattr(self, name).build(content_shape)
        self.restore_sublayers()

    def query_of(self, stream: Tensor) -> Tensor:
        """Returns the queries of the attention for a stream that enters the block."""
        return stream

    def finish(self, stream: Tensor, attended: Tensor, training: bool | None = None) -> Tensor:
        """Computes what follows the attention.

        Args:
            stream: Tensor `(batch, rows, hidden_dim)`, which entered the block.
            attended: Tensor of the same shape, which `self.attention.attend` returned.
            training: As in the call.

        Returns:
            Tensor of the same shape.
        """
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_heads": self.attention.num_heads,
            "head_dim": self.attention.head_dim,
            "intermediate_dim": self.feed_forward.intermediate_dim,
            "dropout": self.dropout,
            "attention_dropout": self.attention.dropout,
            "activation": serialize_activation(self.feed_forward.activation),
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "kernel_initializer": keras.initializers.serialize(self.attention.kernel_initializer),
            "seed": self.seed,
            "attention_chunk_size": self.attention.attention_chunk_size,
            "gradient_checkpointing": self.gradient_checkpointing,
        }
