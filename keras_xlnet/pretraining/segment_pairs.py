"""Pairs of segments out of a stream of tokens, a batch at a time, in the TensorFlow graph."""

import tensorflow as tf

# The most that a row has besides text: two <sep> and one <cls>.
NUM_SPECIAL_TOKENS = 3


def split_segments(boundaries, begin, total_length, draws):
    """Chooses segments A and B, of `total_length` tokens together.

    A goes from `begin` to a sentence start that is drawn from those inside the window of
    `total_length` tokens. With probability 1/2, and always where there is no such start, B is at a
    random place, grown to whole sentences; else B is what follows A, up to the end of the sentence
    in which the window ends. Then both are cut down from the right, the longer one first, and B
    first of equals.

    Args:
        boundaries: int64 `(num_sentences + 1,)`, where sentences begin, and at last the number of
            tokens.
        begin: int64 `(batch,)`, with `begin + total_length` at most the number of tokens.
        total_length: int, at least 2.
        draws: float64 `(batch, 3)`, uniform random numbers.

    Returns:
        Tuple of `(batch,)` tensors: `a_length` and `b_begin`, int64 (B has
        `total_length - a_length` tokens); `follows`, bool, whether B was chosen as what follows A.

    Source: `_split_a_and_b` in the original's `data_utils.py`, which never draws the last token
    of the text, because it needs the token after each one.
    """
    window_end = begin + total_length
    first = _search(boundaries, begin, "right")
    last = _search(boundaries, window_end, "left")
    num_cuts = last - first
    next_boundary = tf.gather(boundaries, last)
    cut = tf.gather(boundaries, tf.minimum(first + _pick(draws[:, 1], num_cuts), last))
    a_end = tf.where(num_cuts > 0, cut, next_boundary)
    follows = tf.logical_and(num_cuts > 0, draws[:, 0] >= 0.5)

    random_begin, random_end = _random_sentences(
        boundaries, tf.maximum(window_end - a_end, 1), draws[:, 2]
    )
    b_begin = tf.where(follows, a_end, random_begin)
    b_length = tf.where(follows, next_boundary, random_end) - b_begin
    # What is left when the longer one loses a token again and again: one half each, unless one of
    # them is shorter than that from the start.
    a_length = tf.where(
        b_length <= total_length // 2,
        total_length - b_length,
        tf.minimum(a_end - begin, (total_length + 1) // 2),
    )
    return a_length, b_begin, follows


def segment_rows(tokens, begin, reuse_length, a_length, b_begin, sequence_length, special_ids):
    """Lays out rows: context, A, `<sep>`, B, `<sep>`, `<cls>`.

    A row without B is one whose A leaves no room for it: its second `<sep>` is that of A.

    Args:
        tokens: int32 `(num_tokens,)`.
        begin: int64 `(batch,)`, where the context begins; A begins `reuse_length` later.
        reuse_length: int, tokens of context.
        a_length: int64 `(batch,)`, at most `sequence_length - reuse_length - 2`.
        b_begin: int64 `(batch,)`.
        sequence_length: int.
        special_ids: tuple of ints, the ids of `<sep>` and `<cls>`.

    Returns:
        Tuple of int32 `(batch, sequence_length)`: token ids; segment ids: 0 for context, A and
        its `<sep>`, 1 for B and its `<sep>`, 2 for `<cls>`.
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
    """A random stretch of `length` tokens, grown to whole sentences: begin and end."""
    begin = _pick(draw, boundaries[-1] - length + 1)
    before = _search(boundaries, begin, "right") - 1
    after = _search(boundaries, begin + length, "left")
    return tf.gather(boundaries, before), tf.gather(boundaries, after)


def _search(boundaries, values, side):
    return tf.searchsorted(boundaries, values, side=side, out_type=tf.int64)


def _pick(draw, count):
    return tf.cast(draw * tf.cast(count, draw.dtype), tf.int64)
