"""Relative attention for blocks of query rows, so that most of the table of positions is skipped.

A row meets S of the R distances of the table, a block of C rows S + C of them: all T rows at once
would compute scores for the whole table and throw away half. Axis letters as in
`relative_attention`.
"""

from keras import ops

from keras_xlnet.layers.attention_in_chunks import complete_table, take_rows
from keras_xlnet.layers.relative_attention import relative_attention


def relative_attention_in_blocks(
    block_size,
    query,
    key,
    value,
    position_key,
    *biases,
    next_seed,
    segment_matrix=None,
    attention_mask=None,
    dropout=0.0,
):
    """As `relative_attention`, of query rows that are the content in its order.

    The blocks are unrolled in the graph, unlike the chunks of `relative_attention_in_chunks`: this
    saves time, those save memory.

    Args:
        block_size: Int, the most query rows of a block.
        query, key, value, position_key, segment_matrix, attention_mask, dropout: as in
            `relative_attention`; the length of `query` must be known.
        *biases: `content_bias`, `position_bias` and, with `segment_matrix`, `segment_bias` and
            `segment_embeddings` of `relative_attention`.
        next_seed: Function that returns the `seed` of a block.

    Returns:
        `(N, B, T, D)`.
    """
    query_length, context_length = query.shape[2], ops.shape(key)[2]
    position_key = complete_table(position_key, context_length + query_length)
    mixed = []
    for start in range(0, query_length, block_size):
        rows = min(block_size, query_length - start)
        first_position = query_length - start - rows
        mixed.append(
            relative_attention(
                take_rows(query, start, rows),
                key,
                value,
                take_rows(position_key, first_position, context_length + rows),
                *biases,
                segment_matrix=take_rows(segment_matrix, start, rows),
                attention_mask=take_rows(attention_mask, start, rows),
                seed=next_seed(),
                dropout=dropout,
            )
        )
    return ops.concatenate(mixed, axis=2)
