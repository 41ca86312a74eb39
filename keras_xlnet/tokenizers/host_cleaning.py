"""Cleans texts as `clean_text` does, and records where each character comes from, on the host."""

import re
from typing import NamedTuple

import numpy as np

from keras_xlnet.tokenizers.cleaning import CHANGES, drop_accents, replace_surrogates, steps

_QUOTES = re.compile("``|''")


class CleanedText(NamedTuple):
    """A cleaned text, and the part of the given text that each of its characters comes from.

    Args:
        text: String, the cleaned text.
        start: Int array `(len(text),)`, the first character of that part.
        end: As `start`, the character after the last one.
    """

    text: str
    start: np.ndarray
    end: np.ndarray


def clean_with_places(
    text: str, lowercase: bool, remove_space: bool, remove_accents: bool
) -> CleanedText:
    """Returns what `clean_text` returns, and where each character comes from.

    Dropped characters belong to the character before them. White space at the ends of the text
    belongs to no character.

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
    start = np.arange(len(text))
    end = start + 1
    for step in steps(lowercase, remove_space, remove_accents):
        changed = CHANGES[step](text)
        # Few texts change. No character becomes none in lower case.
        if changed != text and (step != "lowercase" or len(changed) != len(text)):
            if step == "remove_space":
                first = len(text) - len(text.lstrip())
                text = text.strip()
                start, end = (part[first : first + len(text)] for part in (start, end))
            counts = np.array([*_COUNTS[step](text)], int)
            kept = counts > 0
            start, end = start[kept], np.maximum(end[kept], np.append(start[kept][1:], end[-1:]))
            start, end = (np.repeat(part, counts[kept]) for part in (start, end))
        text = changed
    return CleanedText(text, start, end)


def _counts_of_space(text):
    is_space = np.array([*map(str.isspace, text)], bool)
    return ~(is_space & np.append(False, is_space[:-1])[: len(text)])


def _counts_of_quotes(text):
    seconds = {match.end() - 1 for match in _QUOTES.finditer(text)}
    return [place not in seconds for place in range(len(text))]


# How many characters each character of a text becomes in a step. NFKD also reorders combining
# characters, but these are dropped, so no character depends on its neighbors.
_COUNTS = {
    "remove_space": _counts_of_space,
    "join_quotes": _counts_of_quotes,
    "remove_accents": lambda text: map(len, map(drop_accents, text)),
    "lowercase": lambda text: map(len, map(str.lower, text)),
}
