"""Sentences as words with tags, and texts split into words.

Exported directories contain this file (`serving/portable/`), so it does not import Keras.
"""

import functools
import re
import sys
import unicodedata
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from keras_xlnet.arguments import check_count
from keras_xlnet.tokenizers.text_columns import as_text, as_texts, plain_columns, plain_texts

# The label of ignored tokens, as in PyTorch.
NO_LABEL = -100
ZERO_WIDTH_SPACE = "\u200b"


def sentence_words(x: Any) -> tuple[list[list[str]], list[list[tuple[int, int]]] | None]:
    """Returns the words of sentences, and where they are in strings.

    Args:
        x: Column of lists of words, or of strings, which are split into words as below.

    Returns:
        A list of lists of strings; and for strings a list of lists of `(start, end)` in characters,
        otherwise `None`.

    Raises:
        ValueError: If a sentence has no words or a word is not a string. The message names them.
    """
    x = plain_columns(x)
    first = next(iter(x), None)
    if isinstance(x, (str, bytes, dict)) or isinstance(first, (str, bytes)):
        texts = as_texts(x)
        places = [word_places(text) for text in texts]
        pairs = zip(texts, places, strict=True)
        sentences = [[text[start:end] for start, end in row] for text, row in pairs]
    else:
        sentences, places = [plain_texts(words) for words in x], None
    return [_checked_words(row, words) for row, words in enumerate(sentences)], places


def word_places(text: str) -> list[tuple[int, int]]:
    """Returns where the words of a text are: a list of `(start, end)` in characters.

    Example:

    >>> keras_xlnet.preprocessing.words.word_places("It's late.")
    [(0, 4), (5, 9), (9, 10)]
    """
    return [match.span() for match in _word_pattern().finditer(text)]


@functools.cache
def marks() -> str:
    """Returns the characters that belong to the previous character, for a pattern `[...]`.

    These are combining marks, such as accents, vowel signs and variation selectors; invisible
    characters, such as joiners and soft hyphens; the modifiers of emoji; and the Hebrew geresh.
    In patterns, `\\w` contains none of them.

    Source: Unicode Standard Annex 29, rule WB4.
    """
    codes = [
        code
        for code, character in enumerate(map(chr, range(sys.maxunicode + 1)))
        if unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")
        and character != ZERO_WIDTH_SPACE
    ]
    begins = sorted({*codes} - {code + 1 for code in codes})
    ends = sorted({*codes} - {code - 1 for code in codes})
    ranges = [f"{chr(begin)}-{chr(end)}" for begin, end in zip(begins, ends, strict=True)]
    return "".join(ranges) + "\U0001f3fb-\U0001f3ff\u05f3"


@functools.cache
def _word_pattern():
    """A pattern for words, which together have all characters but white space.

    A word is a run of letters and digits with their marks, and with characters inside of it
    ("don't", "e.g.", "a@b.org", "1,000"); the name of a user or topic; a flag; or any other
    character with its marks, such as an emoji and those joined to it. The rules follow UAX 29
    with two differences: names, addresses and words with hyphens are one word, and so are runs of
    letters in scripts without spaces, which UAX 29 divides by a dictionary or into characters.
    """
    mark = f"[{marks()}]*"
    run = rf"\w[\w{marks()}]*"
    inside = rf"(?:[-'’.@/·‧״]{mark}|(?<=\d),(?=\d))"
    # Invisible characters can also come before a word. A zero-width space ends a word.
    word = rf"[{marks()}{ZERO_WIDTH_SPACE}]*[@#]?{run}(?:{inside}{run})*{ZERO_WIDTH_SPACE}*"
    flag = rf"[\U0001f1e6-\U0001f1ff]{{2}}{mark}"
    other = rf"\S{mark}(?:(?<=\u200d)[^\w\s]{mark})*"
    return re.compile(f"{word}|{flag}|{other}")


