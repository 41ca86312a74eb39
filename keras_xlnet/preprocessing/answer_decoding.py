"""From the beams of `XLNetQuestionAnswering` to the texts of answers."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from keras_xlnet.preprocessing.answer_windows import AnswerWindows
from keras_xlnet.results import Result, color_of, marked_html, short, table, titled

# The score of a question for which no beam is an answer, as in the original.
_NO_SCORE = -1e6


@dataclasses.dataclass(frozen=True, repr=False)
class Answer(Result):
    """A part of a context as the answer to a question.

    Args:
        text: String, `context[start:end]`.
        start: Int, the first character.
        end: Int, the character after the last one.
        probability: Float, among the answers that are returned for the question.
        start_log_prob, end_log_prob: Floats, the log-probabilities of the model.

    Example:

    >>> from keras_xlnet.preprocessing import Answer
    >>> Answer("a mat", 15, 20, 1.0, -0.1, -0.2)
    Answer(text='a mat', start=15, end=20, probability=1.0, start_log_prob=-0.1, end_log_prob=-0.2)
    """

    text: str
    start: int
    end: int
    probability: float
    start_log_prob: float
    end_log_prob: float


@dataclasses.dataclass(frozen=True, repr=False)
class AnswerPrediction(Result):
    """The answer of a model to a question.

    Args:
        answers: Tuple of `Answer`, the most probable one first. Empty if the model found none.
        null_score: Float. The higher, the more probable it is that there is no answer.
            `keras_xlnet.evaluation.answer_scores` finds the threshold for a data set.
        null_threshold: Optional float, the largest null score with which `text` is an answer.
            `None`: it always is.
        context: Optional string, the text that the answers are parts of. Notebooks show it, with
            the most probable answer marked.

    Example:

    >>> from keras_xlnet.preprocessing import Answer, AnswerPrediction
    >>> answer = Answer("a mat", 15, 20, 1.0, -0.1, -0.2)
    >>> found = AnswerPrediction((answer,), null_score=2.5)
    >>> found
    AnswerPrediction of 'a mat', null score 2.5
      probability  start  end  text
              1.0     15   20  'a mat'
    >>> found.text, found.text_at(3.0), found.text_at(0.0)
    ('a mat', 'a mat', '')
    """

    answers: tuple[Answer, ...]
    null_score: float
    null_threshold: float | None = None
    context: str | None = None

    def _repr_html_(self) -> str | None:
        if self.context is None:
            return None
        spans = []
        if self.text:
            best = self.answers[0]
            spans = [(best.start, best.end, f"{best.probability:.2f}", color_of("answer"))]
        return marked_html(self.context, spans)

    def __repr__(self) -> str:
        title = f"AnswerPrediction of {short(self.text)}, null score {short(self.null_score)}"
        names = ("probability", "start", "end", "text")
        columns = {name: [getattr(answer, name) for answer in self.answers] for name in names}
        return titled(title, table(columns)) if self.answers else title

    @property
    def text(self) -> str:
        """String, the most probable answer.

        `""` if the context has none, or the null score is above `null_threshold`.
        """
        return self.text_at(self.null_threshold)

    def text_at(self, null_threshold: float | None) -> str:
        """Returns `text` for another threshold."""
        is_dropped = null_threshold is not None and self.null_score > null_threshold
        return self.answers[0].text if self.answers and not is_dropped else ""


def decode_answers(
    windows: AnswerWindows,
    outputs: Mapping[str, np.ndarray],
    num_answers: int = 5,
    max_answer_length: int = 64,
    as_original: bool = False,
    null_threshold: float | None = None,
) -> list[AnswerPrediction]:
    """Returns the most probable answers to each question, over all windows of its context.

    A beam is an answer if it begins and ends in the context, its end is not before its start, it
    has at most `max_answer_length` tokens, and no other window has more context around its start.

    Args:
        windows: The `AnswerWindows` that the model was given.
        outputs: The outputs of the model for `windows.features`.
        num_answers: Int, the largest number of answers, all with different texts.
        max_answer_length: Int, in tokens.
        as_original: Bool, whether to reproduce two mistakes of the original: the last token of a
            window is never part of an answer, and a single space is an answer, `""`.
        null_threshold: Optional float, the threshold of the predictions.

    Returns:
        A list of `AnswerPrediction`, one per question.

    Source: `write_predictions` of the original's `run_squad.py`.
    """
    has_most_context = windows.has_most_context()
    found: list[list[Answer]] = [[] for _ in windows.contexts]
    for window, row in enumerate(windows.row):
        beams = _beams(outputs, window)
        last = windows.first_position[window] + windows.num_tokens[window] - 1 - as_original
        for start_log_prob, end_log_prob, start, end in beams:
            in_context = windows.first_position[window] <= start <= end <= last
            is_short = end - start < max_answer_length
            if in_context and is_short and has_most_context[window, start]:
                answer = _answer(windows, window, (start, end), (start_log_prob, end_log_prob))
                if answer.text or as_original:
                    found[row].append(answer)
    null_scores = np.full(len(found), np.inf)
    np.minimum.at(null_scores, windows.row, np.asarray(outputs["cls_logits"], "float64"))
    return [
        AnswerPrediction(_best(answers, num_answers), float(score), null_threshold, context)
        for answers, score, context in zip(found, null_scores, windows.contexts, strict=True)
    ]


def _beams(outputs, window):
    """Start and end of each beam of a window, with their log-probabilities."""
    starts = outputs["start_top_index"][window]
    ends = outputs["end_top_index"][window].reshape(len(starts), -1)
    end_log_probs = outputs["end_top_log_probs"][window].reshape(ends.shape)
    for i, start in enumerate(starts):
        for end, end_log_prob in zip(ends[i], end_log_probs[i], strict=True):
            start_log_prob = outputs["start_top_log_probs"][window][i]
            yield float(start_log_prob), float(end_log_prob), int(start), int(end)


def _answer(windows, window, tokens, log_probs):
    start, end = windows.characters(window, *tokens)
    text = windows.contexts[windows.row[window]][start:end]
    # A space at the end is not part of the answer.
    end -= len(text) - len(text.rstrip())
    return Answer(text.rstrip(), start, end, 0.0, *log_probs)


def _best(answers, num_answers):
    """The most probable answers with different texts, with their probabilities."""
    # Sorting is stable: the first of equal answers stays first.
    ranked = sorted(answers, key=_score, reverse=True)
    different = list({answer.text: answer for answer in reversed(ranked)}.values())
    best = sorted(different, key=lambda answer: ranked.index(answer))[:num_answers]
    if not best:
        return ()
    scores = np.array([_score(answer) for answer in best])
    weights = np.exp(scores - scores.max())
    probabilities = weights / weights.sum()
    return tuple(
        dataclasses.replace(answer, probability=float(p))
        for answer, p in zip(best, probabilities, strict=True)
    )


def _score(answer):
    return answer.start_log_prob + answer.end_log_prob
