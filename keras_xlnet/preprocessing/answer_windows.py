"""The windows of contexts in which a model looks for answers, and the way back to the text.

Exported directories contain this file (`serving/portable/`), so it does not import Keras.
"""

import dataclasses
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from keras_xlnet.preprocessing.answers import GoldAnswer, question_columns
from keras_xlnet.preprocessing.encoded import Encoded
from keras_xlnet.preprocessing.packing import (
    Layout,
    Rows,
    as_int32,
    as_rows,
    gather,
    pack,
    pair_parts,
    plan_windows,
    ranges,
    starts,
    take,
    window_of_most_context,
)

# <sep> after the context and after the question, and <cls>.
NUM_SPECIAL = 3
_SPACE = "\u2581"  # The piece for a space.
_LABELS = ("start_positions", "end_positions", "is_impossible")


@dataclasses.dataclass(frozen=True, repr=False)
class AnswerWindows(Encoded):
    """Questions with windows of their contexts as arrays, with the positions of tokens in the text.

    A context that is longer than a model takes is divided into overlapping windows. `features` has
    one row per window.

    Args:
        features: Dict of the inputs of `XLNetQuestionAnswering`: `token_ids`, `segment_ids`,
            `padding_mask` and `paragraph_mask` `(windows, length)`, `cls_index` `(windows,)`.
        columns: Dict of `question` and `context`, lists of strings.
        row: Int array `(windows,)`, the question of each window, in order.
        first_position: Int array `(windows,)`, where in the window its first context token is.
        first_token: Int array `(windows,)`, which token of the context that is.
        num_tokens: Int array `(windows,)`, the tokens of the context in the window.
        token_offsets: List of int arrays `(tokens, 2)`, one per question: start and end of each
            token of the context, in characters.
    """

    row: np.ndarray
    _: dataclasses.KW_ONLY
    first_position: np.ndarray
    first_token: np.ndarray
    num_tokens: np.ndarray
    token_offsets: list[np.ndarray]

    @property
    def contexts(self) -> list[str]:
        """List of strings, one for each question."""
        return self.columns["context"]

    def labels(self, answers: Sequence[GoldAnswer | None]) -> dict[str, np.ndarray]:
        """Returns the labels of the windows, as `XLNetQuestionAnswering` takes them.

        A window without the whole answer has none: its positions are the positions of `<cls>`, and
        `is_impossible` is 1.

        Args:
            answers: List of `GoldAnswer`, `None` for questions without an answer.
        """
        tokens = [
            None if answer is None else token_range(offsets, answer.start, answer.end)
            for answer, offsets in zip(answers, self.token_offsets, strict=True)
        ]
        rows = [self._label(window, tokens[row]) for window, row in enumerate(self.row)]
        columns = np.array(rows, "int32").T
        return dict(zip(_LABELS, columns, strict=True))

    def _label(self, window, tokens):
        if tokens is not None:
            start, end = (token - self.first_token[window] for token in tokens)
            if start >= 0 and end < self.num_tokens[window]:
                return (*(self.first_position[window] + place for place in (start, end)), 0)
        return (*[self.features["cls_index"][window]] * 2, 1)

    def characters(self, window: int, start: int, end: int) -> tuple[int, int]:
        """Returns the position in the context, in characters, of tokens of a window.

        Args:
            window: Int, the row of the window.
            start, end: Ints, positions in the window of the first and the last token.
        """
        shift = self.first_token[window] - self.first_position[window]
        offsets = self.token_offsets[self.row[window]]
        return int(offsets[start + shift, 0]), int(offsets[end + shift, 1])

    def has_most_context(self) -> np.ndarray:
        """Returns which tokens have more context in their window than in the others they are in.

        Returns:
            Bool array `(windows, length)`, `False` outside of the context.

        Source: `_check_is_max_context` of the original's `run_squad.py`.
        """
        found = np.zeros(self.features["token_ids"].shape, bool)
        counts = np.array([*map(len, self.token_offsets)])
        count = self.num_tokens
        token = ranges(starts(counts, np)[self.row] + self.first_token, count, np)
        window = np.repeat(np.arange(len(self)), count)
        is_here = window_of_most_context(Rows(token, count), counts.sum(), np)[token] == window
        found[window[is_here], ranges(self.first_position, count, np)[is_here]] = True
        return found


