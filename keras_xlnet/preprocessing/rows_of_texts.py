"""Rows that hold several texts: their length, their number, and where each text stands."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

# A place of a row costs as much again for each so many places that it attends to: 190 in models of
# width 256 and 650 of width 768, says `python -m benchmarks.row_lengths`.
COST_LENGTH = 400
MULTIPLE = 8
# <sep> and <cls>, which end each window of a text.
NUM_LAST = 2
# Each number of rows is compiled.
_MOST_COUNTS = 3
# The length of rows is chosen with about so many batches.
_SAMPLE = 32


@dataclasses.dataclass(frozen=True)
class RowPlan:
    """The shapes of the rows of all batches.

    Args:
        row_length: Int, the tokens that a row has place for.
        counts: Sorted ints, the numbers of rows that a batch may have.
    """

    row_length: int
    counts: tuple[int, ...]

    @classmethod
    def of_batches(cls, batches: Iterable[np.ndarray], spare_rows: int = 0) -> RowPlan:
        """Returns the plan that costs least for batches.

        Args:
            batches: For each batch an int array, the numbers of tokens of its texts.
            spare_rows: Int, how many more rows the largest number has than these batches need, for
                other batches.
        """
        batches = [lengths.tolist() for lengths in batches if lengths.size]
        longest = max(map(max, batches))
        shortest = -(-max(longest, 1) // MULTIPLE) * MULTIPLE
        sample = batches[:: 1 + len(batches) // _SAMPLE]

        def cost(row_length):
            rows, _ = _best_counts(sample, row_length)
            return rows * row_length * (1 + row_length / COST_LENGTH)

        row_length = min(range(shortest, 2 * shortest + 1, MULTIPLE), key=cost)
        *counts, most = _best_counts(batches, row_length)[1]
        # No batch needs more rows than it has texts.
        most = max(most, min(most + spare_rows, max(map(len, batches))))
        return cls(row_length, (*counts, most))

    def packing(self, lengths: np.ndarray, length: int, padding_side: str = "left") -> np.ndarray:
        """Returns the `packing` of a batch, as `PackTexts` takes it.

        Args:
            lengths: Int array, the numbers of tokens of the texts of the batch.
            length: Int, the length of the arrays that hold the texts.
            padding_side: Where they are padded.

        Returns:
            Int32 array `(rows, row_length)`. There are as many rows as the smallest of `counts`
            that is enough, or as needed. None for no texts.
        """
        if not lengths.size:
            return np.zeros((0, self.row_length), "int32")
        rows, offsets = place_texts(lengths.tolist(), self.row_length)
        needed = 1 + max(rows)
        count = min((c for c in self.counts if c >= needed), default=needed)
        packing = np.full(count * self.row_length, -1, "int32")
        before = np.cumsum(lengths) - lengths
        tokens = np.arange(lengths.sum())
        first = np.arange(len(lengths)) * length
        if padding_side == "left":
            first += length - lengths
        place = np.array(rows) * self.row_length + np.array(offsets)
        packing[tokens + np.repeat(place - before, lengths)] = tokens + np.repeat(
            first - before, lengths
        )
        return packing.reshape(count, self.row_length)


def lengths_of_windows(lengths: np.ndarray, length: int, window_length: int) -> np.ndarray:
    """Returns the tokens of each window that `DivideIntoWindows` makes of padded texts.

    Args:
        lengths: Int array `(texts,)`, the tokens of each text.
        length: Int, the length of the arrays that hold the texts.
        window_length: Int, the tokens of a window, the last two of them those of the text.

    Returns:
        Int array `(texts, windows)`, 0 for a window that is padding.
    """
    room = window_length - NUM_LAST
    # The first window of a text is the one that is not full.
    before = np.arange(-(-(length - NUM_LAST) // room))[::-1] * room
    found = np.clip(lengths[:, np.newaxis] - NUM_LAST - before, 0, room)
    is_window = (found > 0) | (before == 0)
    return np.where(is_window, found + NUM_LAST, 0)


def place_texts(lengths: Sequence[int], row_length: int) -> tuple[list[int], list[int]]:
    """Returns the row of each text, and the place in it where the text begins.

    From the longest to the shortest, each text stands in the row that it fills best.

    Args:
        lengths: The number of tokens of each text, at most `row_length`.
        row_length: Int, the tokens that a row has place for.
    """
    rows, offsets = [0] * len(lengths), [0] * len(lengths)
    room: list[int] = []
    for text in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        length = lengths[text]
        best, least = -1, row_length + 1
        for row, left in enumerate(room):
            if length <= left < least:
                best, least = row, left
        if best < 0:
            best, least = len(room), row_length
            room.append(row_length)
        rows[text], offsets[text] = best, row_length - least
        room[best] = least - length
    return rows, offsets


def _best_counts(batches, row_length):
    """The rows of all batches, and the at most three numbers of rows that make them fewest."""
    needed = [1 + max(place_texts(lengths, row_length)[0]) for lengths in batches]
    values, batches = np.unique(needed, return_counts=True)
    # The least sum for the batches that need at most `values[i]` rows, with ever more numbers.
    found = [(0, ())] + [(np.inf, ())] * len(values)
    for _ in range(_MOST_COUNTS):
        found = [found[0]] + [
            min(
                (found[j][0] + values[i] * batches[j : i + 1].sum(), (*found[j][1], int(values[i])))
                for j in range(i + 1)
            )
            for i in range(len(values))
        ]
    return found[-1]
