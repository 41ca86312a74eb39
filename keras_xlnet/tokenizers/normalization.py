"""The original's `preprocess_text` (`prepro_utils.py`), in the TensorFlow graph.

The original uses Python's `str.split`, `str.lower` and `unicodedata`. The string ops of TensorFlow
use another version of Unicode and another set of white space, and have no rule for the final sigma.
So tables are built once from the functions of `cleaning.py`, applied to every code point, and the
graph looks characters up in these tables. The result equals the original for every string.
"""

from __future__ import annotations

import functools
import sys

import numpy as np

from keras_xlnet.lazy_modules import tf
from keras_xlnet.tokenizers.cleaning import drop_accents

_SIGMA = 0x3A3
_FINAL_SIGMA = 0x3C2
_UNCHANGED = -1


def preprocess_text(
    texts: tf.Tensor, lowercase: bool, remove_space: bool, remove_accents: bool
) -> tf.Tensor:
    """Cleans texts as `clean_text` does.

    Args:
        texts: String tensor `(batch,)`, UTF-8. Invalid bytes are replaced by U+FFFD, as
            `bytes.decode("utf-8", "replace")` does in Python.
        lowercase: Bool.
        remove_space: Bool.
        remove_accents: Bool.

    Returns:
        String tensor `(batch,)`, valid UTF-8.
    """
    texts = valid_utf8(texts)
    if remove_space:
        texts = with_single_spaces(texts)
    texts = tf.strings.regex_replace(texts, "``|''", '"')
    return replace_characters(texts, lowercase, remove_accents)


def valid_utf8(texts: tf.Tensor) -> tf.Tensor:
    """Replaces bytes that are not UTF-8 as `bytes.decode("utf-8", "replace")` does."""
    return tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="replace", replacement_char=0xFFFD
    )


def with_single_spaces(texts: tf.Tensor) -> tf.Tensor:
    """Returns `" ".join(text.split())` for each text, valid UTF-8."""
    return tf.strings.strip(tf.strings.regex_replace(texts, _whitespace_pattern(), " "))


def strip_right(texts: tf.Tensor) -> tf.Tensor:
    """Returns `text.rstrip()` for each text, valid UTF-8."""
    return tf.strings.regex_replace(texts, f"[{_escaped(_whitespace_codes()[:-1])}]+$", "")


def replace_characters(texts: tf.Tensor, lowercase: bool, remove_accents: bool) -> tf.Tensor:
    """Drops accents and converts to lower case, as in `preprocess_text`.

    `tf.strings.lower(texts, "utf-8")` would cut texts at a NUL, and its rules differ from
    `str.lower`.
    """
    if not (lowercase or remove_accents):
        return texts
    # Only texts with characters outside ASCII need the tables. Most texts are ASCII: they have no
    # accents, and `tf.strings.lower` is several times faster.
    not_ascii = tf.where(tf.strings.length(texts) != tf.strings.length(texts, "UTF8_CHAR"))
    replaced = _replace_characters(tf.gather_nd(texts, not_ascii), lowercase, remove_accents)
    if lowercase:
        texts = tf.strings.lower(texts)
    return tf.tensor_scatter_nd_update(texts, not_ascii, replaced)


def _replace_characters(texts, lowercase, remove_accents):
    characters = tf.strings.unicode_decode(texts, "UTF-8")
    if remove_accents:
        characters = without_accents(characters).merge_dims(1, 2)
    if lowercase:
        characters = in_lowercase(characters).merge_dims(1, 2)
    return tf.strings.unicode_encode(characters, "UTF-8")


def without_accents(characters: tf.RaggedTensor) -> tf.RaggedTensor:
    """Decomposes characters and drops combining ones.

    Args:
        characters: Int32 code points `(batch, None)`.

    Returns:
        Int32 `(batch, None, None)`: zero, one or more characters for each one.
    """
    return _replace(characters, _accent_rules())


def in_lowercase(characters: tf.RaggedTensor) -> tf.RaggedTensor:
    """Converts characters to lower case, in the form of `without_accents`."""
    return _replace(_replace_final_sigmas(characters), _lowercase_rules())


def is_whitespace(codes: tf.Tensor) -> tf.Tensor:
    """Returns for code points `(n,)` whether `str.isspace` is true for them."""
    return _contains(_whitespace_codes(), codes)


