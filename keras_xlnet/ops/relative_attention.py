"""Relative attention.

The score of query row `i` for context row `j`, in the symbols of the papers:

    A[i, j] = (   q[i] · k[j]              (a) content-content
                + q[i] · r[i - j]          (b) content-position
                +   u  · k[j]              (c) global content bias
                +   v  · r[i - j]          (d) global position bias
                + (q[i] + b) · s[i, j]     (e) segment, XLNet only
              ) / sqrt(D)

    probabilities = softmax over j of A[i, j], where i may attend to j
    output[i]     = sum over j of probabilities[i, j] · value[j]

Here `q`, `k` and `r` are projections of the query, the context and the position encoding; `u` is
`content_bias`, `v` is `position_bias`, `b` is `segment_bias`; `s[i, j]` is one of two
`segment_embeddings`: same segment or different segment.

Terms (a) and (c) are one product, `(q + u) · k`, and (b) and (d) are one, `(q + v) · r`.

Axis letters: N heads, B batch, T query rows, S context rows (memory followed by content), D head
dimension, R rows of the position table, P directions (1, or 2 for bidirectional data). Heads come
first: the rows of a batch that share a position table are then one matrix.

Source: Dai et al. 2019 (Transformer-XL), section 3.3 and appendix B; Yang et al. 2019 (XLNet),
section 2.5 for the segment term.
"""

import math
from typing import Any

import keras
from keras import ops

from keras_xlnet.compat.fused import fused
from keras_xlnet.ops.random import hash_dropout
from keras_xlnet.types import Tensor


def relative_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    position_key: Tensor,
    content_bias: Tensor,
    position_bias: Tensor,
    segment_bias: Tensor | None = None,
    segment_embeddings: Tensor | None = None,
    segment_matrix: Tensor | None = None,
    attention_mask: Tensor | None = None,
    first_distance_row: Tensor | None = None,
    dropout: float = 0.0,
    seed: Tensor | None = None,
    return_attention_scores: bool = False,
) -> Any:
    """Computes relative attention of all heads.

    Args:
        query: `(N, B, T, D)`.
        key: `(N, B, S, D)`.
        value: `(N, B, S, D)`.
        position_key: `(N, P, R, D)`, see `position_scores`.
        content_bias: `(N, D)`.
        position_bias: `(N, D)`.
        segment_bias: `(N, D)`. Required with `segment_matrix`.
        segment_embeddings: `(2, N, D)`: same segment, different segment. Required with
            `segment_matrix`.
        segment_matrix: `(B, T, S)` bool, `True` for different segments; or `None`: no term (e).
        attention_mask: `(B or 1, T or 1, S)` bool, `True` = may attend; or `None`.
        first_distance_row: `(B, T)` int32, the row of `position_key` for the distance from each
            query row to context row 0. `None` if query rows are the content in its order.
        dropout: Float, dropout rate of the probabilities.
        seed: Seed of dropout, see `hash_dropout`. `None` for no dropout.
        return_attention_scores: Whether the probabilities before dropout are returned too.

    Returns:
        `(N, B, T, D)`, and with `return_attention_scores` the probabilities `(N, B, T, S)`.

    Example:

    >>> q, k, v = (np.random.normal(size=(2, 1, 4, 8)).astype("float32") for _ in range(3))
    >>> r = np.random.normal(size=(2, 1, 8, 8)).astype("float32")
    >>> u = np.zeros((2, 8), "float32")
    >>> keras_xlnet.ops.relative_multi_head_attention(q, k, v, r, u, u).shape
    TensorShape([2, 1, 4, 8])
    """
    if query.shape[2] == 0:
        # Without rows there is nothing to multiply.
        scores = ops.zeros((*ops.shape(query)[:3], ops.shape(key)[2]), dtype=query.dtype)
        return (ops.zeros_like(query), scores) if return_attention_scores else ops.zeros_like(query)

    # Scaling the query and the biases is scaling the score, with fewer numbers to multiply.
    scale = 1.0 / math.sqrt(query.shape[-1])
    dtype = query.dtype
    query = query * scale
    content_bias, position_bias, segment_bias = (
        None if bias is None else ops.expand_dims(ops.cast(bias, dtype), (1, 2)) * scale
        for bias in (content_bias, position_bias, segment_bias)
    )
    context_length = ops.shape(key)[2]

    # (b) + (d), by distance, then aligned with the context rows.
    scores_by_distance = position_scores(query + position_bias, position_key)
    if first_distance_row is None:
        scores = relative_shift(scores_by_distance, context_length)
    else:
        scores = gather_distances(scores_by_distance, first_distance_row, context_length)
    # (a) + (c).
    scores = content_scores(query + content_bias, key) + scores
    # (e). `attention_weights` adds it where the segments differ.
    scores_of_segments = None
    if segment_matrix is not None:
        scores_of_segments = segment_scores(
            query + segment_bias, ops.cast(segment_embeddings, dtype)
        )

    terms = (scores, scores_of_segments, segment_matrix, attention_mask)
    weights = attention_weights(*terms, seed, dropout=dropout, fuse=seed is not None)
    output = ops.matmul(weights, value)
    if not return_attention_scores:
        return output
    return output, attention_weights(*terms, None)