def _checked_words(row, words):
    if not isinstance(words, (list, tuple)) or not words:
        raise ValueError(
            f"`x` must be lists of words, or strings with words. Received in row {row}: {words!r}"
        )
    return [as_text("x", f"{row}, word {place}", word) for place, word in enumerate(words)]


def tag_indices(
    y: Any, sentences: Sequence[Sequence[str]], class_names: Sequence[str] | None, num_classes: int
) -> list[np.ndarray]:
    """Returns an int32 array of class indices for each sentence, one per word.

    Args:
        y: List of lists of tags, names of classes or indices; -100 for ignored words.
        sentences: List of lists of words.
        class_names: Names of the classes, needed for tags that are names.
        num_classes: Int.

    Raises:
        ValueError: If the numbers of tags and words differ, or a tag is not a class. The message
            names the row and the word.
    """
    given = f"`y` must have the tags of {len(sentences)} sentences. Received: "
    check_count(y, len(sentences), given, " rows")
    index = {name: i for i, name in enumerate(class_names or ())}
    rows = []
    for row, (tags, words) in enumerate(zip(y, sentences, strict=True)):
        given = f"`y` must have a tag for each word. Received in row {row}: "
        check_count(tags, len(words), given, f" tags for {len(words)} words")
        found = [_index(tag, index, num_classes) for tag in tags]
        if None in found:
            place = found.index(None)
            expected = f"names in class_names={list(class_names)}" if class_names else "indices"
            raise ValueError(
                f"`y` must have tags that are {expected}, or indices below {num_classes}. Received "
                f"in row {row}, word {place} ({words[place]!r}): {tags[place]!r}"
            )
        rows.append(np.array(found, "int32"))
    return rows


def learn_tags(y: Any, num_classes: int) -> list[str] | None:
    """Returns the different tags that are strings, sorted, or `None` without any.

    Args:
        y: List of lists of tags. Anything else has no tags.
        num_classes: Int, how many there have to be.

    Raises:
        ValueError: If there are more or fewer.
    """
    y = plain_columns(y)
    if not isinstance(y, (list, tuple)):
        return None
    rows = [row for row in y if isinstance(row, (list, tuple, np.ndarray))]
    names = sorted({tag for row in rows for tag in row if isinstance(tag, str)})
    if not names:
        return None
    if len(names) != num_classes:
        raise ValueError(
            "`y` must have `num_classes` different tags, or the model needs `class_names`. "
            f"Received: {len(names)} tags, {names[:10]}, and num_classes={num_classes}"
        )
    return names


def _index(tag, index, num_classes):
    if isinstance(tag, str):
        return index.get(tag)
    is_class = isinstance(tag, (int, np.integer)) and 0 <= tag < num_classes
    return int(tag) if is_class or tag == NO_LABEL else None


def token_labels(
    tags: Sequence[np.ndarray], word_index: np.ndarray, all_pieces: bool = False
) -> np.ndarray:
    """Returns the labels of tokens: -100 for ignored ones.

    Args:
        tags: List of int arrays for the windows, the class of each word of their sentence.
        word_index: Int array `(windows, length)`, as in `EncodedWords`.
        all_pieces: Bool, whether all tokens of a word have its label, or only the first one.
    """
    counts = word_index >= 0 if all_pieces else is_first_piece(word_index)
    labels = np.full(word_index.shape, NO_LABEL, "int32")
    for row, classes in enumerate(tags):
        labels[row, counts[row]] = classes[word_index[row, counts[row]]]
    return labels


def is_first_piece(word_index: Any, xp: ModuleType = np) -> Any:
    """Returns which tokens are the first of their word, bool `(batch, length)`.

    `word_index` is an array, or a tensor with `xp=tensorflow`.
    """
    before = xp.pad(word_index[:, :-1], [(0, 0), (1, 0)], constant_values=-1)
    return (word_index >= 0) & (word_index != before)
