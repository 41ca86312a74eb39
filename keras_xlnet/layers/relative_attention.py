"""The maths of relative attention, as functions of tensors.

Axis letters: N heads, B batch, T query rows, S context rows (memory then content), D head
dimension, R positions of the table, P directions (1, or 2 with bidirectional data).

Heads come first: then all rows of a batch that share a position key are one matrix, and no product
has to repeat a factor over the batch. (TensorFlow 2.21 on oneDNN writes beyond its buffer in
`matmul` of `(B, 1, T, D)` and `(1, 1, D, R)`.)
Source: Dai et al. 2019 (Transformer-XL), section 3.3 and appendix B; Yang et al. 2019 (XLNet),
section 2.5 for the segment term.
"""

import keras
from keras import ops

from keras_xlnet.layers.fused import fused
from keras_xlnet.layers.hash_dropout import drop


def relative_attention(
    query,
    key,
    value,
    position_key,
    content_bias,
    position_bias,
    segment_bias=None,
    segment_embeddings=None,
    segment_matrix=None,
    attention_mask=None,
    first_position=None,
    seed=None,
    dropout=0.0,
    return_attention_scores=False,
):
    """Attention of all heads: values, mixed by how much each query row likes each context row.

    Args:
        query: `(N, B, T, D)`, scaled.
        key: `(N, B, S, D)`.
        value: `(N, B, S, D)`.
        position_key: `(N, P, R, D)`, see `scores_of_positions`.
        content_bias: `(N, 1, 1, D)`, scaled, as the next two.
        position_bias: `(N, 1, 1, D)`.
        segment_bias: `(N, 1, 1, D)`, needed with `segment_matrix`, as the next.
        segment_embeddings: `(2, N, D)`.
        segment_matrix: `(B, T, S)` bool, `True` for different segments; or `None`.
        attention_mask: `(B or 1, T or 1, S)` bool, `True` = may attend; or `None`.
        first_position: `(B, T)` int32, the row of `position_key` for the distance from each query
            row to context row 0. `None` where query rows are the content in its order.
        seed: Seed of dropout, or `None` for none, as when the model is not trained.
        dropout: Float, rate at which probabilities are dropped.
        return_attention_scores: If `True`, the probabilities before dropout are returned too.

    Returns:
        `(N, B, T, D)`, and with `return_attention_scores` the probabilities `(N, B, T, S)`.
    """
    position_scores = scores_of_positions(query + position_bias, position_key)
    context_length = ops.shape(key)[2]
    if first_position is None:
        position_scores = relative_shift(position_scores, context_length)
    else:
        position_scores = pick_positions(position_scores, first_position, context_length)
    scores = scores_of_content(query + content_bias, key) + position_scores
    segment_scores = None
    if segment_matrix is not None:
        segment_scores = scores_of_segments(query + segment_bias, segment_embeddings)
    parts = (scores, segment_scores, segment_matrix, attention_mask)
    weights = attention_weights(*parts, seed, dropout=dropout, fuse=seed is not None)
    mixed = ops.matmul(weights, value)
    if not return_attention_scores:
        return mixed
    return mixed, attention_weights(*parts, None)


@fused
def attention_weights(
    scores,
    segment_scores,
    segment_matrix,
    attention_mask,
    seed,
    *,
    dropout=0.0,
):
    """Attention probabilities from scores.

    A query row that may see nothing attends to every key alike, as in the original.

    Args:
        scores: `(N, B, T, S)`, of content and position.
        segment_scores: `(N, B, T, 1)`, what is added for keys of another segment; or `None`.
        segment_matrix: `(B, T, S)` bool, `True` for different segments; or `None`.
        attention_mask: `(B or 1, T or 1, S)` bool, `True` = may attend; or `None`.
        seed: Seed of dropout, or `None` for none.
        dropout: Float, rate at which probabilities are dropped.

    Returns:
        `(N, B, T, S)`.
    """
    dtype = scores.dtype
    if segment_matrix is not None:
        scores += ops.cast(ops.expand_dims(segment_matrix, 0), dtype) * segment_scores
    probabilities = masked_softmax(scores, attention_mask)
    if seed is not None:
        probabilities = drop(probabilities, seed, dropout)
    return ops.cast(probabilities, dtype)