def _replace(characters, rules):
    """Replaces each character by zero, one or more characters according to `rules`."""
    codes, replacements, row_splits = rules
    source = characters.flat_values
    position = tf.searchsorted(codes, source)
    row = tf.where(tf.gather(codes, position) == source, position, len(codes) - 1)
    target = tf.gather(tf.RaggedTensor.from_row_splits(replacements, row_splits), row)
    source = tf.repeat(source, target.row_lengths())
    target = target.with_values(tf.where(target.values == _UNCHANGED, source, target.values))
    return characters.with_values(target)


def _replace_final_sigmas(characters):
    # Conditional, because most batches contain no Greek text, and finding final sigmas takes as
    # long as all other rules together.
    codes = characters.flat_values
    return characters.with_values(
        tf.cond(
            tf.reduce_any(codes == _SIGMA), lambda: _final_sigma_codes(characters), lambda: codes
        )
    )


def _final_sigma_codes(characters):
    """Returns the codes with each capital sigma at the end of a word replaced by the final form.

    This is the condition Final_Sigma of Unicode: skipping case-ignorable characters, there is a
    cased letter before the sigma and none after it. It is the only rule of `str.lower` that
    depends on neighboring characters.
    """
    codes = characters.flat_values
    ignorable, cased = _case_properties()
    index = tf.where(~_contains(ignorable, codes))[:, 0]
    row = tf.gather(characters.value_rowids(), index)
    is_cased = _contains(cased, tf.gather(codes, index))
    same_row = row[1:] == row[:-1]
    # Empty for an empty batch, as the other parts of the concatenation.
    edge = tf.zeros_like(is_cased[:1])
    cased_before = tf.concat([edge, is_cased[:-1] & same_row], 0)
    cased_after = tf.concat([is_cased[1:] & same_row, edge], 0)
    is_final = tf.scatter_nd(
        index[:, tf.newaxis], cased_before & ~cased_after, tf.shape(codes, tf.int64)
    )
    return tf.where(is_final & (codes == _SIGMA), _FINAL_SIGMA, codes)


def _contains(sorted_codes, codes):
    return tf.gather(sorted_codes, tf.searchsorted(sorted_codes, codes)) == codes


def _characters():
    return map(chr, range(sys.maxunicode + 1))


@functools.cache
def _whitespace_codes():
    spaces = [ord(c) for c in _characters() if c.isspace()]
    return np.array([*spaces, sys.maxunicode + 1], np.int32)


@functools.cache
def _whitespace_pattern():
    """Returns a pattern for runs of white space. Single spaces do not match: they do not change."""
    others = _escaped(code for code in _whitespace_codes()[:-1] if code != ord(" "))
    return f" *[{others}][ {others}]*|  +"


def _escaped(codes):
    """Code points, to be put into `[...]` of a pattern."""
    return "".join(rf"\x{{{code:x}}}" for code in codes)


@functools.cache
def _accent_rules():
    # NFKD also reorders combining characters. These are dropped, so each character has a rule that
    # does not depend on its neighbors.
    return _rules(drop_accents)


@functools.cache
def _lowercase_rules():
    return _rules(str.lower)


def _rules(function):
    """Returns the sorted codes of all characters that a function changes, and what replaces them.

    The replacements are a ragged table: their concatenated codes and row splits. The last code is
    greater than all characters, so that every search ends inside the table; its row is used for
    characters that do not change.
    """
    changed = {c: result for c in _characters() if (result := function(c)) != c}
    codes = [*map(ord, changed), sys.maxunicode + 1]
    rows = [*([*map(ord, result)] for result in changed.values()), [_UNCHANGED]]
    return (
        np.array(codes, np.int32),
        np.concatenate(rows).astype(np.int32),
        np.cumsum([0, *map(len, rows)], dtype=np.int64),
    )


@functools.cache
def _case_properties():
    """Returns the sorted codes of case-ignorable characters and of cased characters.

    Python has no function for these properties of Unicode. They are found by lowering a capital
    sigma: it becomes final after a cased character, and also after "A" followed by a case-ignorable
    character.
    """
    after_cased = _is_final_sigma_after("")
    after_ignorable = _is_final_sigma_after("A") & ~after_cased
    sentinel = sys.maxunicode + 1
    return tuple(
        np.append(np.flatnonzero(flags), sentinel).astype(np.int32)
        for flags in (after_ignorable, after_cased)
    )


def _is_final_sigma_after(prefix):
    probes = " ".join(f"{prefix}{c}\u03a3" for c in _characters() if c != " ")
    # A space is neither cased nor case-ignorable, so it is not probed and separates the probes.
    flags = [probe.endswith("\u03c2") for probe in probes.lower().split(" ")]
    flags.insert(ord(" "), False)
    return np.array(flags)
