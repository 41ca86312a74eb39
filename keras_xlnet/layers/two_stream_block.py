import keras
from keras import ops

from keras_xlnet.layers.arguments import check_rate
from keras_xlnet.layers.feed_forward import FeedForward
from keras_xlnet.layers.fused import fused
from keras_xlnet.layers.gelu_tanh import serialize_activation
from keras_xlnet.layers.hash_dropout import HashDropout, drop
from keras_xlnet.layers.initialization import spawn_seeds
from keras_xlnet.layers.quantization import RestoresQuantization
from keras_xlnet.layers.recompute import call_recomputed
from keras_xlnet.layers.relative_multi_head_attention import RelativeMultiHeadAttention


@keras.saving.register_keras_serializable(package="keras_xlnet")
class TwoStreamBlock(RestoresQuantization, keras.layers.Layer):
    """One layer of XLNet: relative attention and feed-forward, each with residual and norm.

    The content stream holds what a token is; the query stream knows where a token stands but not
    what it is, and predicts it. Both read the content stream that enters the block, and share
    all weights. Without a query stream this is a Transformer-XL layer.

    Args:
        num_heads: Int, number of attention heads.
        head_dim: Int, size of each head.
        intermediate_dim: Int, width of the feed-forward network.
        dropout: Float, dropout rate of the attention output and the feed-forward network.
        attention_dropout: Float, dropout rate of the attention probabilities.
        activation: `"gelu_tanh"` or any Keras activation.
        layer_norm_epsilon: Float; the original's is 1e-12, far from Keras' default.
        kernel_initializer: Initializer of all kernels and biases of attention. `None` for
            normal(0, 0.02).
        seed: Optional int that fixes the dropout masks.
        attention_chunk_size: Int: attention is computed for so many rows at a time, see
            `RelativeMultiHeadAttention`. `None` for all at once.
        gradient_checkpointing: If `True`, calls with `training=True` remember no more than what
            goes in, and the backward pass computes the block again: less memory, a third more
            time. The same numbers.

    Call arguments:
        content_stream: Tensor `(batch, content_length, hidden_dim)`.
        query_stream: Optional tensor `(batch, content_length, hidden_dim)`, or with
            `target_positions` `(batch, num_predictions, hidden_dim)`: then only these rows are
            computed.
        memory: Optional tensor `(batch, memory_length, hidden_dim)`, attended to in front of the
            content.
        position_encoding: Tensor `(directions, num_positions, hidden_dim)` as
            `RelativePositionEncoding` makes it.
        segment_matrix: Optional bool tensor `(batch, content_length, context_length)`, `True`
            where two tokens are in DIFFERENT segments.
        content_attention_mask: Optional bool tensor of the same shape, `True` = may attend.
        query_attention_mask: The same for the query stream, also a row for each content position:
            the block picks the rows of `target_positions`. One that has `num_predictions` rows,
            in a batch where that is another number, is taken as picked already.
        target_positions: Optional int tensor `(batch, num_predictions)`, positions in the content.
        attention_biases: Optional tensor `(3, num_heads, head_dim)` of an `AttentionBiases` layer.
        return_content_stream: If `False`, only the query stream is computed. For the top block,
            whose content stream nobody reads.
        training: Whether dropout is applied.

    Returns:
        The content stream, or `(content_stream, query_stream)` if a query stream was given, or
        the query stream with `return_content_stream=False`.

    Example:

    >>> content = np.random.normal(size=(2, 6, 16)).astype("float32")
    >>> positions = keras_xlnet.layers.RelativePositionEncoding(hidden_dim=16)(content)
    >>> block = keras_xlnet.layers.TwoStreamBlock(num_heads=4, head_dim=4, intermediate_dim=32)
    >>> block(content, position_encoding=positions).shape
    TensorShape([2, 6, 16])
    >>> content_out, query_out = block(content, content[:, :2], position_encoding=positions,
    ...     target_positions=np.array([[1, 4], [0, 5]]))
    >>> query_out.shape
    TensorShape([2, 2, 16])

    Source: Yang et al. 2019 (XLNet), section 2.3 and appendix A.2.
    """

    def __init__(
        self,
        num_heads,
        head_dim,
        intermediate_dim,
        dropout=0.0,
        attention_dropout=0.0,
        activation="gelu_tanh",
        layer_norm_epsilon=1e-12,
        kernel_initializer=None,
        seed=None,
        attention_chunk_size=None,
        gradient_checkpointing=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_rate("attention_dropout", attention_dropout)
        self.dropout = check_rate("dropout", dropout)
        self.layer_norm_epsilon = layer_norm_epsilon
        self.seed = seed
        self.gradient_checkpointing = gradient_checkpointing
        attention_seed, dropout_seed, feed_forward_seed = spawn_seeds(seed, 3)
        self.attention = RelativeMultiHeadAttention(
            num_heads,
            head_dim,
            dropout=attention_dropout,
            kernel_initializer=kernel_initializer,
            seed=attention_seed,
            attention_chunk_size=attention_chunk_size,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.attention_dropout_layer = HashDropout(
            dropout, seed=dropout_seed, dtype=self.dtype_policy, name="attention_dropout"
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
        self.attention_norm, self.feed_forward_norm = (
            keras.layers.LayerNormalization(
                epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name=name
            )
            for name in ("attention_norm", "feed_forward_norm")
        )

    def build(
        self,
        content_stream_shape,
        position_encoding_shape,
        segment_matrix_shape=None,
        attention_biases_shape=None,
    ):
        self.attention.build(
            content_stream_shape,
            content_stream_shape,
            position_encoding_shape,
            segment_matrix_shape=segment_matrix_shape,
            attention_biases_shape=attention_biases_shape,
        )
        self.feed_forward.build(content_stream_shape)
        self.attention_norm.build(content_stream_shape)
        self.feed_forward_norm.build(content_stream_shape)
        self.restore_quantization()

    def call(
        self,
        content_stream,
        query_stream=None,
        memory=None,
        position_encoding=None,
        segment_matrix=None,
        content_attention_mask=None,
        query_attention_mask=None,
        target_positions=None,
        attention_biases=None,
        return_content_stream=True,
        training=None,
    ):
        if query_stream is None and not return_content_stream:
            raise ValueError("`return_content_stream=False` needs a `query_stream`")
        arguments = {
            "content_stream": content_stream,
            "query_stream": query_stream,
            "memory": memory,
            "position_encoding": position_encoding,
            "segment_matrix": segment_matrix,
            "content_attention_mask": content_attention_mask,
            "query_attention_mask": query_attention_mask,
            "target_positions": target_positions,
            "attention_biases": attention_biases,
            "return_content_stream": return_content_stream,
            "training": training,
        }
        if training and self.gradient_checkpointing:
            return call_recomputed(self, self._both_streams, **arguments)
        return self._both_streams(**arguments)

    def _both_streams(
        self,
        content_stream,
        query_stream,
        memory,
        position_encoding,
        segment_matrix,
        content_attention_mask,
        query_attention_mask,
        target_positions,
        attention_biases,
        return_content_stream,
        training,
    ):
        context = content_stream
        if memory is not None:
            memory = ops.cast(memory, content_stream.dtype)
            context = ops.concatenate([memory, content_stream], axis=1)
        projected = self.attention.project_context(context, position_encoding)
        if return_content_stream:
            content_output = self._stream(
                content_stream,
                projected,
                segment_matrix=segment_matrix,
                attention_mask=content_attention_mask,
                attention_biases=attention_biases,
                training=training,
            )
        if query_stream is None:
            return content_output
        if target_positions is not None:
            segment_matrix, query_attention_mask = (
                _rows_of(matrix, query_stream, target_positions, content_stream.shape[1])
                for matrix in (segment_matrix, query_attention_mask)
            )
        query_output = self._stream(
            query_stream,
            projected,
            segment_matrix=segment_matrix,
            attention_mask=query_attention_mask,
            target_positions=target_positions,
            content_length=ops.shape(content_stream)[1],
            attention_biases=attention_biases,
            training=training,
        )
        return (content_output, query_output) if return_content_stream else query_output

    def _stream(self, stream, projected, training, **kwargs):
        attended = self.attention.attend(stream, *projected, training=training, **kwargs)
        stream = self._add_and_normalize(
            stream, attended, self.attention_dropout_layer, self.attention_norm, training
        )
        transformed = self.feed_forward.before_dropout(stream, training=training)
        return self._add_and_normalize(
            stream, transformed, self.feed_forward.output_dropout, self.feed_forward_norm, training
        )

    def _add_and_normalize(self, stream, change, dropout, norm, training):
        return drop_add_normalize(
            stream,
            change,
            norm.gamma,
            norm.beta,
            dropout.next_seed(training),
            dropout=dropout.rate,
            epsilon=norm.epsilon,
            fuse=bool(training),
        )

    def compute_output_spec(
        self, content_stream, query_stream=None, return_content_stream=True, **kwargs
    ):
        streams = [content_stream] if return_content_stream else []
        streams += [] if query_stream is None else [query_stream]
        specs = tuple(keras.KerasTensor(s.shape, dtype=self.compute_dtype) for s in streams)
        return specs if len(specs) == 2 else specs[0]

    def compute_output_shape(self, content_stream_shape, query_stream_shape=None):
        if query_stream_shape is None:
            return tuple(content_stream_shape)
        return tuple(content_stream_shape), tuple(query_stream_shape)

    def get_config(self):
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


@fused
def drop_add_normalize(stream, change, gamma, beta, seed, *, dropout, epsilon):
    """The residual connection and layer normalization behind it."""
    if seed is not None:
        change = drop(change, seed, dropout)
    normalized = ops.layer_normalization(stream + change, gamma, beta, epsilon=epsilon)
    return ops.cast(normalized, stream.dtype)


def _rows_of(matrix, query_stream, target_positions, content_length):
    """`(batch, content_length, context_length)` -> `(batch, num_predictions, context_length)`."""
    if matrix is None or matrix.shape[1] == 1:
        return matrix
    num_predictions = query_stream.shape[1]
    if num_predictions is not None and matrix.shape[1] == num_predictions != content_length:
        return matrix
    batch_size, num_rows, context_length = ops.shape(matrix)
    first_rows = ops.expand_dims(ops.arange(batch_size, dtype="int32") * num_rows, -1)
    rows = ops.reshape(matrix, (batch_size * num_rows, context_length))
    return ops.take(rows, first_rows + ops.cast(target_positions, "int32"), axis=0)
