"""Beam search for the continuation of one sequence."""

import typing
from collections.abc import Collection

import numpy as np


class Beam(typing.NamedTuple):
    """A continuation.

    Args:
        total: Float, the sum of `log_probs`.
        token_ids: Tuple of ints.
        log_probs: Tuple of floats, the log-probability of each token.
    """

    total: float
    token_ids: tuple[int, ...]
    log_probs: tuple[float, ...]


class BeamSearch:
    """The open continuations of a sequence, and the best one that has ended.

    Args:
        size: Int, the number of open continuations that are followed.
        stop_token_ids: Set of ints, the tokens that end a continuation.
    """

    def __init__(self, size: int, stop_token_ids: Collection[int]) -> None:
        self.size = size
        self.stop_token_ids = stop_token_ids
        # All rows of a batch begin alike: one counts.
        self.beams = [Beam(0.0, (), ())] + [Beam(-np.inf, (), ())] * (size - 1)
        self.best = Beam(-np.inf, (), ())

    @property
    def is_done(self) -> bool:
        """Whether no open continuation can become better than the best one that has ended."""
        return self.best.total >= max(beam.total for beam in self.beams)

    def extend(self, log_probs: np.ndarray, is_last: bool) -> tuple[np.ndarray, np.ndarray]:
        """Appends one token to the continuations.

        Args:
            log_probs: Array `(size, vocabulary_size)`, the log-probabilities of the next token of
                each open continuation.
            is_last: Whether all continuations end with this token.

        Returns:
            Two int arrays `(size,)`: from which continuation each of the new ones comes, and its
            token.
        """
        totals = np.array([beam.total for beam in self.beams])[:, None] + log_probs
        # So many that `size` are left if all stop tokens of all continuations are among them.
        count = self.size * (1 + len(self.stop_token_ids))
        best = np.argsort(-totals, axis=None, kind="stable")[:count]
        opened: list[Beam] = []
        origins: list[int] = []
        for origin, token in zip(*np.unravel_index(best, totals.shape), strict=True):
            beam = self.beams[origin]
            extended = Beam(
                totals[origin, token],
                (*beam.token_ids, int(token)),
                (*beam.log_probs, log_probs[origin, token]),
            )
            if is_last or token in self.stop_token_ids:
                self.best = max(self.best, extended, key=lambda beam: beam.total)
            elif len(opened) < self.size:
                opened.append(extended)
                origins.append(origin)
        while len(opened) < self.size:  # Everything ended: these do not count.
            opened.append(Beam(-np.inf, (0,), (0.0,)))
            origins.append(0)
        self.beams = opened
        return np.array(origins, "int32"), np.array([b.token_ids[-1] for b in opened], "int32")
