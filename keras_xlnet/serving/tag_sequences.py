"""Valid sequences of tags and their entities, in a TensorFlow graph.

The rules of `keras_xlnet.preprocessing.tags`, for a batch of sentences.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from keras_xlnet.preprocessing.tags import allowed_transitions, split_tag

# Lower scores are raised to this one, as on the host, so that only invalid tags are -inf.
_LOG_ZERO = -1e30


def most_probable_tags(
    log_probs: tf.Tensor, lengths: tf.Tensor, tags: Sequence[str], scheme: str
) -> tf.Tensor:
    """Returns the most probable sequences of tags that are valid, as `decode_tags` does.

    Args:
        log_probs: Float64 `(batch, words, n)`.
        lengths: Int64 `(batch,)`, the number of words of each sentence.
        tags, scheme: As in `decode_tags`.

    Returns:
        Int32 `(batch, words)`, the index of the tag of each word. Values after the last word are
        meaningless.
    """
    start, transitions, end = allowed_transitions(tags, scheme)
    # One more word, so that a first one exists.
    scores = tf.pad(tf.maximum(log_probs, _LOG_ZERO), [(0, 0), (0, 1), (0, 0)])
    best = tf.argmax(scores, axis=2, output_type=tf.int32)
    found = best
    if not (start.all() and transitions.all() and end.all()):
        is_word = tf.sequence_mask(lengths, tf.shape(scores)[1])
        is_valid = _is_valid(best, is_word, start, transitions, end)
        # Most requests need no search.
        found = tf.cond(
            tf.reduce_all(is_valid),
            lambda: best,
            lambda: tf.where(
                is_valid[:, tf.newaxis], best, _viterbi(scores, is_word, start, transitions, end)
            ),
        )
    return found[:, :-1]


def entity_starts(
    chosen: tf.RaggedTensor, tags: Sequence[str], scheme: str
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns which words begin an entity and which are in one, as `tag_spans` does.

    Args:
        chosen: Int32 `(batch, None)`, indices of tags.
        tags, scheme: As in `tag_spans`.

    Returns:
        Two bool tensors for the values of `chosen`.
    """
    parts = [split_tag(tag) for tag in tags]
    letters = np.array([part[0] for part in parts])  # type: ignore[index]  # All are of entities.
    types = np.array([part[1] for part in parts])  # type: ignore[index]  # All are of entities.
    continues = types[:, np.newaxis] == types
    if scheme != "io":
        continues &= np.isin(letters, ["B", "I"])[:, np.newaxis] & np.isin(letters, ["I", "E"])
    tag, place = chosen.values, tf.ragged.range(chosen.row_lengths()).values
    is_inside = tf.gather(tf.constant(letters != "O"), tag)
    pairs = tf.stack([tf.roll(tag, 1, axis=0), tag], axis=1)
    follows = tf.gather_nd(tf.constant(continues), pairs) & (place > 0)
    return is_inside & ~follows, is_inside


def _is_valid(best, is_word, start, transitions, end):
    """Whether the sequences of the most probable tags are valid, `(batch,)`."""
    pairs = (
        tf.gather_nd(tf.constant(transitions), tf.stack([best[:, :-1], best[:, 1:]], axis=-1))
        | ~(is_word[:, 1:])
    )
    is_last = is_word & ~tf.pad(is_word[:, 1:], [(0, 0), (0, 1)])
    ends = tf.gather(tf.constant(end), best) | ~is_last
    begins = tf.gather(tf.constant(start), best[:, 0]) | ~is_word[:, 0]
    return begins & tf.reduce_all(pairs, axis=1) & tf.reduce_all(ends, axis=1)


def _viterbi(scores, is_word, start, transitions, end):
    """The best valid sequences, int32 `(batch, words)`."""
    log_start, log_transitions, log_end = (
        tf.constant(np.where(allowed, 0.0, -np.inf)) for allowed in (start, transitions, end)
    )
    scores, is_word = tf.transpose(scores, (1, 0, 2)), tf.transpose(is_word)
    stay = tf.zeros_like(scores[0], tf.int32) + tf.range(len(start))

    def forward(before, word):
        totals, _ = before
        score, is_here = word
        candidates = totals[:, :, tf.newaxis] + log_transitions
        origins = tf.argmax(candidates, axis=1, output_type=tf.int32)
        is_here = is_here[:, tf.newaxis]
        totals = tf.where(is_here, tf.reduce_max(candidates, axis=1) + score, totals)
        return totals, tf.where(is_here, origins, stay)

    first = (log_start + scores[0], stay)
    totals, origins = tf.scan(forward, (scores[1:], is_word[1:]), first)
    last = tf.concat([first[0][tf.newaxis], totals], axis=0)[-1] + log_end
    last = tf.argmax(last, axis=1, output_type=tf.int32)
    chosen = tf.scan(
        lambda after, origin: tf.gather(origin, after, batch_dims=1), origins, last, reverse=True
    )
    return tf.transpose(tf.concat([chosen, last[tf.newaxis]], axis=0))
