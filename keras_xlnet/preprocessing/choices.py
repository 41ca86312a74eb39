"""Texts with choices: what users pass, arrays, and the most probable choice.

Exported directories contain this file (`serving/portable/`), so it does not import Keras.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.encoded import Encoded
from keras_xlnet.preprocessing.packing import (
    Layout,
    as_rows,
    gather,
    indices,
    pack,
    pair_parts,
    rows_of_lists,
    take,
)
from keras_xlnet.preprocessing.texts import read_columns
from keras_xlnet.preprocessing.words import marks
from keras_xlnet.results import Result

# <sep> after the text and after the choice, and <cls>.
NUM_SPECIAL = 3
# Stands for a blank in the graph.
_BLANK = "\0"
_FORMS = (("text", "choices"), ("text", "question", "choices"))


@dataclasses.dataclass(frozen=True, repr=False)
class Choice(Result):
    """The choice of a model.

    Args:
        index: Int, its place among the choices.
        text: String.
        score: Float, its probability.
        scores: Tuple of the probabilities of all choices.

    Example:

    >>> from keras_xlnet.preprocessing import Choice
    >>> Choice(1, "a mat", 0.81234, (0.18766, 0.81234))
    Choice(index=1, text='a mat', score=0.8123, scores=(0.1877, 0.8123))
    """

    index: int
    text: str
    score: float
    scores: tuple[float, ...]


def choice_columns(x: Any) -> dict[str, list[Any]]:
    """Returns a dict of `text`, a list of strings, and `choices`, a list of lists of strings.

    `choice_lists` are the choices without their questions.

    Args:
        x: A dict with the keys `text` and `choices` and optionally `question`; a tuple of the
            columns `(texts, choices)` or `(texts, questions, choices)`; or a list of rows
            `(text, choices)` or `(text, question, choices)`. A choice fills the blanks of its
            question, as in `answered`, or follows the question.

    Raises:
        ValueError: If something is not a string, the lengths differ or a text has no choices. The
            message names the row.
    """
    columns = read_columns(x, _FORMS)
    choices = given = columns["choices"]
    if "question" in columns:
        pairs = zip(columns["question"], given, strict=True)
        choices = [
            [answered(question, option) for option in options] for question, options in pairs
        ]
    return {"text": columns["text"], "choices": choices, "choice_lists": given}


def answered(question: str, choice: str) -> str:
    """Returns a question with a choice in all of its blanks, or after it if it has none.

    A blank is a run of `_` with no letter, digit or mark on either side: the
    `_` in "my_var", "name_" and "__init__" are not blanks.

    Source: `run_race.py` of the original, which puts the choice in place of every `_`.
    """
    filled, count = _blank_pattern().subn(lambda blank: choice, question)
    return filled if count else f"{question} {choice}"


@functools.cache
def _blank_pattern():
    in_word = rf"[\w{marks()}]"
    return re.compile(f"(?<!{in_word})_+(?!{in_word})")


def fill_blanks(question: tf.Tensor, choices: tf.Tensor) -> tf.Tensor:
    """Does what `answered` does in the TensorFlow graph.

    Args:
        question: Strings `(batch,)`, or a ragged tensor.
        choices: Strings `(batch, num_choices)`.

    Returns:
        Strings `(batch, num_choices)`.
    """
    # RE2 cannot look behind or ahead: neighbours are kept, and a neighbour that two blanks share is
    # found again by the second pass.
    other = rf"[^\pL\pN_{marks()}]"
    pattern = f"(^|{other})_+($|{other})"
    for _ in range(2):
        question = tf.strings.regex_replace(question, pattern, rf"\1{_BLANK}\2")
    parts = tf.strings.split(question, _BLANK)
    last = tf.expand_dims(parts.row_lengths() - 1, 1)
    position = tf.ragged.range(parts.row_lengths())
    is_last = tf.repeat(last[:, 0], parts.row_lengths()) == position.values

    def fill(choice):
        between = tf.where(is_last, "", tf.repeat(choice, parts.row_lengths()))
        filled = parts.with_values(tf.strings.join([parts.values, between]))
        filled = tf.strings.reduce_join(filled, axis=1)
        return tf.where(last[:, 0] > 0, filled, tf.strings.join([question, choice], " "))

    return tf.transpose(tf.map_fn(fill, tf.transpose(choices)))


def choice_labels(y: Any, choices: Sequence[Sequence[str]]) -> np.ndarray:
    """Returns the int32 index of the right choice of each text.

    Raises:
        ValueError: If the numbers of labels and texts differ, or one is not a choice. The
            message names the row.
    """
    labels = np.asarray(y)
    if labels.shape not in ((len(choices),), (len(choices), 1)) or labels.dtype.kind not in "iufb":
        raise ValueError(
            f"`y` must be the index of the right choice of each of {len(choices)} texts. "
            f"Received: shape {labels.shape}, dtype {labels.dtype}"
        )
    labels = labels.ravel()
    for row, (label, options) in enumerate(zip(labels, choices, strict=True)):
        if not 0 <= label < len(options) or label != int(label):
            raise ValueError(
                f"`y` must be indices of choices. Received in row {row}: {label}, for "
                f"{len(options)} choices"
            )
    return labels.astype("int32")


def encode_choices(
    x: Any,
    tokenizer: Any,
    layout: Layout,
    max_choice_length: int,
    as_original: bool = False,
    shorten: bool = True,
) -> Encoded:
    """Returns what `XLNetMultipleChoicePreprocessor.encode` does.

    Args:
        x, shorten: As in that method.
        tokenizer: An `XLNetTokenizer` or a `HostTokenizer`.
        layout: A `Layout`.
        max_choice_length, as_original: As in that class.
    """
    columns = choice_columns(x)
    counts = [len(options) for options in columns["choices"]]
    choices = [option for options in columns["choices"] for option in options]
    features, num_cut = pack_choices(
        tokenizer.encode(columns["text"]),
        tokenizer.encode(choices),
        np.array(counts, "int64"),
        layout,
        max_choice_length,
        as_original,
        np,
        shorten,
    )
    padding = {
        "token_ids": layout.padding_token_id,
        "segment_ids": layout.padding_segment_id,
        "padding_mask": False,
    }
    lists = {key: rows_of_lists(value, counts, padding[key]) for key, value in features.items()}
    return Encoded(lists, columns, num_cut=num_cut)


def pack_choices(
    text_ids: Any,
    choice_ids: Any,
    counts: Any,
    layout: Layout,
    max_choice_length: int,
    as_original: bool,
    xp: ModuleType,
    shorten: bool = False,
) -> tuple[dict[str, Any], Any]:
    """Returns the features of `counts` choices for each text, and how many tokens are truncated.

    Args:
        text_ids, choice_ids: What `as_rows` takes.
        counts: Int64 `(texts,)`.
        layout, max_choice_length, as_original: As in `encode_choices`.
        xp: `numpy` or `tensorflow`.
        shorten: As in `pack`.
    """
    texts, choices = as_rows(text_ids), as_rows(choice_ids)
    row = xp.repeat(indices(counts, xp), counts)
    choice = xp.minimum(choices.lengths, max_choice_length)
    given = gather(texts.lengths, row, xp) + choices.lengths
    choices = take(choices, indices(row, xp), choices.lengths - choice, choice, xp)
    if as_original:
        texts, row = _with_leftovers(texts, choices, counts, layout), indices(row, xp)
    text = xp.minimum(gather(texts.lengths, row, xp), layout.sequence_length - NUM_SPECIAL - choice)
    # Unlike a pair, a choice without tokens has its <sep> too.
    parts = pair_parts([take(texts, row, 0, text, xp)], [choices], xp.ones_like(row), layout, xp)
    return pack(parts, layout, xp, shorten), xp.maximum(given - text - choice, 0)


def _with_leftovers(texts, choices, counts, layout):
    """The text of each choice, with what the original leaves in it of the choices before.

    It runs eagerly: no useful model needs it in a graph.
    """
    sep, cls = layout.sep_token_id, layout.cls_token_id
    texts, choices = (
        np.split(np.asarray(rows.values), np.cumsum(rows.lengths)) for rows in (texts, choices)
    )
    found, place = [], 0
    for text, count in zip(texts, np.asarray(counts), strict=False):
        for choice in choices[place : place + count]:
            found.append(text)
            if len(text) + len(choice) <= layout.sequence_length - NUM_SPECIAL:
                text = np.concatenate([text, [sep], choice, [sep, cls]]).astype("int32")
        place += count
    return as_rows(found)


def most_probable_choices(probabilities: np.ndarray, encoded: Encoded) -> list[Choice]:
    """Returns the most probable `Choice` for each text.

    Args:
        probabilities: Float array `(texts, choices)`.
        encoded: What `encode_choices` returned.
    """
    pairs = zip(encoded.columns["choice_lists"], probabilities, strict=True)
    return [_choice(choices, row[: len(choices)]) for choices, row in pairs]


def _choice(choices, scores):
    index = int(np.argmax(scores))
    return Choice(index, choices[index], float(scores[index]), tuple(map(float, scores)))