def scores_of_content(query, key):
    """`(N, B, T, D)` x `(N, B, S, D)` -> `(N, B, T, S)`."""
    return ops.matmul(query, ops.swapaxes(key, -1, -2))


def scores_of_positions(query, position_key):
    """How much each query row likes each row of the table of positions.

    Args:
        query: `(N, B, T, D)`.
        position_key: `(N, P, R, D)`, row `r` for the distance `S - r`. Shared by the batch, or by
            each of its two halves.

    Returns:
        `(N, B, T, R)`.
    """
    num_heads, batch_size, query_length, head_dim = ops.shape(query)
    _, num_directions, num_positions, _ = ops.shape(position_key)
    # An odd batch of unknown size can only fail when it runs: the scope's name tells why.
    with keras.name_scope("bidirectional_data_needs_an_even_batch_size"):
        rows = batch_size // num_directions * query_length
        query = ops.reshape(query, (num_heads, num_directions, rows, head_dim))
    scores = ops.matmul(query, ops.swapaxes(position_key, -1, -2))
    return ops.reshape(scores, (num_heads, batch_size, query_length, num_positions))


def pick_positions(scores, first_position, context_length):
    """Turns scores by table row into scores by context row, for query rows that stand anywhere.

    Args:
        scores: `(N, B, T, R)`.
        first_position: `(B, T)` int32, the row of the table for context row 0.
        context_length: S.

    Returns:
        `(N, B, T, S)`. Keys whose distance is not in the table get an arbitrary score: mask them.
    """
    rows = ops.expand_dims(first_position, -1) + ops.arange(context_length, dtype="int32")
    rows = ops.minimum(rows, ops.shape(scores)[-1] - 1)
    return ops.take_along_axis(scores, ops.expand_dims(rows, 0), axis=-1)


def relative_shift(scores, context_length):
    """Turns scores by table row into scores by context row, with one reshape.

    Content row `i` meets context row `j` at the distance `S - T + i - j`, which is row
    `T - i + j` of the table. In the flattened `(T, R)` matrix that is entry `T + i * (R - 1) + j`.

    Args:
        scores: `(N, B, T, R)`.
        context_length: S, at most R - 1.

    Returns:
        `(N, B, T, S)`.
    """
    num_heads, batch_size, query_length, num_positions = ops.shape(scores)
    columns = num_positions - 1
    # `ops.slice`: in TensorFlow the gradient of `x[:, :, a:]` is 10 times slower. And with heads
    # apart: TensorFlow cuts matrices in one thread.
    x = ops.reshape(scores, (num_heads, batch_size, query_length * num_positions))
    x = ops.slice(x, (0, 0, query_length), (num_heads, batch_size, query_length * columns))
    x = ops.reshape(x, (num_heads, batch_size * query_length, columns))
    x = ops.slice(x, (0, 0, 0), (num_heads, batch_size * query_length, context_length))
    return ops.reshape(x, (num_heads, batch_size, query_length, context_length))


def scores_of_segments(query, segment_embeddings):
    """How much more each query row likes keys of another segment than those of its own.

    Softmax does not see what a whole row has in common, so this one number a row is enough.

    Args:
        query: `(N, B, T, D)`.
        segment_embeddings: `(2, N, D)`: same segment, different segment.

    Returns:
        `(N, B, T, 1)`.
    """
    num_heads, batch_size, query_length, head_dim = ops.shape(query)
    difference = segment_embeddings[1] - segment_embeddings[0]
    rows = ops.reshape(query, (num_heads, batch_size * query_length, head_dim))
    scores = ops.matmul(rows, ops.expand_dims(difference, -1))
    return ops.reshape(scores, (num_heads, batch_size, query_length, 1))


def masked_softmax(scores, attention_mask):
    """Attention probabilities in float32.

    Args:
        scores: `(N, B, T, S)`.
        attention_mask: `(B, T, S)` bool, `True` = may attend; or `None`.

    Returns:
        `(N, B, T, S)` float32.
    """
    scores = ops.cast(scores, "float32")
    if attention_mask is not None:
        mask = ops.cast(ops.expand_dims(attention_mask, 0), "bool")
        # A sum, as TensorFlow then makes the second term once for all layers. It swallows scores.
        scores += ops.where(mask, 0.0, -1e30)
    return ops.softmax(scores, axis=-1)
