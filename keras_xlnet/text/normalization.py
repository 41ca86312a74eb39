"""The original's `preprocess_text` (prepro_utils.py), in the TensorFlow graph.

The original is Python, so `str.split`, `str.lower` and `unicodedata` define what is right, and
TensorFlow's own string ops are not quite that: they know another version of Unicode, another set
of white space and no final sigma. So Python is asked once about every code point, and the graph
looks its answers up. Every rule is exact, for every string of valid Unicode.
"""

import functools
import sys
import unicodedata

import numpy as np
import tensorflow as tf

_SIGMA = 0x3A3
_FINAL_SIGMA = 0x3C2
_UNCHANGED = -1


def preprocess_text(texts, lowercase, remove_space, remove_accents):
    """Cleans texts before they are cut into pieces.

    In this order: every run of white space becomes one space and none is left at the ends; the
    LaTeX quotes ` `` ` and `''` become `"`; compatibility decomposition (NFKD), without the
    combining characters; lower case.

    Args:
        texts: string tensor `(batch,)`, UTF-8. A byte that is not UTF-8 is read as U+FFFD, as
            Python's `bytes.decode("utf-8", "replace")` does.
        lowercase: bool.
        remove_space: bool.
        remove_accents: bool.

    Returns:
        A string tensor `(batch,)` of valid UTF-8.
    """
    texts = tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="replace", replacement_char=0xFFFD
    )
    if remove_space:
        texts = tf.strings.strip(tf.strings.regex_replace(texts, _whitespace_pattern(), " "))
    texts = tf.strings.regex_replace(texts, "``|''", '"')
    if not (lowercase or remove_accents):
        return texts
    # Most texts are ASCII, which has no accents and is lowered byte by byte: several times faster.
    others = tf.where(tf.strings.length(texts) != tf.strings.length(texts, "UTF8_CHAR"))
    replaced = _replace_characters(tf.gather_nd(texts, others), lowercase, remove_accents)
    if lowercase:
        texts = tf.strings.lower(texts)
    return tf.tensor_scatter_nd_update(texts, others, replaced)


def _replace_characters(texts, lowercase, remove_accents):
    characters = tf.strings.unicode_decode(texts, "UTF-8")
    if remove_accents:
        characters = _replace(characters, _accent_rules())
    if lowercase:
        characters = _replace(_with_final_sigmas(characters), _lowercase_rules())
    return tf.strings.unicode_encode(characters, "UTF-8")


def _replace(characters, rules):
    """Replaces each character by none, one or more, as the rules say."""
    codes, replacements, row_splits = rules
    source = characters.flat_values
    position = tf.searchsorted(codes, source)
    row = tf.where(tf.gather(codes, position) == source, position, len(codes) - 1)
    target = tf.gather(tf.RaggedTensor.from_row_splits(replacements, row_splits), row)
    source = tf.repeat(source, target.row_lengths())
    target = target.with_values(tf.where(target.values == _UNCHANGED, source, target.values))
    return characters.with_values(target).merge_dims(1, 2)


def _with_final_sigmas(characters):
    # Most batches hold no Greek, and the search for final sigmas costs as much as all the rest.
    codes = characters.flat_values
    return characters.with_values(
        tf.cond(
            tf.reduce_any(codes == _SIGMA), lambda: _mark_final_sigmas(characters), lambda: codes
        )
    )


def _mark_final_sigmas(characters):
    """Turns each capital sigma that ends a word into the final form, as `str.lower` does.

    Unicode's Final_Sigma: a cased letter stands before it, none after it, case-ignorable
    characters not counted. It is the only rule of `str.lower` that looks at the neighbours.
    """
    codes = characters.flat_values
    ignorable, cased = _case_properties()
    index = tf.where(~_contains(ignorable, codes))[:, 0]
    row = tf.gather(characters.value_rowids(), index)
    is_cased = _contains(cased, tf.gather(codes, index))
    same_row = row[1:] == row[:-1]
    # Both comparisons come out empty for an empty batch, and the edge has to go with them.
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
def _whitespace_pattern():
    """Runs of white space but for single spaces: those stay, and writing them again is slow."""
    others = "".join(rf"\x{{{ord(c):x}}}" for c in _characters() if c.isspace() and c != " ")
    return f" *[{others}][ {others}]*|  +"


@functools.cache
def _accent_rules():
    # NFKD also sorts runs of combining characters, but none of them is left to be sorted, so
    # what remains is a rule for each character alone.
    return _rules(
        lambda c: "".join(
            d for d in unicodedata.normalize("NFKD", c) if not unicodedata.combining(d)
        )
    )


@functools.cache
def _lowercase_rules():
    return _rules(str.lower)


def _rules(function):
    """The characters a function changes, as sorted codes and a ragged table of their images."""
    changed = {c: image for c in _characters() if (image := function(c)) != c}
    # A last code, above all characters, keeps every search inside the table. Its row is the one
    # for characters without a rule.
    codes = [*map(ord, changed), sys.maxunicode + 1]
    rows = [*([*map(ord, image)] for image in changed.values()), [_UNCHANGED]]
    return (
        np.array(codes, np.int32),
        np.concatenate(rows).astype(np.int32),
        np.cumsum([0, *map(len, rows)], dtype=np.int64),
    )


@functools.cache
def _case_properties():
    """Sorted codes of Unicode's Case_Ignorable characters and of the other Cased ones.

    Python does not tell these properties, but `str.lower` uses them on a capital sigma: after a
    cased character it is final; after "A" and an ignorable character, it still is.
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
    # A space is neither cased nor ignorable; left out as a character, it can part the probes.
    flags = [probe.endswith("\u03c2") for probe in probes.lower().split(" ")]
    flags.insert(ord(" "), False)
    return np.array(flags)
