"""The most probable valid sequence of tags, and the entities of a sequence.

A tag is `O`, or a letter and a type, as `B-person`. The schemes:

    bio      an entity is B I I ..., of any length
    bioes    an entity is S, or B I I ... E
    io       every sequence is valid; neighbours of the same type are one entity

Source: Ramshaw and Marcus 1995, "Text Chunking using Transformation-Based Learning"; Ratinov and
Roth 2009, "Design Challenges and Misconceptions in Named Entity Recognition", where BIOES with the
letters L and U for E and S is called BILOU.
"""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_xlnet.arguments import check_choice
from keras_xlnet.results import Result

SCHEMES = ("bio", "bioes", "io")
# The forms of tags, for messages, and the letters.
_FORMS = {"bio": ("O, B-type or I-type", "BI"), "bioes": ("O or [BIES]-type", "BIES")}
_TAG = re.compile(r"([BIES])-(.+)", re.DOTALL)
# Stands for a log-probability of -inf: while decoding, only invalid tags have -inf.
_LOG_ZERO = -1e30


@dataclasses.dataclass(frozen=True, repr=False)
class Entity(Result):
    """A part of a sentence with the entity type that a model found.

    Args:
        type: String, such as `"person"` of the tags `"B-person"` and `"I-person"`.
        text: String. The words of a list are joined by spaces.
        start: Int, the first character of a string, the first word of a list.
        end: Int, the character or the word after the last one.
        score: Float, the mean probability of the tags of its words.

    Example:

    >>> from keras_xlnet.preprocessing import Entity
    >>> Entity("place", "Rome", 10, 14, 0.91234)
    Entity(type='place', text='Rome', start=10, end=14, score=0.9123)
    """

    type: str
    text: str
    start: int
    end: int
    score: float


def split_tag(tag: Any) -> tuple[str, str] | None:
    """Returns the letter and the type of a tag.

    Args:
        tag: String, `"O"`, or one of the letters B, I, E and S, a hyphen and a type.

    Returns:
        Two strings; the type of `"O"` is `""`. `None` for other forms.

    Example:

    >>> split_tag = keras_xlnet.preprocessing.tags.split_tag
    >>> split_tag("B-person"), split_tag("O"), split_tag("NOUN")
    (('B', 'person'), ('O', ''), None)
    """
    if not isinstance(tag, str):
        return None
    found = _TAG.fullmatch(tag)
    if found:
        return found[1], found[2]
    return ("O", "") if tag == "O" else None


def entity_types(tags: Sequence[Any]) -> list[str] | None:
    """Returns the entity types of tags, `None` if some are not entity tags.

    Example:

    >>> entity_types = keras_xlnet.preprocessing.tags.entity_types
    >>> entity_types(["O", "B-person", "I-person"]), entity_types(["O", "NOUN"])
    (['person'], None)
    """
    parts = [split_tag(tag) for tag in tags]
    if any(part is None for part in parts):
        return None
    return [*dict.fromkeys(part[1] for part in parts if part and part[1])]


def detect_scheme(tags: Sequence[str]) -> str:
    """Returns the scheme of a set of tags.

    It is `"bioes"` if there is an E or an S, otherwise `"bio"` if there is a B. It is `"io"` if
    there is none of them, and also if a tag has another form or could not be in any valid
    sequence, such as an I without a B of its type: such a tag would never be predicted.

    Args:
        tags: Strings, the different tags.

    Returns:
        `"bio"`, `"bioes"` or `"io"`.

    Example:

    >>> detect_scheme = keras_xlnet.preprocessing.tags.detect_scheme
    >>> detect_scheme(["B-person", "I-person", "O"]), detect_scheme(["NOUN", "VERB"])
    ('bio', 'io')
    """
    parts = [split_tag(tag) for tag in tags]
    types: dict[str, set[str]] = {letter: set() for letter in "OBIES"}
    for part in parts:
        if part is None:
            return "io"
        types[part[0]].add(part[1])
    if types["E"] or types["S"]:
        is_complete = types["B"] == types["E"] and types["I"] <= types["B"]
        return "bioes" if is_complete else "io"
    return "bio" if types["B"] and types["I"] <= types["B"] else "io"


