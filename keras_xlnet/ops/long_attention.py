"""The formula of `relative_attention`, for a few query rows at a time.

    unrolled: output[rows] = attention(query[rows], ...)  for each block of rows, side by side in
              the graph. A row uses S of the R rows of the position table, a block of C rows uses
              S + C. All T rows at once compute scores for R = S + T and discard the rest.
    scanned:  the same in a loop, one chunk of rows after the other, so that memory is linear in
              the length: no tensor has more than C * S scores per head.

Axis letters as in `relative_attention`; C is the number of query rows of a block or a chunk.

Source: Rabe and Staats 2021, "Self-attention does not need O(n^2) memory", for the scanned form.
"""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_xlnet.compat.sequential_map import sequential_map
from keras_xlnet.ops.relative_attention import relative_multi_head_attention
from keras_xlnet.types import Tensor


def unrolled_relative_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    position_key: Tensor,
    *,
    block_size: int,
    next_seed: Callable[[], Tensor],
    segment_matrix: Tensor | None = None,
    attention_mask: Tensor | None = None,
    **arguments: Any,
) -> Tensor:
    """Computes `relative_multi_head_attention` in blocks of query rows, which saves time.

    Args:
        query, key, value, position_key, segment_matrix, attention_mask: As in
            `relative_multi_head_attention`. The query rows must be the content in its order, and
            their number must be static.
        block_size: Int, the largest number of query rows of a block.
        next_seed: Function without arguments that returns the `seed` of the next block.
        **arguments: Other arguments of `relative_multi_head_attention`.

    Returns:
        `(N, B, T, D)`.
    """
    query_length, context_length = query.shape[2], ops.shape(key)[2]
    position_key = _complete_table(position_key, context_length + query_length)
    outputs = []
    for start in range(0, query_length, block_size):
        rows = min(block_size, query_length - start)
        first_distance_row = query_length - start - rows
        outputs.append(
            relative_multi_head_attention(
                _take_rows(query, start, rows),
                key,
                value,
                _take_rows(position_key, first_distance_row, context_length + rows),
                segment_matrix=_take_rows(segment_matrix, start, rows),
                attention_mask=_take_rows(attention_mask, start, rows),
                seed=next_seed(),
                **arguments,
            )
        )
    return ops.concatenate(outputs, axis=2)


def scanned_relative_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    position_key: Tensor,
    *,
    chunk_size: int,
    draw_seeds: Callable[[Any], Tensor] | None = None,
    recompute: bool = False,
    segment_matrix: Tensor | None = None,
    attention_mask: Tensor | None = None,
    first_distance_row: Tensor | None = None,
    dropout: float = 0.0,
    **biases: Any,
) -> Tensor:
    """Computes `relative_multi_head_attention` in a loop over chunks of query rows.

    The last chunk ends with the last row and overlaps the one before it, so that all chunks have
    the same shape and nothing is padded.

    Args:
        query, key, value, position_key, segment_matrix, attention_mask, first_distance_row,
            dropout: As in `relative_multi_head_attention`.
        chunk_size: Int, the largest number of query rows of a chunk.
        draw_seeds: Function from the number of chunks to `(chunks, 2)` seeds, or `None` for no
            dropout.
        recompute: If `True`, the backward pass computes the probabilities of each chunk again.
            Otherwise the weights of all chunks are kept for it.
        **biases: The biases and segment embeddings of `relative_multi_head_attention`.

    Returns:
        `(N, B, T, D)`.
    """
    query_length, context_length = ops.shape(query)[2], ops.shape(key)[2]
    rows = (
        min(chunk_size, query_length)
        if isinstance(query_length, int)
        else ops.minimum(chunk_size, query_length)
    )
    num_chunks = (query_length + rows - 1) // rows
    starts = ops.arange(num_chunks, dtype="int32") * rows
    chunks = {
        "start": ops.minimum(starts, query_length - rows),
        "query": _split(query, num_chunks, rows),
    }
    if first_distance_row is None:
        position_key = _complete_table(position_key, context_length + query_length)
    else:
        # `_split` expects the axes of `query`.
        first_rows = _split(first_distance_row[None, :, :, None], num_chunks, rows)
        chunks["first_distance_row"] = first_rows[:, 0, :, :, 0]
    if draw_seeds is not None:
        chunks["seed"] = draw_seeds(num_chunks)
    shared = {"key": key, "value": value, "position_key": position_key, **biases}
    shared = {name: tensor for name, tensor in shared.items() if tensor is not None}

    def attend(chunk):
        # `keras.remat` wants everything that has a gradient as an argument. It keeps its
        # arguments, so the slices for this chunk are taken inside.
        def compute(query, *tensors):
            arguments = dict(zip(shared, tensors, strict=True))
            start = chunk["start"]
            if first_distance_row is None:
                first_row = query_length - start - rows
                arguments["position_key"] = _take_rows(
                    arguments["position_key"], first_row, context_length + rows
                )
            return relative_multi_head_attention(
                query,
                segment_matrix=_take_rows(segment_matrix, start, rows),
                attention_mask=_take_rows(attention_mask, start, rows),
                first_distance_row=chunk.get("first_distance_row"),
                dropout=dropout,
                seed=chunk.get("seed"),
                **arguments,
            )

        compute = keras.remat(compute) if recompute else compute
        return compute(chunk["query"], *shared.values())

    return _join(sequential_map(attend, chunks, like="query"), query_length, num_chunks, rows)


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


def _complete_table(position_key, num_positions):
    """Appends zeros for the distances that a table of type "uni" omits, which are masked."""
    num_heads, num_directions, known, head_dim = ops.shape(position_key)
    missing = num_positions - known
    if isinstance(missing, int) and missing == 0:
        return position_key
    shape = (num_heads, num_directions, missing, head_dim)
    return ops.concatenate([position_key, ops.zeros(shape, position_key.dtype)], axis=2)


def _take_rows(x, start, number):
    """`number` rows of the axis before the last, unless it has one row that broadcasts."""
    if x is None or x.shape[-2] == 1:
        return x
    shape = ops.shape(x)
    starts = (*(0 for _ in shape[:-2]), start, 0)
    return ops.slice(x, starts, (*shape[:-2], number, shape[-1]))
