"""The windows of contexts in which a model looks for answers, and the way back to the text."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from keras_xlnet.preprocessing.answers import GoldAnswer
from keras_xlnet.preprocessing.packing import Rows, ranges, starts, window_of_most_context
from keras_xlnet.preprocessing.preprocessor import Encoded

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