def allowed_transitions(
    tags: Sequence[str], scheme: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns which tags can begin, follow each other in and end a valid sequence.

    Args:
        tags: `n` strings, the different tags. For `"io"` they can have any form.
        scheme: `"bio"`, `"bioes"` or `"io"`.

    Returns:
        Three bool arrays: `start` `(n,)`; `transitions` `(n, n)`, whether the tag of the column can
        follow the tag of the row; `end` `(n,)`.

    Raises:
        ValueError: If there is no tag, a tag is not one of the scheme, or the scheme is unknown.

    Example:

    >>> tags = ["O", "B-x", "I-x"]
    >>> start, transitions, end = keras_xlnet.preprocessing.tags.allowed_transitions(tags, "bio")
    >>> start.tolist()
    [True, True, False]
    >>> [tags[i] for i in np.flatnonzero(transitions[0])]  # After O.
    ['O', 'B-x']
    """
    check_choice("scheme", scheme, SCHEMES)
    if not len(tags):
        raise ValueError("`tags` must have at least one tag. Received: none")
    size = len(tags)
    if scheme == "io":
        return np.ones(size, bool), np.ones((size, size), bool), np.ones(size, bool)
    letters, types = _letters_and_types(tags, scheme)
    same_type = types[:, None] == types[None, :]
    continues = np.isin(letters, ["I", "E"])
    continued = np.isin(letters, ["B", "I"])
    inside = continued[:, None] & continues[None, :] & same_type
    between = ~continues[None, :]
    if scheme == "bio":
        return ~continues, inside | between, np.ones(size, bool)
    return ~continues, inside | (~continued[:, None] & between), ~continued


def decode_tags(
    log_probabilities: np.ndarray, tags: Sequence[str], scheme: str
) -> tuple[list[int], float]:
    """Returns the most probable sequence of tags among those that are valid in a scheme.

    It is the sequence of the most probable tags if that is valid; otherwise the Viterbi algorithm
    finds it.

    Args:
        log_probabilities: Float array `(words, n)`, for each word of a sentence. Logits give the
            same sequence.
        tags: `n` strings, what the columns are. For `"io"` they can have any form.
        scheme: `"bio"`, `"bioes"` or `"io"`.

    Returns:
        A list of ints, the index of the tag of each word; and a float, the sum of their
        `log_probabilities`.

    Raises:
        ValueError: If an argument is not as above, or if no sequence of that many words is valid.

    Example:

    >>> probabilities = np.array([[0.5, 0.1, 0.4], [0.1, 0.3, 0.6]])  # "O I-x" is not valid.
    >>> chosen, log_prob = keras_xlnet.preprocessing.tags.decode_tags(
    ...     np.log(probabilities), ["O", "I-x", "B-x"], "bio")
    >>> chosen, round(float(np.exp(log_prob)), 2)
    ([0, 2], 0.3)

    Source: Viterbi 1967, "Error Bounds for Convolutional Codes and an Asymptotically Optimum
    Decoding Algorithm"; Forney 1973, "The Viterbi Algorithm".
    """
    scores = _check_scores(log_probabilities, len(tags))
    start, transitions, end = allowed_transitions(tags, scheme)
    if not len(scores):
        return [], 0.0
    # Most sentences need no search.
    chosen = scores.argmax(axis=1)
    pairs = transitions[chosen[:-1], chosen[1:]]
    if not (start[chosen[0]] and pairs.all() and end[chosen[-1]]):
        chosen = _viterbi(np.maximum(scores, _LOG_ZERO), start, transitions, end)
    if chosen is None:
        raise ValueError(
            f"`tags` must allow a sequence of {len(scores)} words in scheme={scheme!r}. Received: "
            f"{list(tags)[:10]}"
        )
    return chosen.tolist(), float(scores[np.arange(len(chosen)), chosen].sum())


def tag_spans(tags: Sequence[str], scheme: str = "bio") -> list[tuple[str, int, int]]:
    """Returns the entities of a sequence of tags, valid or not.

    A word continues the previous entity if its tag is an I or an E, the previous tag is a B or an
    I, and both have the same type. Otherwise all tags but O begin an entity.

    Args:
        tags: Strings, one per word.
        scheme: `"bio"` and `"bioes"` for the rule above. With `"io"` letters do not matter:
            neighbours of the same type are one entity.

    Returns:
        A list of `(type, start, end)`, in words, in their order; `end` is the word after the last.

    Raises:
        ValueError: If a tag is not O or one of B, I, E and S with a type, or the scheme is unknown.

    Example:

    >>> keras_xlnet.preprocessing.tags.tag_spans(["I-person", "I-person", "O", "B-place"])
    [('person', 0, 2), ('place', 3, 4)]

    Source: `get_entities` of seqeval 1.2.2 in its default mode, which counts as `conlleval` does.
    """
    check_choice("scheme", scheme, SCHEMES)
    spans: list[tuple[str, int, int]] = []
    letter, type_ = "O", ""
    for word, tag in enumerate(tags):
        before, type_before = letter, type_
        parts = split_tag(tag)
        if parts is None:
            raise ValueError(
                "`tags` must be O, or one of B, I, E and S with a type, as B-person. Received at "
                f"word {word}: {tag!r}"
            )
        letter, type_ = parts
        if letter == "O":
            continue
        continues = scheme == "io" or (before in "BI" and letter in "IE")
        # The type of an O is "", unlike the type of any entity.
        if continues and type_ == type_before:
            spans[-1] = (type_, spans[-1][1], word + 1)
        else:
            spans.append((type_, word, word + 1))
    return spans


def _letters_and_types(tags, scheme):
    """Two arrays of strings."""
    form, allowed = _FORMS[scheme]
    letters, types = [], []
    for index, tag in enumerate(tags):
        part = split_tag(tag)
        if part is None or part[0] not in "O" + allowed:
            raise ValueError(
                f"`tags` must be {form} for scheme={scheme!r}. Received at index {index}: {tag!r}"
            )
        letters.append(part[0])
        types.append(part[1])
    return np.array(letters), np.array(types)


def _check_scores(log_probabilities, num_tags):
    scores = np.asarray(log_probabilities, "float64")
    if scores.ndim != 2 or scores.shape[1] != num_tags:
        raise ValueError(
            f"`log_probabilities` must have shape (words, {num_tags}), one column a tag. Received: "
            f"shape {scores.shape}"
        )
    wrong = np.isnan(scores) | np.isposinf(scores)
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        raise ValueError(
            "`log_probabilities` must be numbers, or -inf. Received in row "
            f"{row}: {scores[row][wrong[row]][0]}"
        )
    return scores


def _viterbi(scores, start, transitions, end):
    """The best valid sequence, an int array `(words,)`; `None` if none is valid."""
    log_start, log_transitions, log_end = (
        np.where(allowed, 0.0, -np.inf) for allowed in (start, transitions, end)
    )
    totals = log_start + scores[0]
    origins = np.zeros(scores.shape, int)
    for word in range(1, len(scores)):
        candidates = totals[:, None] + log_transitions
        origins[word] = candidates.argmax(axis=0)
        totals = candidates.max(axis=0) + scores[word]
    totals = totals + log_end
    if np.isneginf(totals.max()):
        return None
    chosen = np.zeros(len(scores), int)
    chosen[-1] = totals.argmax()
    for word in range(len(scores) - 1, 0, -1):
        chosen[word - 1] = origins[word, chosen[word]]
    return chosen
