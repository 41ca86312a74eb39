"""Which tokens are read in each step of pretraining."""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np


class ShardSteps(NamedTuple):
    """Consecutive steps of one pass over one shard.

    Attributes:
        step: Int, the number of the first of these steps since the start of training.
        shard: Int, the index of the shard.
        first: Int, the number of the first of these steps within the shard.
        stop: Int, the number after the last of these steps within the shard.
        begins: Int64 array `(num_directions, num_parts)`, where each part begins. In the second
            direction, positions are counted from the end of the shard.
    """

    step: int
    shard: int
    first: int
    stop: int
    begins: np.ndarray


class ReadingSchedule:
    """Cuts shards into contiguous parts that are read in parallel, one batch per step.

    A shard of `T` tokens is cut into `num_parts` parts of `T // num_parts` tokens. In each step,
    every part is read `reuse_length` tokens further. Tokens that do not fill a step are left out,
    a random number of them at the beginning of the shard, which shifts the parts from pass to pass.

    Args:
        num_tokens: List of ints, the number of tokens of each shard.
        num_parts: Int, number of parts, one for each row of a batch and direction.
        text_length: Int, number of tokens at the beginning of a row that come from its part.
        reuse_length: Int.
        bidirectional_data: Bool, whether all parts are also read backward.
        seed: Int.
        directory: String, directory of the shards, for error messages.

    Raises:
        ValueError: If no shard is long enough for a batch.
    """

    def __init__(
        self,
        num_tokens: Sequence[int],
        num_parts: int,
        text_length: int,
        reuse_length: int,
        bidirectional_data: bool,
        seed: int,
        directory: str,
    ) -> None:
        self._num_tokens = num_tokens
        self._num_parts = num_parts
        self._text_length = text_length
        self._reuse_length = reuse_length
        self._bidirectional_data = bidirectional_data
        self._seed = seed
        self._steps = [self._steps_in(count) for count in num_tokens]
        if self.steps_per_pass == 0:
            raise ValueError(
                f"`records` must have a shard of at least {num_parts * text_length} tokens: a "
                f"batch reads {num_parts} parts of {text_length} tokens (see `batch_size` and "
                f"`sequence_length`). Received: {len(num_tokens)} shards in {directory!r}, the "
                f"longest with {max(num_tokens)} tokens"
            )

    @property
    def steps_per_pass(self) -> int:
        """Int, the number of batches in one pass over all shards."""
        return sum(self._steps)

    @property
    def unused_shards(self) -> list[int]:
        """List of ints, the indices of the shards that are too short for a batch."""
        return [index for index, steps in enumerate(self._steps) if steps == 0]

    def shard_steps(self, first_step: int) -> Iterator[ShardSteps]:
        """Yields `ShardSteps` from a step on, endlessly."""
        first_pass, skipped = divmod(first_step, self.steps_per_pass)
        step = first_step
        for pass_index in itertools.count(first_pass):
            for shard, begins in self._one_pass(pass_index):
                stop = self._steps[shard]
                if skipped < stop:
                    yield ShardSteps(step, shard, skipped, stop, begins)
                    step += stop - skipped
                skipped = max(skipped - stop, 0)

    def _one_pass(self, pass_index):
        rng = np.random.default_rng([self._seed, pass_index])
        for shard in rng.permutation(len(self._num_tokens)):
            if self._steps[shard]:
                yield int(shard), self._begins(shard, rng)

    def _begins(self, shard, rng):
        total = self._num_tokens[shard]
        length = total // self._num_parts
        used = self._text_length + (self._steps[shard] - 1) * self._reuse_length
        unused = total - (self._num_parts - 1) * length - used
        begins = np.arange(self._num_parts) * length + rng.integers(unused + 1)
        if not self._bidirectional_data:
            return begins[np.newaxis]
        return np.stack([begins, total - (begins + used)])

    def _steps_in(self, num_tokens):
        length = num_tokens // self._num_parts
        return max(0, (length - self._text_length) // self._reuse_length + 1)
