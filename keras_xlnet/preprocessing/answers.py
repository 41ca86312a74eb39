"""Questions, contexts and their answers in the forms that users have them, and their checks."""

import dataclasses
from typing import Any

import numpy as np

from keras_xlnet.preprocessing.texts import columns_of_rows, has_text


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


def is_questions(x: Any) -> bool:
    """Whether `x` are questions with contexts, as text."""
    return has_text(x, "question", "context")


def question_columns(x: Any) -> dict[str, list[str]]:
    """Returns a dict of two lists of strings, `question` and `context`.

    Args:
        x: A dict with these keys, a tuple of the two columns, or a list of pairs `(question,
            context)`.

    Raises:
        ValueError: If something is not a string or is empty, or the lengths differ. The message
            names the row.
    """
    if isinstance(x, dict):
        if set(x) != {"question", "context"}:
            raise ValueError(
                f'`x` must be a dict with the keys "question" and "context". Received: {sorted(x)}'
            )
        columns = x
    elif isinstance(x, tuple) and len(x) == 2:
        columns = {"question": x[0], "context": x[1]}
    else:
        rows = columns_of_rows(x, "(question, context)")
        columns = dict(zip(("question", "context"), rows, strict=True))
    lists = {key: _strings(key, column) for key, column in columns.items()}
    lengths = {key: len(column) for key, column in lists.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"`question` and `context` must have equal lengths. Received: {lengths}")
    return lists


def _strings(name, column):
    if isinstance(column, (str, bytes)):
        raise ValueError(f"`{name}` must be a batch of texts: pass a list. Received: {column!r}")
    texts = []
    for row, text in enumerate(np.asarray(column, dtype=object)):
        text = text.decode() if isinstance(text, bytes) else text
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"`{name}` must be texts. Received in row {row}: {text!r}")
        texts.append(text)
    return texts


def gold_answers(y: Any, contexts: list[str]) -> list[GoldAnswer | None]:
    """Returns the checked answer to learn for each question, or `None` without an answer.

    Args:
        y: List with one entry a question: a string (its first place in the context is taken), a
            tuple `(start, text)`, a dict with the keys `text` and `answer_start` as in SQuAD, or a
            list of these (the first is used); or a dict of two lists, as SQuAD has on the
            Hugging Face Hub. `None`, `""` or empty lists: no answer.
        contexts: List of strings.

    Raises:
        ValueError: If the lengths differ, or an answer is not in its context. The message names
            the row.
    """
    if isinstance(y, (str, bytes, dict)) or not hasattr(y, "__len__") or len(y) != len(contexts):
        given = f"{len(y)} of them" if hasattr(y, "__len__") else repr(y)
        raise ValueError(
            f"`y` must be a list with the answer of each of the {len(contexts)} questions. "
            f"Received: {given}"
        )
    pairs = zip(y, contexts, strict=True)
    return [_gold(row, answer, context) for row, (answer, context) in enumerate(pairs)]


def has_unanswered(y: Any) -> bool:
    """Whether some questions have no answer, in the forms that `gold_answers` takes."""
    return isinstance(y, (list, tuple, np.ndarray)) and not all(map(_first_answer, y))


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
