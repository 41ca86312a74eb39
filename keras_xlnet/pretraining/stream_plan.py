"""Which tokens every step of pretraining reads."""

import itertools
from typing import NamedTuple

import numpy as np


class Visit(NamedTuple):
    """Some steps of one pass over one shard.

    `step`: the number of the first of these steps; `shard`: index; `first` and `stop`: which
    steps of the shard; `begins` `(num_directions, num_streams)` int64: where streams begin, in
    the second direction counted from the end of the shard.
    """

    step: int
    shard: int
    first: int
    stop: int
    begins: np.ndarray


class StreamPlan:
    """Cuts shards into streams that are read side by side, a batch a step.

    A shard of `T` tokens makes `num_streams` streams of `T // num_streams` tokens. In each step a
    stream goes on by `reuse_length` tokens. What does not fill a step is left out at a random
    side, which moves the streams a little from pass to pass.

    Args:
        num_tokens: list of int, the tokens of every shard.
        num_streams: int.
        text_length: int, the tokens that a row takes from where it stands.
        reuse_length: int.
        bidirectional_data: bool, whether all streams are read backwards too.
        seed: int.
        directory: str, where the shards are, for errors.

    Raises:
        ValueError: no shard is long enough for a batch.
    """

    def __init__(
        self,
        num_tokens,
        num_streams,
        text_length,
        reuse_length,
        bidirectional_data,
        seed,
        directory,
    ):
        self._num_tokens = num_tokens
        self._num_streams = num_streams
        self._text_length = text_length
        self._reuse_length = reuse_length
        self._bidirectional_data = bidirectional_data
        self._seed = seed
        self._steps = [self._steps_in(count) for count in num_tokens]
        if self.steps_per_pass == 0:
            raise ValueError(
                f"records must have a shard of at least {num_streams * text_length} tokens for "
                f"{num_streams} streams of {text_length} tokens (batch_size and sequence_length). "
                f"Received: {len(num_tokens)} shards in {directory!r}, the longest of "
                f"{max(num_tokens)} tokens"
            )

    @property
    def steps_per_pass(self):
        """int: the number of batches in all shards."""
        return sum(self._steps)

    @property
    def unused_shards(self):
        """list of int: the shards that are too short for a batch."""
        return [index for index, steps in enumerate(self._steps) if steps == 0]

    def visits(self, first_step):
        """Yields the `Visit`s from a step on, without end."""
        first_pass, skipped = divmod(first_step, self.steps_per_pass)
        step = first_step
        for pass_index in itertools.count(first_pass):
            for shard, begins in self._one_pass(pass_index):
                stop = self._steps[shard]
                if skipped < stop:
                    yield Visit(step, shard, skipped, stop, begins)
                    step += stop - skipped
                skipped = max(skipped - stop, 0)

    def _one_pass(self, pass_index):
        rng = np.random.default_rng([self._seed, pass_index])
        for shard in rng.permutation(len(self._num_tokens)):
            if self._steps[shard]:
                yield int(shard), self._begins(shard, rng)

    def _begins(self, shard, rng):
        total = self._num_tokens[shard]
        length = total // self._num_streams
        used = self._text_length + (self._steps[shard] - 1) * self._reuse_length
        slack = total - (self._num_streams - 1) * length - used
        begins = np.arange(self._num_streams) * length + rng.integers(slack + 1)
        if not self._bidirectional_data:
            return begins[np.newaxis]
        return np.stack([begins, total - (begins + used)])

    def _steps_in(self, num_tokens):
        length = num_tokens // self._num_streams
        return max(0, (length - self._text_length) // self._reuse_length + 1)