def relative_attention_terms(
    query: Tensor,
    key: Tensor,
    position_key: Tensor,
    content_bias: Tensor,
    position_bias: Tensor,
    segment_bias: Tensor | None = None,
    segment_embeddings: Tensor | None = None,
    segment_matrix: Tensor | None = None,
    first_distance_row: Tensor | None = None,
) -> dict[str, Tensor]:
    """Computes the terms (a) to (e) of the score one by one, to look at them.

    `relative_multi_head_attention` computes (a) + (c) and (b) + (d) in one product each, and of
    (e) only the difference between the segments.

    Args:
        query, key, position_key, content_bias, position_bias, segment_bias, segment_embeddings,
            segment_matrix, first_distance_row: As in `relative_multi_head_attention`.

    Returns:
        A dict of `(N, B, T, S)` float32: `content` (a), `position` (b), `content_bias` (c),
        `position_bias` (d) and, with `segment_matrix`, `segment` (e). Their sum is the score.

    Example:

    >>> q, k = (np.random.normal(size=(2, 1, 4, 8)).astype("float32") for _ in range(2))
    >>> r = np.random.normal(size=(2, 1, 8, 8)).astype("float32")
    >>> u = np.zeros((2, 8), "float32")
    >>> sorted(keras_xlnet.ops.relative_attention_terms(q, k, r, u, u))
    ['content', 'content_bias', 'position', 'position_bias']
    """
    scale, dtype, context_length = 1.0 / math.sqrt(query.shape[-1]), query.dtype, ops.shape(key)[2]

    def for_each_row(bias):
        bias = ops.expand_dims(ops.cast(bias, dtype), (1, 2))
        return ops.broadcast_to(bias, ops.shape(query))

    def by_position(rows):
        scores = position_scores(rows, position_key)
        if first_distance_row is None:
            return relative_shift(scores, context_length)
        return gather_distances(scores, first_distance_row, context_length)

    terms = {
        "content": content_scores(query, key),
        "position": by_position(query),
        "content_bias": content_scores(for_each_row(content_bias), key),
        "position_bias": by_position(for_each_row(position_bias)),
    }
    if segment_matrix is not None:
        rows = query + for_each_row(segment_bias)
        same, different = (
            ops.sum(rows * for_each_row(embedding), axis=-1, keepdims=True)
            # Required with `segment_matrix`.
            for embedding in (segment_embeddings[0], segment_embeddings[1])  # type: ignore[index]
        )
        terms["segment"] = ops.where(ops.expand_dims(segment_matrix, 0), different, same)
    return {name: ops.cast(term, "float32") * scale for name, term in terms.items()}


def content_scores(query: Tensor, key: Tensor) -> Tensor:
    """Computes terms (a) and (c).

    Args:
        query: `(N, B, T, D)`, `q + u`.
        key: `(N, B, S, D)`.

    Returns:
        `(N, B, T, S)`.
    """
    return ops.matmul(query, ops.swapaxes(key, -1, -2))


def position_scores(query: Tensor, position_key: Tensor) -> Tensor:
    """Computes terms (b) and (d) for every distance of the position table.

    Args:
        query: `(N, B, T, D)`, `q + v`.
        position_key: `(N, P, R, D)`, row `n` for the distance `S - n`. The whole batch shares it
            (P = 1), or each half of the batch has its own (P = 2).

    Returns:
        `(N, B, T, R)`.
    """
    num_heads, batch_size, query_length, head_dim = ops.shape(query)
    _, num_directions, num_positions, _ = ops.shape(position_key)
    # A batch of unknown size can turn out to be odd only when the graph runs. TensorFlow's error
    # then shows the name of this scope.
    with keras.name_scope("bidirectional_data_needs_an_even_batch_size"):
        rows = batch_size // num_directions * query_length
        # One matrix per head, not a product for each row of the batch.
        query = ops.reshape(query, (num_heads, num_directions, rows, head_dim))
    # TensorFlow 2.21: see docs/upstream.md, "`matmul` gives wrong products".
    scores = ops.matmul(query, ops.swapaxes(position_key, -1, -2))
    return ops.reshape(scores, (num_heads, batch_size, query_length, num_positions))


