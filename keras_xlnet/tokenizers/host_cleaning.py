"""Cleans texts as `clean_text` does, on the host, and keeps where each character comes from."""

import re
from typing import NamedTuple

import numpy as np

from keras_xlnet.tokenizers.normalization import drop_accents, replace_surrogates

# `\S` of `re` and `str.split` agree with `str.isspace` on white space.
_WORD = re.compile(r"\S+")
_QUOTES = re.compile("``|''")


class CleanedText(NamedTuple):
    """A cleaned text, and the part of the given text that each of its characters is from.

    Args:
        text: String, the cleaned text.
        start: Int array `(len(text),)`, a place in the text as given, in characters.
        end: As `start`, the place after the last character.
    """

    text: str
    start: np.ndarray
    end: np.ndarray


def clean_with_places(
    text: str, lowercase: bool, remove_space: bool, remove_accents: bool
) -> CleanedText:
    """Returns what `clean_text` returns, and where each character is from.

    Characters that are dropped belong to the character before them, the white space at the ends of
    the text to none.

    Args:
        text, lowercase, remove_space, remove_accents: As in `clean_text`.

    Returns:
        A `CleanedText`.

    Example:

    >>> from keras_xlnet.tokenizers.host_cleaning import clean_with_places
    >>> cleaned = clean_with_places("a   \u00bd", False, True, True)
    >>> [(c, int(a), int(b)) for c, a, b in zip(*cleaned)]
    [('a', 0, 1), (' ', 1, 4), ('1', 4, 5), ('⁄', 4, 5), ('2', 4, 5)]
    """
    text = replace_surrogates(text)
    # Where each character begins, and at last where the text ends: none of the characters between
    # is lost. Each step tests first whether it changes the text, as few texts change.
    bounds = np.arange(len(text) + 1)
    if remove_space:
        text, bounds = _join_spaces(text, bounds)
    text, bounds = _join_quotes(text, bounds)
    cleaned = CleanedText(text, bounds[:-1], bounds[1:])
    if remove_accents:
        cleaned = _without_accents(cleaned)
    return _in_lowercase(cleaned) if lowercase else cleaned


def _join_spaces(text, bounds):
    joined = " ".join(text.split())
    if joined == text:
        return text, bounds
    # A word and the space after it.
    spans = [match.span() for match in _WORD.finditer(text)]
    return joined, np.concatenate([np.arange(a, b + 1) for a, b in spans] or [bounds[:1]])


def _join_quotes(text, bounds):
    joined = _QUOTES.sub('"', text)
    if joined == text:
        return text, bounds
    return joined, np.delete(bounds, [match.start() + 1 for match in _QUOTES.finditer(text)])


def _without_accents(cleaned):
    text = drop_accents(cleaned.text)
    if text == cleaned.text:
        return cleaned
    # NFKD also reorders combining characters. These are dropped, so each character has a
    # replacement that does not depend on its neighbors.
    counts = np.array([len(drop_accents(character)) for character in cleaned.text])
    bounds = np.append(cleaned.start[counts > 0], cleaned.end[-1])
    counts = counts[counts > 0]
    return CleanedText(text, np.repeat(bounds[:-1], counts), np.repeat(bounds[1:], counts))


def _in_lowercase(cleaned):
    text = cleaned.text.lower()
    if len(text) == len(cleaned.text):
        return cleaned._replace(text=text)
    counts = [len(character.lower()) for character in cleaned.text]
    return CleanedText(text, np.repeat(cleaned.start, counts), np.repeat(cleaned.end, counts))
