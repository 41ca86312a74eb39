"""Reads and checks questions, contexts and answers in all forms that users pass."""

import dataclasses
from typing import Any

import numpy as np

from keras_xlnet.arguments import check_count
from keras_xlnet.preprocessing.texts import read_columns
from keras_xlnet.tokenizers.text_columns import plain_columns


@dataclasses.dataclass(frozen=True)
class GoldAnswer:
    """An answer that people gave.

    Args:
        text: String.
        start: Int, where it begins in the context, in characters.
    """

    text: str
    start: int

    @property
    def end(self) -> int:
        """Int, the character after the last one of the answer."""
        return self.start + len(self.text)


def question_columns(x: Any) -> dict[str, list[str]]:
    """Returns a dict of two lists of strings, `question` and `context`.

    Args:
        x: A dict with these keys, a tuple of the two columns, or a list of pairs `(question,
            context)`. A context may be empty: it has no answer.

    Raises:
        ValueError: If something is not a string, a question is empty, or the lengths differ. The
            message names the row.
    """
    columns = read_columns(x, [("question", "context")])
    for row, question in enumerate(columns["question"]):
        if not question.strip():
            raise ValueError(f"`question` must be texts. Received in row {row}: {question!r}")
    return columns


def gold_answers(y: Any, contexts: list[str]) -> list[GoldAnswer | None]:
    """Returns the checked answer to learn for each question, or `None` without an answer.

    Args:
        y: List with one entry per question: a string (its first occurrence in the context), a
            tuple `(start, text)`, a dict with the keys `text` and `answer_start` as in SQuAD, or a
            list of these (the first is used); or a dict of two lists, as SQuAD has on the
            Hugging Face Hub. `None`, `""` or empty lists: no answer.
        contexts: List of strings.

    Raises:
        ValueError: If the lengths differ, or an answer is not in its context. The message names
            the row.
    """
    asked = f"`y` must be a list with the answer of each of the {len(contexts)} questions. "
    check_count(y, len(contexts), f"{asked}Received: ", " of them")
    pairs = zip(y, contexts, strict=True)
    return [_gold(row, answer, context) for row, (answer, context) in enumerate(pairs)]


def has_unanswered(y: Any) -> bool:
    """Whether some questions have no answer, in the forms that `gold_answers` takes."""
    y = plain_columns(y)
    return isinstance(y, (list, tuple)) and not all(map(_first_answer, y))


def _first_answer(answers):
    """The answer that is learned, or `None`."""
    found = answers_of(answers)
    return found[0] if found and found[0] is not None and found[0] != "" else None


def answers_of(answers: Any) -> list[Any]:
    """Returns the answers to one question as a list, in the forms that `gold_answers` takes.

    Args:
        answers: One answer, a list of them, a dict of equally long lists, or `None`.
    """
    if isinstance(answers, dict) and isinstance(answers.get("text"), (list, tuple, np.ndarray)):
        columns = {key: list(answers[key]) for key in ("text", "answer_start") if key in answers}
        if len({*map(len, columns.values())}) == 1:
            rows = zip(*columns.values(), strict=True)
            return [dict(zip(columns, row, strict=True)) for row in rows]
    if isinstance(answers, (list, np.ndarray)):
        return list(answers)
    return [] if answers is None or isinstance(answers, str) and not answers else [answers]


def _gold(row, answer, context):
    answer = _first_answer(answer)
    if answer is None:
        return None
    if isinstance(answer, dict) and {"text", "answer_start"} <= set(answer):
        answer = (answer["answer_start"], answer["text"])
    if isinstance(answer, str):
        answer = (context.find(answer), answer)
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], str):
        raise ValueError(
            "`y` must be answers: strings, (start, text), SQuAD's dicts, or lists of these, also "
            "in SQuAD's dicts. "
            f"Received in row {row}: {answer!r}"
        )
    gold = GoldAnswer(answer[1], int(answer[0]))
    there = context[gold.start : gold.end] if gold.start >= 0 else "no such text"
    if not gold.text or there != gold.text:
        raise ValueError(
            f"`y` must have answers that are in their contexts. Received in row {row}: "
            f"{gold.text!r} at character {gold.start}, where the context has {there!r}"
        )
    return gold
