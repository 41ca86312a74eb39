from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_shape
from keras_xlnet.compat.recompute import recomputable
from keras_xlnet.compat.varying_outputs import VaryingOutputs
from keras_xlnet.layers.add_and_norm import AddAndNorm
from keras_xlnet.layers.attention_masks import mask_of_context, without_padding
from keras_xlnet.layers.block import Block
from keras_xlnet.layers.memory import join_memory
from keras_xlnet.registration import register
from keras_xlnet.types import Shape, Tensor


@register
class TwoStreamBlock(VaryingOutputs, Block):
    """One layer of XLNet: attention, add and norm, feed-forward, add and norm.

    The content stream represents a token and its context. The query stream represents a position
    and its context, but not the token there, which it predicts. Both attend to the content stream
    that enters the block, and share all weights. Without a query stream this is a layer of
    Transformer-XL.

    Args:
        num_heads: Int, number of attention heads.
        head_dim: Int, size of each head.
        intermediate_dim: Int, width of the feed-forward network.
        dropout: Float, dropout rate of the attention output and the feed-forward network.
        attention_dropout: Float, dropout rate of the attention probabilities.
        activation: `"gelu_tanh"` or any Keras activation.
        layer_norm_epsilon: Float. The original uses 1e-12; the default of Keras is 1e-3.
        kernel_initializer: Initializer of all kernels and of the biases of attention. `None` for
            normal(0, 0.02).
        seed: Optional int that fixes the dropout masks.
        attention_chunk_size: Int, the largest number of query rows that attention computes at a
            time: see `RelativeMultiHeadAttention`. `None` for all rows.
        gradient_checkpointing: If `True`, calls with `training=True` keep only their arguments,
            and the backward pass computes the block again. This saves memory and takes about a
            third more time. The numbers are the same.

    Call arguments:
        content_stream: Tensor `(batch, content_length, hidden_dim)`.
        query_stream: Optional tensor `(batch, content_length, hidden_dim)`, or
            `(batch, num_predictions, hidden_dim)` with `target_positions`: only these rows are
            computed.
        memory: Optional tensor `(batch, memory_length, hidden_dim)`, the context before the
            content.
        position_encoding: Tensor `(directions, num_positions, hidden_dim)` of
            `RelativePositionEncoding`, which several blocks can share. `None` for the distances of
            both signs of memory and content.
        segment_matrix: Optional bool tensor `(batch, content_length, context_length)`, `True`
            where two tokens are in DIFFERENT segments.
        content_attention_mask: Optional bool tensor of the same shape, `True` = may attend.
        query_attention_mask: Optional bool tensor of the same shape, for the query stream. With
            `target_positions`, the block takes the rows of these positions. A mask with
            `num_predictions` rows, if that differs from `content_length`, is used as it is.
        target_positions: Optional int tensor `(batch, num_predictions)`, positions in the
            content. Positions outside of it, such as -1 for padding, are clamped to it.
        attention_biases: Optional tensor `(3, num_heads, head_dim)` of an `AttentionBiases` layer.
        return_content_stream: If `False`, only the query stream is computed, as the last block of
            a language model needs it.
        training: Whether dropout is applied.
        content_stream_mask: Optional bool tensor `(batch, content_length)`, `True` for real rows.
            Nothing attends to other rows. By default the mask that Keras attached to
            `content_stream`.

    Returns:
        The content stream; or `(content_stream, query_stream)` if a query stream is given; or the
        query stream with `return_content_stream=False`.

    Raises:
        ValueError: If neither stream is to be returned.

    Example:

    >>> content = np.random.normal(size=(2, 6, 16)).astype("float32")
    >>> positions = keras_xlnet.layers.RelativePositionEncoding(hidden_dim=16)(content)
    >>> block = keras_xlnet.layers.TwoStreamBlock(num_heads=4, head_dim=4, intermediate_dim=32)
    >>> block(content, position_encoding=positions).shape
    TensorShape([2, 6, 16])
    >>> block(content).shape  # With the same positions.
    TensorShape([2, 6, 16])
    >>> content_out, query_out = block(content, content[:, :2], position_encoding=positions,
    ...     target_positions=np.array([[1, 4], [0, 5]]))
    >>> query_out.shape
    TensorShape([2, 2, 16])

    Source: Yang et al. 2019 (XLNet), section 2.3 and appendix A.2.
    """

    norm_names = ("attention_add_and_norm", "feed_forward_add_and_norm")

    def create_norms(self, attention_seed: int | None, feed_forward_seed: int | None) -> None:
        epsilon, dtype = self.layer_norm_epsilon, self.dtype_policy
        self.attention_add_and_norm, self.feed_forward_add_and_norm = (
            AddAndNorm(self.dropout, epsilon, seed, dtype=dtype, name=name)
            for name, seed in zip(self.norm_names, (attention_seed, feed_forward_seed), strict=True)
        )

    def build(
        self,
        content_stream_shape: Shape,
        position_encoding_shape: Shape | None = None,
        segment_matrix_shape: Shape | None = None,
        attention_biases_shape: Shape | None = None,
    ) -> None:
        self.build_parts(
            content_stream_shape,
            position_encoding_shape,
            segment_matrix_shape=segment_matrix_shape,
            attention_biases_shape=attention_biases_shape,
        )

    @recomputable
    def call(
        self,
        content_stream: Tensor,
        query_stream: Tensor | None = None,
        memory: Tensor | None = None,
        position_encoding: Tensor | None = None,
        segment_matrix: Tensor | None = None,
        content_attention_mask: Tensor | None = None,
        query_attention_mask: Tensor | None = None,
        target_positions: Tensor | None = None,
        attention_biases: Tensor | None = None,
        return_content_stream: bool = True,
        training: bool | None = None,
        content_stream_mask: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        if query_stream is None and not return_content_stream:
            raise ValueError("`return_content_stream=False` needs a `query_stream`")
        context = join_memory(content_stream, memory)
        batch_size, length, _ = content_stream.shape
        pairs = (batch_size, 1), (length, 1), context.shape[1]
        check_shape("content_attention_mask", content_attention_mask, *pairs)
        context_mask = mask_of_context(content_stream, memory, content_stream_mask)
        content_attention_mask, query_attention_mask = (
            without_padding(mask, context_mask)
            for mask in (content_attention_mask, query_attention_mask)
        )
        # Projected once, shared by both streams.
        content_length = ops.shape(content_stream)[1]
        projected = self.attention.project_context(context, position_encoding, content_length)

        outputs = []
        if return_content_stream:
            attended = self.attention.attend(
                content_stream,
                *projected,
                segment_matrix=segment_matrix,
                attention_mask=content_attention_mask,
                attention_biases=attention_biases,
                training=training,
            )
            outputs.append(self.finish(content_stream, attended, training))
        if query_stream is not None:
            if target_positions is not None:
                target_positions = _clamp(target_positions, content_length)
                query_attention_mask, segment_matrix = (
                    _take_target_rows(
                        matrix, target_positions, query_stream.shape[1], content_stream.shape[1]
                    )
                    for matrix in (query_attention_mask, segment_matrix)
                )
            attended = self.attention.attend(
                query_stream,
                *projected,
                segment_matrix=segment_matrix,
                attention_mask=query_attention_mask,
                target_positions=target_positions,
                attention_biases=attention_biases,
                content_length=content_length,
                training=training,
            )
            outputs.append(self.finish(query_stream, attended, training))
        return tuple(outputs) if len(outputs) == 2 else outputs[0]

    def finish(self, stream: Tensor, attended: Tensor, training: bool | None = None) -> Tensor:
        stream = self.attention_add_and_norm(stream, attended, training=training)
        transformed = self.feed_forward(stream, training=training)
        return self.feed_forward_add_and_norm(stream, transformed, training=training)

    def compute_output_spec(
        self,
        content_stream: Tensor,
        query_stream: Tensor | None = None,
        return_content_stream: bool = True,
        **kwargs: Any,
    ) -> Any:
        streams = [content_stream] if return_content_stream else []
        streams += [] if query_stream is None else [query_stream]
        specs = tuple(keras.KerasTensor(s.shape, dtype=self.compute_dtype) for s in streams)
        return specs if len(specs) == 2 else specs[0]

    def compute_output_shape(
        self, content_stream_shape: Shape, query_stream_shape: Shape | None = None
    ) -> Shape | tuple[Shape, Shape]:
        if query_stream_shape is None:
            return tuple(content_stream_shape)
        return tuple(content_stream_shape), tuple(query_stream_shape)


def _clamp(target_positions, content_length):
    return ops.clip(ops.cast(target_positions, "int32"), 0, content_length - 1)


def _take_target_rows(matrix, target_positions, num_predictions, content_length):
    """`(batch, content_length, context_length)` -> `(batch, num_predictions, context_length)`."""
    if matrix is None or matrix.shape[1] == 1:
        return matrix
    if num_predictions is not None and matrix.shape[1] == num_predictions != content_length:
        return matrix
    batch_size, num_rows, context_length = ops.shape(matrix)
    first_rows = ops.expand_dims(ops.arange(batch_size, dtype="int32") * num_rows, -1)
    rows = ops.reshape(matrix, (batch_size * num_rows, context_length))
    return ops.take(rows, first_rows + target_positions, axis=0)
