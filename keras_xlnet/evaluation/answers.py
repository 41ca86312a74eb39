"""Exact match and F1 of answers to questions, as the official scripts of SQuAD count them."""

import collections
import dataclasses
import re
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_xlnet.preprocessing.answer_decoding import AnswerPrediction
from keras_xlnet.preprocessing.answers import answers_of

_ARTICLES = re.compile(r"\b(a|an|the)\b")


@dataclasses.dataclass(frozen=True)
class AnswerScores:
    """Scores of answers, in percent.

    Args:
        exact, f1: Floats, over all questions. Each has its most probable answer, or none if its
            null score is above the given threshold.
        best_exact, best_f1: Floats, with the best threshold for these questions.
        best_exact_threshold, best_f1_threshold: Floats, these thresholds: `null_threshold` of
            `XLNetQuestionAnswering.answer`. 0, as in the original, if leaving all questions
            unanswered is as good.
        has_answer_exact, has_answer_f1: Floats, over the questions that have an answer, each with
            its most probable answer.
        num_questions: Int.
    """

    exact: float
    f1: float
    best_exact: float
    best_exact_threshold: float
    best_f1: float
    best_f1_threshold: float
    has_answer_exact: float
    has_answer_f1: float
    num_questions: int


def answer_scores(
    predictions: Sequence[Any], answers: Sequence[Any], threshold: float | None = None
) -> AnswerScores:
    """Returns the scores of SQuAD 1.1 and 2.0.

    A prediction gets its best score against all answers that people gave. Case, punctuation,
    articles and white space do not matter.

    Args:
        predictions: List of `AnswerPrediction`, from `XLNetQuestionAnswering.answer`; or of
            strings, `""` for no answer.
        answers: List with the answers that people gave to each question: a list of strings,
            `(start, text)` or the dicts of SQuAD; one of these; or a dict of lists, as SQuAD has on
            the Hugging Face Hub. `None` or empty lists for a question without an answer.
        threshold: Optional float. Questions with a null score above it get no answer. The default
            is the `null_threshold` of the predictions; without it, all questions get their most
            probable answer.

    Returns:
        `AnswerScores`.

    Raises:
        ValueError: If there are no questions, the lengths differ, an answer has another form, or
            there is a threshold without null scores.

    Example:

    >>> scores = keras_xlnet.evaluation.answer_scores(
    ...     ["The cat.", "on the mat", ""], [["a cat"], ["the red mat"], []])
    >>> round(scores.exact, 1), round(scores.f1, 1)
    (66.7, 83.3)

    Source: Rajpurkar et al. 2018, "Know What You Don't Know", and its `evaluate-v2.0.py`;
    `squad_utils.py` of the original for the thresholds.
    """
    if len(predictions) != len(answers) or not len(answers):
        raise ValueError(
            "`predictions` and `answers` must have the same nonzero length. Received: "
            f"{len(predictions)} and {len(answers)}"
        )
    texts = [_best_text(prediction) for prediction in predictions]
    answers = [answers_of(row) for row in answers]
    gold = [_gold_texts(i, row) for i, row in enumerate(answers)]
    has_answer = np.array([bool(row) for row in answers])
    pairs = list(zip(texts, gold, strict=True))
    exact = np.array([max(_exact(text, answer) for answer in row) for text, row in pairs])
    f1 = np.array([max(_f1(text, answer) for answer in row) for text, row in pairs])
    nulls = _null_scores(predictions, threshold)
    answered = np.array([bool(text) for text in texts])
    dropped = nulls > _thresholds(predictions, threshold)
    best_exact, exact_threshold = _best_threshold(exact, nulls, has_answer, answered)
    best_f1, f1_threshold = _best_threshold(f1, nulls, has_answer, answered)
    return AnswerScores(
        exact=_percent(np.where(dropped, ~has_answer, exact)),
        f1=_percent(np.where(dropped, ~has_answer, f1)),
        best_exact=best_exact,
        best_exact_threshold=exact_threshold,
        best_f1=best_f1,
        best_f1_threshold=f1_threshold,
        has_answer_exact=_percent(exact[has_answer]),
        has_answer_f1=_percent(f1[has_answer]),
        num_questions=len(gold),
    )


def normalize_answer(text: str) -> str:
    """Returns an answer in lower case, without punctuation, articles and extra white space.

    Example:

    >>> keras_xlnet.evaluation.normalize_answer("The  Quick, brown fox.")
    'quick brown fox'
    """
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(_ARTICLES.sub(" ", text).split())


def _best_text(prediction):
    """The most probable answer, for any null score."""
    if isinstance(prediction, AnswerPrediction):
        return prediction.text_at(None)
    return getattr(prediction, "text", prediction)


def _thresholds(predictions, threshold):
    if threshold is not None:
        return threshold
    given = [getattr(prediction, "null_threshold", None) for prediction in predictions]
    return np.array([np.inf if one is None else one for one in given])


def _gold_texts(row, answers):
    """The texts with words, or `""` if there are none."""
    texts = [_text(answer) for answer in answers]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(
            "`answers` must be strings, (start, text), SQuAD's dicts, or lists of these. "
            f"Received in row {row}: {answers!r}"
        )
    return [text for text in texts if normalize_answer(text)] or [""]


def _text(answer):
    if isinstance(answer, dict):
        return answer.get("text")
    return answer[1] if isinstance(answer, tuple) and len(answer) == 2 else answer


def _exact(text, gold):
    return float(normalize_answer(text) == normalize_answer(gold))


def _f1(text, gold):
    words, gold_words = normalize_answer(text).split(), normalize_answer(gold).split()
    if not words or not gold_words:
        return float(words == gold_words)
    common = sum((collections.Counter(words) & collections.Counter(gold_words)).values())
    return 2 * common / (len(words) + len(gold_words))


def _null_scores(predictions, threshold):
    if all(hasattr(prediction, "null_score") for prediction in predictions):
        return np.array([prediction.null_score for prediction in predictions])
    if threshold is not None:
        raise ValueError("`threshold` needs the null scores of `answer`. Received: only texts")
    return np.zeros(len(predictions))


def _best_threshold(scores, nulls, has_answer, answered):
    """The best score in percent and its threshold: questions up to it keep their answers."""
    # The score that a question adds if it keeps its answer.
    gains = np.where(has_answer, scores, -answered.astype(float))
    thresholds, group = np.unique(nulls, return_inverse=True)
    # Questions with the same null score keep their answers together.
    totals = np.cumsum(np.bincount(group, gains)) + (~has_answer).sum()
    best = int(np.argmax(totals))
    if totals[best] <= (~has_answer).sum():  # Leaving all questions unanswered is as good.
        return 100 * float(np.mean(~has_answer)), 0.0
    return 100 * float(totals[best]) / len(scores), float(thresholds[best])


def _percent(scores):
    return 100 * float(np.mean(scores)) if len(scores) else 0.0
