"""Cleans texts as `preprocess_text` does, and records where each character comes from."""

from __future__ import annotations

from typing import NamedTuple

from keras_xlnet.lazy_modules import tf
from keras_xlnet.tokenizers.cleaning import steps
from keras_xlnet.tokenizers.normalization import in_lowercase, is_whitespace, without_accents

_REPLACEMENT, _SPACE, _QUOTE = 0xFFFD, ord(" "), ord('"')
_LATEX_QUOTES = (ord("`"), ord("'"))


class AlignedText(NamedTuple):
    """Cleaned texts as characters, and the part of the given text that each one comes from.

    Args:
        codes: Int32 `tf.RaggedTensor` `(batch, None)`, code points.
        start: Int64 `tf.RaggedTensor` `(batch, None)`, the first character of that part.
        end: As `start`, the character after the last one.
    """

    codes: tf.RaggedTensor
    start: tf.RaggedTensor
    end: tf.RaggedTensor


def clean_aligned(
    texts: tf.Tensor, lowercase: bool, remove_space: bool, remove_accents: bool
) -> tuple[AlignedText, tf.RaggedTensor]:
    """Returns what `preprocess_text` returns, character by character.

    Args:
        texts, lowercase, remove_space, remove_accents: As in `preprocess_text`.

    Returns:
        An `AlignedText`, and the first byte of each character of the given texts, int64
        `(batch, None)`, followed by the length of the text in bytes.
    """
    codes, byte_start = tf.strings.unicode_decode_with_offsets(
        texts, "UTF-8", errors="replace", replacement_char=_REPLACEMENT
    )
    start = tf.ragged.range(codes.row_lengths())
    text = AlignedText(codes, start, start + 1)
    for step in steps(lowercase, remove_space, remove_accents):
        text = _CHANGES[step](text)
    length = tf.cast(tf.strings.length(texts), tf.int64)[:, tf.newaxis]
    return text, tf.concat([byte_start, length], axis=1)


def starts_row(ragged: tf.RaggedTensor) -> tf.Tensor:
    """Returns which values of a ragged tensor `(batch, None)` are the first of their row."""
    rows = ragged.value_rowids()
    return tf.concat([tf.ones_like(rows[:1], tf.bool), rows[1:] != rows[:-1]], 0)


def _join_whitespace(text):
    """Replaces each run of white space by one space, and strips the ends."""
    codes = text.codes.flat_values
    rows = text.codes.value_rowids()
    space = is_whitespace(codes)
    # The number of characters so far that are not white space.
    others = tf.cumsum(tf.cast(~space, tf.int64))
    others_before_row = tf.concat([[0], others], 0)
    splits = tf.gather(others_before_row, text.codes.row_splits)
    is_inside = (others > tf.gather(splits, rows)) & (others < tf.gather(splits, rows + 1))
    text = _mask(text, ~space | is_inside)
    space = is_whitespace(text.codes.flat_values)
    # No row begins or ends with a space any more.
    codes = tf.where(space, _SPACE, text.codes.flat_values)
    return _kept(text, codes, ~(space & tf.concat([space[:1], space[:-1]], 0)))


def _join_quotes(text):
    """Replaces each pair of equal LaTeX quotes by one `"`."""
    codes = text.codes.flat_values
    index = tf.range(tf.size(codes))
    starts_run = (codes != tf.concat([codes[:1], codes[:-1]], 0)) | starts_row(text.codes)
    run = tf.cumsum(tf.cast(starts_run, tf.int32)) - 1
    place = index - tf.gather(tf.math.segment_min(index, run), run)
    is_quote = (codes == _LATEX_QUOTES[0]) | (codes == _LATEX_QUOTES[1])
    is_second = is_quote & (place % 2 == 1)
    is_first = is_quote & (place % 2 == 0) & (_next(run) == run) & (index < tf.size(codes) - 1)
    return _kept(text, tf.where(is_first, _QUOTE, codes), ~is_second)


def _kept(text, codes, kept):
    """Replaces the codes of characters one by one, and drops characters that are not kept."""
    counts = tf.cast(kept, tf.int64)
    codes = tf.boolean_mask(codes, kept)
    codes = tf.RaggedTensor.from_row_lengths(codes, counts, validate=False)
    return _replaced(text, text.codes.with_values(codes))


def _replaced(text, replacements):
    """Replaces characters. A dropped character belongs to the character before it."""
    counts = replacements.values.row_lengths()
    kept = _mask(text, counts > 0)
    is_last = _next(tf.cast(starts_row(kept.codes), tf.int32)) == 1
    index = tf.range(tf.size(is_last))
    is_last |= index == tf.size(index) - 1
    row_end = tf.reduce_max(text.end, axis=1)
    row_end = tf.gather(row_end, kept.codes.value_rowids())
    # Several characters that replace one character all begin and end where it does.
    end = tf.maximum(kept.end.flat_values, _next(kept.start.flat_values))
    end = tf.where(is_last, row_end, end)
    kept = AlignedText(kept.codes, kept.start, kept.end.with_flat_values(end))
    counts = tf.boolean_mask(counts, counts > 0)
    codes = replacements.merge_dims(1, 2)
    return AlignedText(
        codes,
        codes.with_flat_values(tf.repeat(kept.start.flat_values, counts)),
        codes.with_flat_values(tf.repeat(kept.end.flat_values, counts)),
    )


_CHANGES = {
    "remove_space": _join_whitespace,
    "join_quotes": _join_quotes,
    "remove_accents": lambda text: _replaced(text, without_accents(text.codes)),
    "lowercase": lambda text: _replaced(text, in_lowercase(text.codes)),
}


def _mask(text, kept):
    mask = text.codes.with_flat_values(kept)
    return AlignedText(*(tf.ragged.boolean_mask(part, mask) for part in text))


def _next(values):
    """Returns the value after each value; for the last value, itself."""
    return tf.concat([values[1:], values[-1:]], 0)
