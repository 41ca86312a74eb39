"""Pairs of segments A and B from the tokens of a shard, for a whole batch, in the graph."""

import tensorflow as tf

# Special tokens of a row with two segments: <sep>, <sep> and <cls>.
NUM_SPECIAL_TOKENS = 3


def sample_segment_pairs(
    boundaries: tf.Tensor, begin: tf.Tensor, total_length: int, draws: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Samples segments A and B that have `total_length` tokens together.

    A begins at `begin` and ends at a random sentence start among those in the next `total_length`
    tokens. With probability 1/2, B is the text after A, up to the end of the sentence that contains
    the last of the `total_length` tokens. Otherwise, or if there is no such sentence start, B is a
    random span of the shard, extended to whole sentences. Finally both are truncated on the right
    to `total_length` tokens: the longer one first, and B first if they are equally long.

    Args:
        boundaries: Int64 tensor `(num_sentences + 1,)`, where sentences begin, followed by the
            number of tokens.
        begin: Int64 tensor `(batch,)`. `begin + total_length` is at most the number of tokens.
        total_length: Int, at least 2.
        draws: Float64 tensor `(batch, 3)`, uniform random numbers.

    Returns:
        Tuple of three `(batch,)` tensors: `a_length`, int64; `b_begin`, int64 (the length of B is
        `total_length - a_length`); `follows`, bool, whether B is the text after A.

    Source: `_split_a_and_b` in the original's `data_utils.py`. It never samples the last token of
    the text, because it needs the next token of each token.
    """
    end = begin + total_length
    first = _search(boundaries, begin, "right")
    last = _search(boundaries, end, "left")
    num_choices = last - first
    next_boundary = tf.gather(boundaries, last)
    choice = tf.minimum(first + _random_int(draws[:, 1], num_choices), last)
    a_end = tf.where(num_choices > 0, tf.gather(boundaries, choice), next_boundary)
    follows = tf.logical_and(num_choices > 0, draws[:, 0] >= 0.5)

    random_begin, random_end = _random_sentences(
        boundaries, tf.maximum(end - a_end, 1), draws[:, 2]
    )
    b_begin = tf.where(follows, a_end, random_begin)
    b_length = tf.where(follows, next_boundary, random_end) - b_begin
    # Equals truncating the longer one token by token: both get half of the tokens, unless one of
    # them is shorter than half.
    a_length = tf.where(
        b_length <= total_length // 2,
        total_length - b_length,
        tf.minimum(a_end - begin, (total_length + 1) // 2),
    )
    return a_length, b_begin, follows


def pack_rows(
    tokens: tf.Tensor,
    begin: tf.Tensor,
    reuse_length: int,
    a_length: tf.Tensor,
    b_begin: tf.Tensor,
    sequence_length: int,
    special_ids: tuple[int, int],
) -> tuple[tf.Tensor, tf.Tensor]:
    """Packs rows of tokens: reused tokens, A, `<sep>`, B, `<sep>`, `<cls>`.

    With the largest possible `a_length` a row has no B, and the two `<sep>` are the same token.

    Args:
        tokens: Int32 tensor `(num_tokens,)`.
        begin: Int64 tensor `(batch,)`, where the row begins. A begins `reuse_length` later.
        reuse_length: Int, number of tokens before A.
        a_length: Int64 tensor `(batch,)`, at most `sequence_length - reuse_length - 2`.
        b_begin: Int64 tensor `(batch,)`.
        sequence_length: Int.
        special_ids: Tuple of ints, the ids of `<sep>` and `<cls>`.

    Returns:
        Tuple of two int32 tensors `(batch, sequence_length)`: token ids, and segment ids (0 for
        the reused tokens, A and its `<sep>`; 1 for B and its `<sep>`; 2 for `<cls>`).
    """
    column = tf.range(sequence_length, dtype=tf.int64)[tf.newaxis]
    a_end = reuse_length + a_length[:, tf.newaxis]
    source = tf.where(
        column < a_end,
        begin[:, tf.newaxis] + column,
        b_begin[:, tf.newaxis] + column - a_end - 1,
    )
    is_sep = tf.logical_or(column == a_end, column == sequence_length - 2)
    is_cls = tf.broadcast_to(column == sequence_length - 1, tf.shape(source))
    is_text = tf.logical_not(tf.logical_or(is_sep, is_cls))
    sep, cls = special_ids
    token_ids = tf.gather(tokens, tf.where(is_text, source, 0))
    token_ids = tf.where(is_sep, sep, tf.where(is_cls, cls, token_ids))
    segment_ids = tf.where(is_cls, 2, tf.cast(column > a_end, tf.int32))
    return token_ids, segment_ids


def _random_sentences(boundaries, length, draw):
    """Returns begin and end of a random span of `length` tokens, extended to whole sentences."""
    begin = _random_int(draw, boundaries[-1] - length + 1)
    before = _search(boundaries, begin, "right") - 1
    after = _search(boundaries, begin + length, "left")
    return tf.gather(boundaries, before), tf.gather(boundaries, after)


def _search(boundaries, values, side):
    return tf.searchsorted(boundaries, values, side=side, out_type=tf.int64)


def _random_int(draw, count):
    """Maps a uniform random number to an int in [0, count)."""
    return tf.cast(draw * tf.cast(count, draw.dtype), tf.int64)
