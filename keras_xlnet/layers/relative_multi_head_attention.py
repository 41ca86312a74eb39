import functools
import math

import keras
from keras import ops

from keras_xlnet.layers.arguments import check_positive_int, check_rate
from keras_xlnet.layers.attention_in_blocks import relative_attention_in_blocks
from keras_xlnet.layers.attention_in_chunks import relative_attention_in_chunks
from keras_xlnet.layers.hash_dropout import HashDropout
from keras_xlnet.layers.head_projection import HeadProjection
from keras_xlnet.layers.initialization import (
    clone_initializer,
    get_kernel_initializer,
)
from keras_xlnet.layers.quantization import RestoresQuantization
from keras_xlnet.layers.relative_attention import relative_attention

# (batch, rows, heads, head_dim) -> (heads, batch, rows, head_dim), and back.
_HEADS_FIRST = (2, 0, 1, 3)
_HEADS_BACK = (1, 2, 0, 3)
# Smaller blocks skip more of the table of positions, larger ones make larger products.
_BLOCK_SIZE = 128


@keras.saving.register_keras_serializable(package="keras_xlnet")
class RelativeMultiHeadAttention(RestoresQuantization, keras.layers.Layer):
    """Multi-head attention that knows how far apart two tokens are, not where they stand.

    The score of a query row and a context row is the sum of a content, a position and a segment
    term, scaled by `1 / sqrt(head_dim)`. There is no residual connection and no normalization
    here: `TwoStreamBlock` adds them.

    Args:
        num_heads: Int, number of attention heads.
        head_dim: Int, size of each head; `num_heads * head_dim` need not be the width of `query`.
        dropout: Float, dropout rate of the attention probabilities.
        kernel_initializer: Initializer of all weights. `None` for normal(0, 0.02).
        seed: Optional int that fixes the dropout masks.
        attention_chunk_size: Int: at most so many query rows are computed at a time, and with
            `training=True` again in the backward pass, so that memory grows with the length and
            not with its square. Same numbers, other dropout masks. `None` for all rows at once.

    Call arguments:
        query: Tensor `(batch, query_length, hidden_dim)`: the content in its order, or with
            `target_positions` one row a prediction.
        context: Tensor `(batch, context_length, hidden_dim)`: memory followed by content.
        position_encoding: Tensor `(directions, num_positions, hidden_dim)` as
            `RelativePositionEncoding` makes it. Projected once for the whole batch.
        segment_matrix: Optional bool tensor `(batch, query_length, context_length)`, `True` where
            query and context row are in DIFFERENT segments. The segment weights exist only if the
            first call has it.
        attention_mask: Optional bool tensor `(batch or 1, query_length or 1, context_length)`,
            `True` = may attend. A row that may see nothing attends to all keys alike.
        target_positions: Optional int tensor `(batch, query_length)`, the position in the content
            (0 is the first content token) that each query row predicts. Only these rows are
            computed.
        attention_biases: Optional tensor `(3, num_heads, head_dim)` from an `AttentionBiases`
            layer that several attention layers share. Without it the layer has its own.
        content_length: Number of content rows at the end of `context`. Needed with
            `target_positions` only, and only if `position_encoding` is of type `"uni"`: the table
            of type `"bi"` tells it.
        return_attention_scores: If `True`, the attention probabilities are returned too, and
            computed for all rows at once.
        training: Whether dropout is applied.

    Returns:
        Tensor `(batch, query_length, hidden_dim)`, and with `return_attention_scores` the
        probabilities `(batch, num_heads, query_length, context_length)` before dropout.

    Raises:
        ValueError: If an argument has not the shape given above.

    Example:

    >>> content = np.random.normal(size=(2, 6, 16)).astype("float32")
    >>> memory = np.random.normal(size=(2, 3, 16)).astype("float32")
    >>> positions = keras_xlnet.layers.RelativePositionEncoding(hidden_dim=16)(content, memory)
    >>> attention = keras_xlnet.layers.RelativeMultiHeadAttention(num_heads=4, head_dim=4)
    >>> attention(content, np.concatenate([memory, content], axis=1), positions).shape
    TensorShape([2, 6, 16])

    Source: Dai et al. 2019 (Transformer-XL), section 3.3; Yang et al. 2019 (XLNet), sections
    2.3-2.5 and appendix A.2.
    """

    def __init__(
        self,
        num_heads,
        head_dim,
        dropout=0.0,
        kernel_initializer=None,
        seed=None,
        attention_chunk_size=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = check_positive_int("num_heads", num_heads)
        self.head_dim = check_positive_int("head_dim", head_dim)
        self.dropout = check_rate("dropout", dropout)
        if attention_chunk_size is not None:
            check_positive_int("attention_chunk_size", attention_chunk_size)
        self.attention_chunk_size = attention_chunk_size
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)
        self.seed = seed
        self.query_dense, self.key_dense, self.value_dense, self.position_dense = (
            self._head_projection(name) for name in ("query", "key", "value", "position")
        )
        self.dropout_layer = HashDropout(
            dropout, seed=seed, dtype=self.dtype_policy, name="dropout"
        )

    def _head_projection(self, name):
        return HeadProjection(
            num_contracted=1,
            output_sizes=(self.num_heads, self.head_dim),
            kernel_initializer=clone_initializer(self.kernel_initializer),
            dtype=self.dtype_policy,
            name=name,
        )

    def build(
        self,
        query_shape,
        context_shape,
        position_encoding_shape,
        segment_matrix_shape=None,
        attention_biases_shape=None,
    ):
        self.query_dense.build(query_shape)
        self.key_dense.build(context_shape)
        self.value_dense.build(context_shape)
        self.position_dense.build(position_encoding_shape)
        self.output_dense = HeadProjection(
            num_contracted=2,
            output_sizes=query_shape[-1:],
            kernel_initializer=clone_initializer(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="output",
        )
        self.output_dense.build((*query_shape[:2], self.num_heads, self.head_dim))
        has_segments = segment_matrix_shape is not None
        if attention_biases_shape is None:
            self.content_bias = self._add_head_weight("content_bias")
            self.position_bias = self._add_head_weight("position_bias")
            self.segment_bias = self._add_head_weight("segment_bias") if has_segments else None
        self.segment_embeddings = (
            self._add_head_weight("segment_embeddings", 2) if has_segments else None
        )
        self.restore_quantization()

    def _add_head_weight(self, name, *leading):
        return self.add_weight(
            shape=(*leading, self.num_heads, self.head_dim),
            initializer=clone_initializer(self.kernel_initializer),
            name=name,
        )

    def call(
        self,
        query,
        context,
        position_encoding,
        segment_matrix=None,
        attention_mask=None,
        target_positions=None,
        attention_biases=None,
        content_length=None,
        return_attention_scores=False,
        training=None,
    ):
        return self.attend(
            query,
            *self.project_context(context, position_encoding),
            segment_matrix=segment_matrix,
            attention_mask=attention_mask,
            target_positions=target_positions,
            attention_biases=attention_biases,
            content_length=content_length,
            return_attention_scores=return_attention_scores,
            training=training,
        )

    def project_context(self, context, position_encoding):
        """What all queries of a layer share, so that two streams pay for it once.

        Returns:
            Keys and values `(num_heads, batch, context_length, head_dim)`, and position keys
            `(num_heads, directions, num_positions, head_dim)`.
        """
        return tuple(
            ops.transpose(dense(x), _HEADS_FIRST)
            for dense, x in (
                (self.key_dense, context),
                (self.value_dense, context),
                (self.position_dense, position_encoding),
            )
        )

    def attend(
        self,
        query,
        key,
        value,
        position_key,
        segment_matrix=None,
        attention_mask=None,
        target_positions=None,
        attention_biases=None,
        content_length=None,
        return_attention_scores=False,
        training=None,
    ):
        """Attention of `query` to what `project_context` returned; arguments as in the call.

        Returns:
            As the call.
        """
        scale = 1.0 / math.sqrt(self.head_dim)
        tensors = [
            ops.transpose(self.query_dense(query), _HEADS_FIRST) * scale,
            key,
            value,
            position_key,
            *self._biases(attention_biases, scale, segment_matrix is not None),
        ]
        rows = {
            "segment_matrix": segment_matrix,
            "attention_mask": attention_mask,
            "first_position": self._first_positions(
                target_positions, position_key, ops.shape(key)[2], content_length
            ),
        }
        if not return_attention_scores and self._needs_chunks(query):
            drops = bool(training) and self.dropout > 0
            mixed = relative_attention_in_chunks(
                self.attention_chunk_size,
                *tensors,
                **rows,
                dropout=self.dropout,
                draw_seeds=self._draw_seeds if drops else None,
                recompute=bool(training),
            )
        elif not return_attention_scores and self._pays_blocks(query, target_positions):
            del rows["first_position"]
            mixed = relative_attention_in_blocks(
                _BLOCK_SIZE,
                *tensors,
                **rows,
                next_seed=functools.partial(self.dropout_layer.next_seed, training),
                dropout=self.dropout,
            )
        else:
            mixed = relative_attention(
                *tensors,
                **rows,
                seed=self.dropout_layer.next_seed(training),
                dropout=self.dropout,
                return_attention_scores=return_attention_scores,
            )
        if return_attention_scores:
            mixed, probabilities = mixed
        output = self.output_dense(ops.transpose(mixed, _HEADS_BACK))
        if return_attention_scores:
            return output, ops.swapaxes(probabilities, 0, 1)
        return output

    def _needs_chunks(self, query):
        length = query.shape[1]
        chunk_size = self.attention_chunk_size
        return chunk_size is not None and (length is None or length > chunk_size)

    def _pays_blocks(self, query, target_positions):
        length = query.shape[1]
        return target_positions is None and length is not None and length > 2 * _BLOCK_SIZE

    def _draw_seeds(self, number):
        """`(number, 2)`, a state of the seed generator for each chunk."""
        generator = self.dropout_layer.seed_generator
        seeds = keras.random.randint((number, 2), 0, 2**31 - 1, dtype="int32", seed=generator)
        return ops.cast(seeds, generator.state.dtype)

    def _biases(self, attention_biases, scale, has_segments):
        """What `relative_attention` takes after the position keys."""
        if has_segments and self.segment_embeddings is None:
            raise ValueError(
                "`segment_matrix` was given, but the layer was built without one and has no "
                "segment weights. Pass `segment_matrix` in the first call."
            )
        if attention_biases is None:
            biases = [self.content_bias, self.position_bias, self.segment_bias]
        else:
            biases = [attention_biases[i] for i in range(3)]
        # Cast, as a gradient may be computed where Keras does not do it by itself.
        tensors = [
            ops.expand_dims(ops.cast(bias, self.compute_dtype), (1, 2)) * scale
            for bias in biases[: 3 if has_segments else 2]
        ]
        if has_segments:
            tensors.append(ops.cast(self.segment_embeddings, self.compute_dtype))
        return tensors

    def _first_positions(self, target_positions, position_key, context_length, content_length):
        if target_positions is None:
            return None
        if content_length is None:
            content_length = ops.shape(position_key)[2] - context_length
        return content_length - ops.cast(target_positions, "int32")

    def compute_output_shape(
        self,
        query_shape,
        context_shape,
        position_encoding_shape,
        return_attention_scores=False,
    ):
        if return_attention_scores:
            scores = (query_shape[0], self.num_heads, query_shape[1], context_shape[1])
            return tuple(query_shape), scores
        return tuple(query_shape)

    def compute_output_spec(
        self, query, context, position_encoding, return_attention_scores=False, **kwargs
    ):
        shapes = self.compute_output_shape(
            query.shape, context.shape, position_encoding.shape, return_attention_scores
        )
        if return_attention_scores:
            return tuple(keras.KerasTensor(s, dtype=self.compute_dtype) for s in shapes)
        return keras.KerasTensor(shapes, dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "dropout": self.dropout,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
            "attention_chunk_size": self.attention_chunk_size,
        }
