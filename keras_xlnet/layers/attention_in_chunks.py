"""Relative attention for a few query rows at a time, so that memory is linear in length.

Axis letters as in `relative_attention`; C is the number of query rows of a chunk.
"""

import keras
from keras import ops

from keras_xlnet.layers.relative_attention import relative_attention


def relative_attention_in_chunks(
    chunk_size,
    query,
    key,
    value,
    position_key,
    *biases,
    segment_matrix=None,
    attention_mask=None,
    first_position=None,
    dropout=0.0,
    draw_seeds=None,
    recompute=False,
):
    """As `relative_attention`, but no tensor has more than `chunk_size` rows of scores.

    The last chunk ends with the last row and overlaps the one before it, so that all are alike and
    nothing has to be padded.

    Args:
        chunk_size: Int, the most query rows of a chunk.
        query, key, value, position_key, segment_matrix, attention_mask, first_position: as in
            `relative_attention`.
        *biases: `content_bias`, `position_bias` and, with `segment_matrix`, `segment_bias` and
            `segment_embeddings` of `relative_attention`.
        dropout: Float, rate at which probabilities are dropped.
        draw_seeds: Function from the number of chunks to as many seeds, or `None`: no dropout.
        recompute: If `True`, the backward pass computes the probabilities of each chunk again;
            otherwise it needs those of all chunks at once.

    Returns:
        `(N, B, T, D)`.

    Source: Rabe and Staats 2021, "Self-attention does not need O(n^2) memory", for the idea.
    """
    query_length, context_length = ops.shape(query)[2], ops.shape(key)[2]
    rows = _least(chunk_size, query_length)
    num_chunks = (query_length + rows - 1) // rows
    starts = ops.arange(num_chunks, dtype="int32") * rows
    chunks = {
        "start": ops.minimum(starts, query_length - rows),
        "query": _split(query, num_chunks, rows),
    }
    if first_position is None:
        position_key = complete_table(position_key, context_length + query_length)
    else:
        # As a tensor with the axes of `query`.
        positions = _split(first_position[None, :, :, None], num_chunks, rows)
        chunks["first_position"] = positions[:, 0, :, :, 0]
    if draw_seeds is not None:
        chunks["seed"] = draw_seeds(num_chunks)

    def attend(chunk):
        # Whatever has a gradient is an argument of what is recomputed. All that is cut out for this
        # chunk is cut out in there: what goes in is remembered, once a chunk.
        def compute(query, key, value, position_key, *biases):
            start = chunk["start"]
            if first_position is None:
                first_row = query_length - start - rows
                position_key = take_rows(position_key, first_row, context_length + rows)
            return relative_attention(
                query,
                key,
                value,
                position_key,
                *biases,
                segment_matrix=take_rows(segment_matrix, start, rows),
                attention_mask=take_rows(attention_mask, start, rows),
                first_position=chunk.get("first_position"),
                seed=chunk.get("seed"),
                dropout=dropout,
            )

        compute = keras.remat(compute) if recompute else compute
        return compute(chunk["query"], key, value, position_key, *biases)

    return _join(_one_by_one(attend, chunks), query_length, num_chunks, rows)


def _one_by_one(attend, chunks):
    """`ops.map`, with one chunk in memory at a time."""
    if keras.backend.backend() != "tensorflow":
        return ops.map(attend, chunks)
    import tensorflow as tf  # `ops.map` has up to ten chunks in work: twice the memory.

    query = chunks["query"]
    signature = tf.TensorSpec(query.shape[1:], query.dtype)
    return tf.map_fn(attend, chunks, fn_output_signature=signature, parallel_iterations=1)


def _least(a, b):
    """Of two lengths; `b` may be known only when the graph runs."""
    return min(a, b) if isinstance(b, int) else ops.minimum(a, b)


def _split(x, num_chunks, rows):
    """`(N, B, T, D)` -> `(chunks, N, B, C, D)`."""
    num_heads, batch_size, length, size = ops.shape(x)
    if not _divides(rows, length):
        before_last = ops.slice(
            x, (0, 0, 0, 0), (num_heads, batch_size, (num_chunks - 1) * rows, size)
        )
        last = ops.slice(x, (0, 0, length - rows, 0), (num_heads, batch_size, rows, size))
        x = ops.concatenate([before_last, last], axis=2)
    x = ops.reshape(x, (num_heads, batch_size, num_chunks, rows, size))
    return ops.transpose(x, (2, 0, 1, 3, 4))


def _join(chunks, length, num_chunks, rows):
    """`(chunks, N, B, C, D)` -> `(N, B, T, D)`, the inverse of `_split`."""
    _, num_heads, batch_size, _, size = ops.shape(chunks)
    x = ops.transpose(chunks, (1, 2, 0, 3, 4))
    x = ops.reshape(x, (num_heads, batch_size, num_chunks * rows, size))
    if _divides(rows, length):
        return x
    before_last = (num_chunks - 1) * rows
    new = length - before_last
    first = ops.slice(x, (0, 0, 0, 0), (num_heads, batch_size, before_last, size))
    last = ops.slice(x, (0, 0, num_chunks * rows - new, 0), (num_heads, batch_size, new, size))
    return ops.concatenate([first, last], axis=2)


def _divides(rows, length):
    return isinstance(rows, int) and isinstance(length, int) and length % rows == 0


def complete_table(position_key, num_positions):
    """Adds rows of zeros for distances that "uni" has no keys for: they are masked anyway."""
    num_heads, num_directions, known, head_dim = ops.shape(position_key)
    missing = num_positions - known
    if isinstance(missing, int) and missing == 0:
        return position_key
    shape = (num_heads, num_directions, missing, head_dim)
    return ops.concatenate([position_key, ops.zeros(shape, position_key.dtype)], axis=2)


def take_rows(x, start, number):
    """`number` rows of the axis before the last, unless one row stands for all."""
    if x is None or x.shape[-2] == 1:
        return x
    shape = ops.shape(x)
    starts = (*(0 for _ in shape[:-2]), start, 0)
    return ops.slice(x, starts, (*shape[:-2], number, shape[-1]))
