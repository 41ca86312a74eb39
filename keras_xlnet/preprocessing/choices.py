"""Reads and checks texts with choices in all forms that users pass."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.texts import read_columns
from keras_xlnet.preprocessing.words import marks

# Stands for a blank in the graph.
_BLANK = "\0"
_FORMS = (("text", "choices"), ("text", "question", "choices"))


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