def token_range(offsets: np.ndarray, start: int, end: int) -> tuple[int, int]:
    """Returns the first and the last token that have characters of a part of a text.

    Args:
        offsets: Int array `(tokens, 2)`, start and end of each token in characters.
        start, end: Ints, the part: its first character, and the one after its last.
    """
    first = int(np.searchsorted(offsets[:, 1], start, side="right"))
    last = int(np.searchsorted(offsets[:, 0], end, side="left")) - 1
    return min(first, len(offsets) - 1), max(last, 0)


def encode_questions(
    x: Any,
    tokenizer: Any,
    layout: Layout,
    doc_stride: int,
    max_question_length: int,
    shorten: bool = True,
) -> AnswerWindows:
    """Returns what `XLNetQuestionAnsweringPreprocessor.encode` does.

    Args:
        x, shorten: As in that method.
        tokenizer: An `XLNetTokenizer` or a `HostTokenizer`.
        layout: A `Layout`.
        doc_stride, max_question_length: As in that class.
    """
    columns = question_columns(x)
    # Many questions share a context.
    different = {text: place for place, text in enumerate(dict.fromkeys(columns["context"]))}
    context_ids, offsets = tokenizer.encode(list(different), return_offsets=True)
    index = np.array([different[text] for text in columns["context"]])
    question_ids = tokenizer.encode(columns["question"])
    features, row, (begin, first, count), num_cut = pack_questions(
        *(question_ids, context_ids, index, layout, doc_stride, max_question_length),
        xp=np,
        shorten=shorten,
    )
    return AnswerWindows(
        features,
        columns,
        row,
        num_cut,
        first_position=begin,
        first_token=first,
        num_tokens=count,
        token_offsets=[offsets[i] for i in index],
    )


def pack_questions(
    question_ids: Any,
    context_ids: Any,
    index: Any,
    layout: Layout,
    doc_stride: int,
    max_question_length: int,
    xp: ModuleType,
    shorten: bool = False,
) -> tuple[dict[str, Any], Any, tuple[Any, Any, Any], Any]:
    """Returns the features of the windows of questions, and where they are.

    Args:
        question_ids, context_ids: What `as_rows` takes.
        index: Int64 `(questions,)`, the context of each question.
        layout, doc_stride, max_question_length: As in `encode_questions`.
        xp: `numpy` or `tensorflow`.
        shorten: As in `pack`.

    Returns:
        The features, the question of each window, the three places of `WindowPlaces`, and how many
        tokens are truncated.
    """
    questions, contexts = as_rows(question_ids), as_rows(context_ids)
    length = xp.minimum(questions.lengths, max_question_length)
    room = layout.sequence_length - NUM_SPECIAL - length
    row, first, count = plan_windows(
        gather(contexts.lengths, index, xp), room, xp.minimum(room, doc_stride), xp
    )
    length = gather(length, row, xp)
    has_question = xp.minimum(length, 1)
    parts = pair_parts(
        [take(contexts, gather(index, row, xp), first, count, xp)],
        [take(questions, row, 0, length, xp)],
        has_question,
        layout,
        xp,
    )
    features = pack(parts, layout, xp, shorten)
    # Of the window: the context, <sep>, the question and <sep>.
    last = count + length + 1 + has_question
    mask = features["padding_mask"]
    begin = xp.zeros_like(last)
    if layout.padding_side == "left":
        begin = mask.shape[1] - last - 1
    position = np.arange(mask.shape[1], dtype="int64") - begin[:, np.newaxis]
    in_context = (position >= 0) & (position < count[:, np.newaxis])
    features["paragraph_mask"] = in_context | (position == last[:, np.newaxis])
    features["cls_index"] = as_int32(begin + last, xp)
    num_cut = xp.maximum(questions.lengths - max_question_length, 0)
    return features, row, (begin, first, count), num_cut


def answer_limits(token_ids: Any, tokenizer: Any, max_answer_length: int, xp: ModuleType) -> Any:
    """Returns what `XLNetQuestionAnsweringPreprocessor.answer_limits` does."""
    # The id is 0, `<unk>`, if there is no such piece.
    space = tokenizer.token_to_id(_SPACE) or -1
    shortest = 0 if max_answer_length == 1 else max_answer_length
    limits = xp.where(xp.equal(token_ids, space), shortest, max_answer_length)
    return limits if xp is not np else limits.astype("int32")