def relative_shift(scores: Tensor, context_length: int | Tensor) -> Tensor:
    """Aligns scores by distance with the context rows: the left shift of appendix B.

    Content row `i` is at the distance `S - T + i - j` from context row `j`. That is row
    `T - i + j` of the position table, which is entry `T + i * (R - 1) + j` of the flattened
    `(T, R)` matrix. So the shift is two reshapes and two slices.

    Args:
        scores: `(N, B, T, R)`.
        context_length: Int, S, at most R - 1.

    Returns:
        `(N, B, T, S)`.
    """
    num_heads, batch_size, query_length, num_positions = ops.shape(scores)
    columns = num_positions - 1
    # `ops.slice`, because the gradient of `x[:, :, a:]` is 10 times slower in TensorFlow; and
    # three axes, because TensorFlow slices matrices in one thread.
    x = ops.reshape(scores, (num_heads, batch_size, query_length * num_positions))
    x = ops.slice(x, (0, 0, query_length), (num_heads, batch_size, query_length * columns))
    x = ops.reshape(x, (num_heads, batch_size * query_length, columns))
    x = ops.slice(x, (0, 0, 0), (num_heads, batch_size * query_length, context_length))
    return ops.reshape(x, (num_heads, batch_size, query_length, context_length))


def gather_distances(
    scores: Tensor, first_distance_row: Tensor, context_length: int | Tensor
) -> Tensor:
    """Aligns scores by distance with the context rows, for query rows at any position.

    Args:
        scores: `(N, B, T, R)`.
        first_distance_row: `(B, T)` int32, the column of `scores` for context row 0.
        context_length: Int, S.

    Returns:
        `(N, B, T, S)`. Context rows whose distance is not in the table get an arbitrary score:
        mask them.
    """
    columns = ops.expand_dims(first_distance_row, -1) + ops.arange(context_length, dtype="int32")
    columns = ops.clip(columns, 0, ops.shape(scores)[-1] - 1)
    return ops.take_along_axis(scores, ops.expand_dims(columns, 0), axis=-1)


def segment_scores(query: Tensor, segment_embeddings: Tensor) -> Tensor:
    """Computes term (e) for a different segment, minus term (e) for the same segment.

    Softmax does not change when a constant is added to a row. So one number a query row, added
    where the segments differ, is enough.

    Args:
        query: `(N, B, T, D)`, `q + b`.
        segment_embeddings: `(2, N, D)`: same segment, different segment.

    Returns:
        `(N, B, T, 1)`.
    """
    num_heads, batch_size, query_length, head_dim = ops.shape(query)
    difference = segment_embeddings[1] - segment_embeddings[0]
    rows = ops.reshape(query, (num_heads, batch_size * query_length, head_dim))
    scores = ops.matmul(rows, ops.expand_dims(difference, -1))
    return ops.reshape(scores, (num_heads, batch_size, query_length, 1))


@fused
def attention_weights(
    scores: Tensor,
    segment_scores: Tensor | None,
    segment_matrix: Tensor | None,
    attention_mask: Tensor | None,
    seed: Tensor | None,
    *,
    dropout: float = 0.0,
) -> Tensor:
    """Computes attention probabilities from scores.

    Args:
        scores: `(N, B, T, S)`, terms (a) to (d).
        segment_scores: `(N, B, T, 1)`, added where `segment_matrix` is `True`; or `None`.
        segment_matrix: `(B, T, S)` bool, `True` for different segments; or `None`.
        attention_mask: `(B or 1, T or 1, S)` bool, `True` = may attend; or `None`.
        seed: Seed of dropout, or `None` for no dropout.
        dropout: Float, dropout rate of the probabilities.
        fuse: Whether TensorFlow compiles the function, see `keras_xlnet.compat.fused`.

    Returns:
        `(N, B, T, S)` in the dtype of `scores`.
    """
    dtype = scores.dtype
    if segment_matrix is not None:
        scores += ops.cast(ops.expand_dims(segment_matrix, 0), dtype) * segment_scores
    probabilities = masked_softmax(scores, attention_mask)
    if seed is not None:
        probabilities = hash_dropout(probabilities, dropout, seed)
    return ops.cast(probabilities, dtype)


def masked_softmax(scores: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Computes attention probabilities in float32.

    A query row that may attend to nothing attends to every context row equally, as in the
    original implementation.

    Args:
        scores: `(N, B, T, S)`.
        attention_mask: `(B or 1, T or 1, S)` bool, `True` = may attend; or `None`.

    Returns:
        `(N, B, T, S)` float32.
    """
    scores = ops.cast(scores, "float32")
    if attention_mask is not None:
        mask = ops.cast(ops.expand_dims(attention_mask, 0), "bool")
        # -1e30 absorbs any score. Added, not selected with `where`: TensorFlow then computes the
        # second term once for all layers.
        scores += ops.where(mask, 0.0, -1e30)
    return ops.softmax(scores, axis=-1)
