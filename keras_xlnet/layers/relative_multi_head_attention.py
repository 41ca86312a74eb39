import functools
from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_positive_int, check_rate, check_shape, check_sizes
from keras_xlnet.compat.sublayers import RestoresSublayers
from keras_xlnet.layers.attention_masks import without_padding
from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.layers.hash_dropout import HashDropout
from keras_xlnet.layers.head_projection import HeadProjection
from keras_xlnet.layers.initializers import clone_initializer, get_kernel_initializer
from keras_xlnet.layers.relative_position_encoding import check_width, default_positions
from keras_xlnet.ops.long_attention import (
    scanned_relative_attention,
    unrolled_relative_attention,
)
from keras_xlnet.ops.relative_attention import (
    relative_attention_terms,
    relative_multi_head_attention,
)
from keras_xlnet.registration import register
from keras_xlnet.types import Initializer, Shape, Tensor

# (batch, rows, heads, head_dim) -> (heads, batch, rows, head_dim), and back.
_HEADS_FIRST = (2, 0, 1, 3)
_HEADS_BACK = (1, 2, 0, 3)
# Query rows of an unrolled block. Smaller blocks skip more of the position table, larger ones
# make larger products.
_BLOCK_SIZE = 128


@register
class RelativeMultiHeadAttention(RestoresSublayers, ConfiguredLayer):
    """Multi-head attention with relative positions.

    The score of a query row for a context row depends on the content of both, on the distance
    between them, and on whether they are in the same segment: `keras_xlnet.ops.relative_attention`
    has the formula. `AddAndNorm` has the residual connection and the normalization.

    Args:
        num_heads: Int, number of attention heads.
        head_dim: Int, size of each head. `num_heads * head_dim` can be any width.
        dropout: Float, dropout rate of the attention probabilities.
        kernel_initializer: Initializer of all weights. `None` for normal(0, 0.02).
        seed: Optional int that fixes the dropout masks.
        attention_chunk_size: Int, the largest number of query rows that are computed at a time.
            With `training=True` the backward pass computes them again. Memory then grows
            linearly with the length, not quadratically. The numbers are the same, but the dropout
            masks differ. `None` for all rows at once.

    Call arguments:
        query: Tensor `(batch, query_length, hidden_dim)`: the content in its order, or with
            `target_positions` one row per prediction.
        context: Tensor `(batch, context_length, hidden_dim)`: memory followed by content. `None`
            for `query`, which then attends to itself.
        position_encoding: Tensor `(directions, num_positions, hidden_dim)` of
            `RelativePositionEncoding`. It is projected once for the whole batch. `None` for the
            distances of `context` to the content, of both signs. Several layers can share one.
        segment_matrix: Optional bool tensor `(batch, query_length, context_length)`, `True` where
            query and context row are in DIFFERENT segments. The segment weights exist only if the
            first call has it.
        attention_mask: Optional bool tensor `(batch or 1, query_length or 1, context_length)`,
            `True` = may attend. A row that may attend to nothing attends to all context rows
            equally.
        target_positions: Optional int tensor `(batch, query_length)`, the position in the content
            (0 is the first content token) that each query row predicts. Only these rows are
            computed. Rows outside of the content, such as -1 for padding, get arbitrary outputs.
        attention_biases: Optional tensor `(3, num_heads, head_dim)` from an `AttentionBiases`
            layer that several attention layers share. By default the layer has its own.
        content_length: Number of content rows at the end of `context`. Required only with
            `target_positions`, if `position_encoding` is of type `"uni"`, or is not given and there
            is memory.
        return_attention_scores: If `True`, the attention probabilities are returned too, and are
            computed for all rows at once.
        training: Whether dropout is applied.
        context_mask: Optional bool tensor `(batch, context_length)`, `True` for real rows. Nothing
            attends to other rows. By default the mask that Keras attached to `context`.
        query_mask: The same for `query`, if it is the context.

    Returns:
        Tensor `(batch, query_length, hidden_dim)`, and with `return_attention_scores` the
        probabilities `(batch, num_heads, query_length, context_length)` before dropout.

    Raises:
        ValueError: If an argument has another shape than above.

    Example:

    >>> content = np.random.normal(size=(2, 6, 16)).astype("float32")
    >>> memory = np.random.normal(size=(2, 3, 16)).astype("float32")
    >>> positions = keras_xlnet.layers.RelativePositionEncoding(hidden_dim=16)(content, memory)
    >>> attention = keras_xlnet.layers.RelativeMultiHeadAttention(num_heads=4, head_dim=4)
    >>> attention(content, np.concatenate([memory, content], axis=1), positions).shape
    TensorShape([2, 6, 16])
    >>> attention(content).shape  # To itself.
    TensorShape([2, 6, 16])

    Source: Dai et al. 2019 (Transformer-XL), section 3.3; Yang et al. 2019 (XLNet), sections
    2.3-2.5 and appendix A.2.
    """

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        dropout: float = 0.0,
        kernel_initializer: Initializer | None = None,
        seed: int | None = None,
        attention_chunk_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.num_heads = check_positive_int("num_heads", num_heads)
        self.head_dim = check_positive_int("head_dim", head_dim)
        self.dropout = check_rate("dropout", dropout)
        if attention_chunk_size is not None:
            check_positive_int("attention_chunk_size", attention_chunk_size)
        self.attention_chunk_size = attention_chunk_size
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)
        self.seed = seed
        self.query_dense, self.key_dense, self.value_dense, self.position_dense = (
            self._head_projection(name, 1, (num_heads, head_dim))
            for name in ("query", "key", "value", "position")
        )
        self.dropout_layer = HashDropout(
            dropout, seed=seed, dtype=self.dtype_policy, name="dropout"
        )

    def _head_projection(self, name, num_contracted, output_sizes):
        return HeadProjection(
            num_contracted,
            output_sizes,
            kernel_initializer=clone_initializer(self.kernel_initializer),
            dtype=self.dtype_policy,
            name=name,
        )

    def build(
        self,
        query_shape: Shape,
        context_shape: Shape | None = None,
        position_encoding_shape: Shape | None = None,
        segment_matrix_shape: Shape | None = None,
        attention_biases_shape: Shape | None = None,
    ) -> None:
        context_shape = context_shape or query_shape
        if position_encoding_shape is None:
            position_encoding_shape = (1, None, check_width(context_shape[-1]))
        self.query_dense.build(query_shape)
        self.key_dense.build(context_shape)
        self.value_dense.build(context_shape)
        self.position_dense.build(position_encoding_shape)
        self.output_dense = self._head_projection("output", 2, query_shape[-1:])
        self.output_dense.build((*query_shape[:2], self.num_heads, self.head_dim))
        has_segments = segment_matrix_shape is not None
        heads = self.num_heads, self.head_dim
        if attention_biases_shape is None:
            self.content_bias = self.add_kernel("content_bias", heads)
            self.position_bias = self.add_kernel("position_bias", heads)
            self.segment_bias = self.add_kernel("segment_bias", heads) if has_segments else None
        self.segment_embeddings = (
            self.add_kernel("segment_embeddings", (2, *heads)) if has_segments else None
        )
        self.restore_sublayers()

    def call(
        self,
        query: Tensor,
        context: Tensor | None = None,
        position_encoding: Tensor | None = None,
        segment_matrix: Tensor | None = None,
        attention_mask: Tensor | None = None,
        target_positions: Tensor | None = None,
        attention_biases: Tensor | None = None,
        content_length: int | Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        context_mask: Tensor | None = None,
        query_mask: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        if context is None:
            context, context_mask = query, query_mask
        if position_encoding is None and content_length is None:
            # Predictions are rows of the content, and without memory that is the context.
            content_length = ops.shape(query if target_positions is None else context)[1]
        return self.attend(
            query,
            *self.project_context(context, position_encoding, content_length),
            segment_matrix=segment_matrix,
            attention_mask=without_padding(attention_mask, context_mask),
            target_positions=target_positions,
            attention_biases=attention_biases,
            content_length=content_length,
            return_attention_scores=return_attention_scores,
            training=training,
        )

    def project_context(
        self,
        context: Tensor,
        position_encoding: Tensor | None = None,
        content_length: int | Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Projects what all queries share: keys, values and position keys.

        Args:
            context, position_encoding: As in the call.
            content_length: As in the call. `None` for all of `context`.

        Returns:
            What `project_content` and `project_positions` return.
        """
        if position_encoding is None:
            length = ops.shape(context)[1] if content_length is None else content_length
            position_encoding = default_positions(context, length)
        return *self.project_content(context), self.project_positions(position_encoding)

    def project_content(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Projects context rows.

        Args:
            context: As in the call.

        Returns:
            Keys and values `(num_heads, batch, context_length, head_dim)`.
        """
        return tuple(
            ops.transpose(dense(context), _HEADS_FIRST)
            for dense in (self.key_dense, self.value_dense)
        )

    def project_positions(self, position_encoding: Tensor) -> Tensor:
        """Projects relative positions.

        Args:
            position_encoding: As in the call.

        Returns:
            Position keys `(num_heads, directions, num_positions, head_dim)`.
        """
        return ops.transpose(self.position_dense(position_encoding), _HEADS_FIRST)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        position_key: Tensor,
        segment_matrix: Tensor | None = None,
        attention_mask: Tensor | None = None,
        target_positions: Tensor | None = None,
        attention_biases: Tensor | None = None,
        content_length: int | Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
    ) -> Any:
        """Computes the attention of `query` to what `project_context` returned.

        Args:
            query: As in the call.
            key, value, position_key: As `project_context` returned them.
            segment_matrix, attention_mask, target_positions, attention_biases, content_length,
                return_attention_scores, training: As in the call.

        Returns:
            As the call.
        """
        self._check_shapes(
            query, key, position_key, segment_matrix, attention_mask, target_positions
        )
        compute = self._choose_computation(
            query, target_positions, return_attention_scores, training
        )
        attended = compute(
            ops.transpose(self.query_dense(query), _HEADS_FIRST),
            key,
            value,
            position_key,
            segment_matrix=segment_matrix,
            attention_mask=attention_mask,
            dropout=self.dropout,
            **self._first_distance_rows(target_positions, position_key, key, content_length),
            **self._biases(attention_biases, segment_matrix is not None),
        )
        if return_attention_scores:
            attended, probabilities = attended
        output = self.output_dense(ops.transpose(attended, _HEADS_BACK))
        if return_attention_scores:
            return output, ops.swapaxes(probabilities, 0, 1)
        return output

    def _check_shapes(self, query, key, position_key, segment_matrix, attention_mask, targets):
        batch_size, length = query.shape[:2]
        context_length = key.shape[2]
        pairs = (batch_size, 1), (length, 1), context_length
        check_shape("segment_matrix", segment_matrix, *pairs)
        check_shape("attention_mask", attention_mask, *pairs)
        check_shape("target_positions", targets, (batch_size, 1), length)
        if targets is None and None not in (length, context_length):
            # "bi" has the distances to later rows too, "uni" only those to earlier rows.
            positions = context_length + length, context_length + 1
            check_sizes("position_encoding", position_key.shape[1:], (1, 2), positions, None)

    def score_terms(
        self,
        query: Tensor,
        key: Tensor,
        position_key: Tensor,
        segment_matrix: Tensor | None = None,
        target_positions: Tensor | None = None,
        attention_biases: Tensor | None = None,
        content_length: int | Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Computes the terms of the attention scores one by one, for inspection.

        Args:
            query: As in the call.
            key, position_key: As `project_context` returned them.
            segment_matrix, target_positions, attention_biases, content_length: As in the call.

        Returns:
            A dict of tensors `(batch, num_heads, query_length, context_length)`, as
            `keras_xlnet.ops.relative_attention_terms` names them. Their sum is the score.
        """
        terms = relative_attention_terms(
            ops.transpose(self.query_dense(query), _HEADS_FIRST),
            key,
            position_key,
            segment_matrix=segment_matrix,
            **self._first_distance_rows(target_positions, position_key, key, content_length),
            **self._biases(attention_biases, segment_matrix is not None),
        )
        return {name: ops.swapaxes(term, 0, 1) for name, term in terms.items()}

    def _choose_computation(self, query, target_positions, return_attention_scores, training):
        """Returns the formula for all rows at once, in unrolled blocks or scanned."""
        length, chunk_size = query.shape[1], self.attention_chunk_size
        if return_attention_scores:
            chunk_size = None
        if chunk_size is not None and (length is None or length > chunk_size):
            draws = bool(training) and self.dropout > 0
            return functools.partial(
                scanned_relative_attention,
                chunk_size=chunk_size,
                draw_seeds=self._draw_seeds if draws else None,
                recompute=bool(training),
            )
        next_seed = functools.partial(self.dropout_layer.next_seed, training)
        is_long = length is not None and length > 2 * _BLOCK_SIZE
        if is_long and target_positions is None and not return_attention_scores:
            return functools.partial(
                unrolled_relative_attention, block_size=_BLOCK_SIZE, next_seed=next_seed
            )
        return functools.partial(
            relative_multi_head_attention,
            seed=next_seed(),
            return_attention_scores=return_attention_scores,
        )

    def _draw_seeds(self, number):
        """`(number, 2)`, a state of the seed generator for each chunk."""
        generator = self.dropout_layer.seed_generator
        seeds = keras.random.randint((number, 2), 0, 2**31 - 1, dtype="int32", seed=generator)
        return ops.cast(seeds, generator.state.dtype)

    def _biases(self, attention_biases, has_segments):
        """The biases and segment embeddings of the formula, by the names of its arguments."""
        if attention_biases is None:
            biases = {"content_bias": self.content_bias, "position_bias": self.position_bias}
        else:
            biases = {"content_bias": attention_biases[0], "position_bias": attention_biases[1]}
        if has_segments:
            if self.segment_embeddings is None:
                raise ValueError(
                    "`segment_matrix` was given, but the layer was built without one and has no "
                    "segment weights. Pass `segment_matrix` in the first call."
                )
            is_tied = attention_biases is not None
            biases["segment_bias"] = attention_biases[2] if is_tied else self.segment_bias
            biases["segment_embeddings"] = self.segment_embeddings
        # Cast here: gradient checkpointing computes where Keras does not cast weights itself.
        return {name: ops.cast(bias, self.compute_dtype) for name, bias in biases.items()}

    def _first_distance_rows(self, target_positions, position_key, key, content_length):
        """The argument `first_distance_row` of the formula, if it has to be given."""
        if target_positions is None:
            return {}
        if content_length is None:
            content_length = ops.shape(position_key)[2] - ops.shape(key)[2]
        return {"first_distance_row": content_length - ops.cast(target_positions, "int32")}

    def compute_output_shape(
        self,
        query_shape: Shape,
        context_shape: Shape | None = None,
        position_encoding_shape: Shape | None = None,
        return_attention_scores: bool = False,
    ) -> Shape | tuple[Shape, Shape]:
        if return_attention_scores:
            length = (context_shape or query_shape)[1]
            scores = (query_shape[0], self.num_heads, query_shape[1], length)
            return tuple(query_shape), scores
        return tuple(query_shape)

    def compute_output_spec(
        self,
        query: Tensor,
        context: Tensor | None = None,
        position_encoding: Tensor | None = None,
        return_attention_scores: bool = False,
        **kwargs: Any,
    ) -> Any:
        shapes = self.compute_output_shape(
            query.shape,
            None if context is None else context.shape,
            return_attention_scores=return_attention_scores,
        )
        if return_attention_scores:
            return tuple(keras.KerasTensor(s, dtype=self.compute_dtype) for s in shapes)
        return keras.KerasTensor(shapes, dtype=self.compute_dtype)
