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
    drop=None,
):
    """Attention of all heads: values, mixed by how much each query row likes each context row.

    Args:
        query: `(N, B, T, D)`, scaled.
        key: `(N, B, S, D)`.
        value: `(N, B, S, D)`.
        position_key: `(N, P, R, D)`, see `position_scores`.
        content_bias: `(N, 1, 1, D)`, scaled, as the next two.
        position_bias: `(N, 1, 1, D)`.
        segment_bias: `(N, 1, 1, D)`, needed with `segment_matrix`, as the next.
        segment_embeddings: `(2, N, D)`.
        segment_matrix: `(B, T, S)` bool, `True` for different segments; or `None`.
        attention_mask: `(B or 1, T or 1, S)` bool, `True` = may attend; or `None`.
        first_position: `(B, T)`, see `position_scores`.
        drop: Function that drops some of the probabilities, or `None`.

    Returns:
        `(N, B, T, D)`, and the probabilities `(N, B, T, S)` before `drop`.
    """
    scores = content_scores(query + content_bias, key)
    scores += position_scores(
        query + position_bias, position_key, ops.shape(key)[2], first_position
    )
    if segment_matrix is not None:
        scores += segment_scores(query + segment_bias, segment_embeddings, segment_matrix)
    probabilities = ops.cast(masked_softmax(scores, attention_mask), value.dtype)
    weights = probabilities if drop is None else drop(probabilities)
    return ops.matmul(weights, value), probabilities


def content_scores(query, key):
    """`(N, B, T, D)` x `(N, B, S, D)` -> `(N, B, T, S)`."""
    return ops.matmul(query, ops.swapaxes(key, -1, -2))


def position_scores(query, position_key, context_length, first_position=None):
    """How much each query row likes each distance, laid out by context row.

    Args:
        query: `(N, B, T, D)`.
        position_key: `(N, P, R, D)`, row `r` for the distance `S - r`. Shared by the batch.
        context_length: S.
        first_position: `(B, T)` int32, the row of `position_key` for the distance from each query
            row to context row 0. `None` where query rows are the content in its order.

    Returns:
        `(N, B, T, S)`. Keys whose distance is not in the table get an arbitrary score: mask them.
    """
    scores = _scores_of_positions(query, position_key)
    if first_position is None:
        return relative_shift(scores, context_length)
    rows = ops.expand_dims(first_position, -1) + ops.arange(context_length, dtype="int32")
    rows = ops.minimum(rows, ops.shape(scores)[-1] - 1)
    return ops.take_along_axis(scores, ops.expand_dims(rows, 0), axis=-1)


def _scores_of_positions(query, position_key):
    """`(N, B, T, D)` x `(N, P, R, D)` -> `(N, B, T, R)`: a matrix for each direction."""
    num_heads, batch_size, query_length, head_dim = ops.shape(query)
    _, num_directions, num_positions, _ = ops.shape(position_key)
    # An odd batch of unknown size can only fail when it runs: the scope's name tells why.
    with keras.name_scope("bidirectional_data_needs_an_even_batch_size"):
        rows = batch_size // num_directions * query_length
        query = ops.reshape(query, (num_heads, num_directions, rows, head_dim))
    scores = ops.matmul(query, ops.swapaxes(position_key, -1, -2))
    return ops.reshape(scores, (num_heads, batch_size, query_length, num_positions))


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
    rows, columns = num_heads * batch_size, num_positions - 1
    # `ops.slice`, on matrices: in TensorFlow the gradient of `x[:, :, a:]` is 10 times slower.
    flat = ops.reshape(scores, (rows, query_length * num_positions))
    flat = ops.slice(flat, (0, query_length), (rows, query_length * columns))
    flat = ops.reshape(flat, (rows * query_length, columns))
    flat = ops.slice(flat, (0, 0), (rows * query_length, context_length))
    return ops.reshape(flat, (num_heads, batch_size, query_length, context_length))


def segment_scores(query, segment_embeddings, segment_matrix):
    """How much each query row likes keys of its own segment and of another.

    Softmax does not see what a whole row has in common, so one number a row is enough: the
    difference between "another segment" and "the same segment".

    Args:
        query: `(N, B, T, D)`.
        segment_embeddings: `(2, N, D)`: same segment, different segment.
        segment_matrix: `(B, T, S)` bool, `True` for different segments.

    Returns:
        `(N, B, T, S)`.
    """
    num_heads, batch_size, query_length, head_dim = ops.shape(query)
    difference = segment_embeddings[1] - segment_embeddings[0]
    rows = ops.reshape(query, (num_heads, batch_size * query_length, head_dim))
    scores = ops.matmul(rows, ops.expand_dims(difference, -1))
    scores = ops.reshape(scores, (num_heads, batch_size, query_length, 1))
    different = ops.cast(ops.expand_dims(segment_matrix, 0), "bool")
    return ops.where(different, scores, ops.zeros_like(scores))


def masked_softmax(scores, attention_mask):
    """Attention probabilities in float32.

    A query row that may see nothing attends to every key alike, as in the original.

    Args:
        scores: `(N, B, T, S)`.
        attention_mask: `(B, T, S)` bool, `True` = may attend; or `None`.

    Returns:
        `(N, B, T, S)` float32.
    """
    scores = ops.cast(scores, "float32")
    if attention_mask is not None:
        mask = ops.cast(ops.expand_dims(attention_mask, 0), "bool")
        scores = ops.where(mask, scores, -1e30)
    return ops.softmax(scores, axis=-1)
