"""Token records to batches for permutation language modelling."""

import warnings

import numpy as np
import tensorflow as tf

from keras_xlnet.layers import PermutationMaskGenerator
from keras_xlnet.pretraining.permutation_features import permutation_features, uniform_draws
from keras_xlnet.pretraining.row_layout import RowLayout
from keras_xlnet.pretraining.segment_pairs import (
    NUM_SPECIAL_TOKENS,
    segment_rows,
    split_segments,
)
from keras_xlnet.pretraining.stream_plan import StreamPlan
from keras_xlnet.pretraining.target_choice import TargetChoice
from keras_xlnet.pretraining.word_start_table import word_start_table


class PermutationBatches:
    """Draws the batches of permutation language modelling from token records.

    Each row of a batch stands in a stream of tokens: `reuse_length` tokens of running context,
    then `[A, <sep>, B, <sep>, <cls>]`. The same row of the next batch stands `reuse_length` tokens
    later, so that memory of one batch is the past of the next. Segments, spans, factorization
    orders and the order of the shards are drawn anew in every pass.

    Every batch is a function of `seed` and its number alone. `dataset(first_step=n)` goes on with
    batch n at once, wherever the run before it was stopped.

    Args:
        records: `TokenRecords`.
        batch_size: int, the rows of a batch over all replicas and hosts.
        sequence_length: int, the tokens of a row.
        num_predictions: int, the targets of a row: half of them (one more, if it is odd) in the
            context, the others in A and B.
        reuse_length: int, the tokens of context. None for half of the sequence.
        permutation_length: int, the tokens that one permutation orders; it divides both parts of
            the row. None for the shorter part.
        unit: what spans of targets are counted in, `"word"`, `"piece"`, or `"token"` for single
            tokens; see `keras_xlnet.layers.SpanMaskSampler`.
        segment_pairs: bool. If False, rows have one segment: context, A, `<sep>`, `<cls>`.
        bidirectional_data: bool, whether half of the rows read backwards: of every replica's rows
            the first half reads streams forwards, the second half reads the same streams from
            their ends, with `<sep>` and `<cls>` still behind.
        num_replicas: int, the number of replicas over all hosts.
        num_hosts: int, number of hosts that make batches; each makes the rows of its replicas.
        host_index: int, which of them this is.
        seed: int, not negative.

    Attributes:
        first_step: int, the number of the batch with which datasets begin that were made with
            `dataset()`. It is read when an iterator is made; `ResumeBatches` sets it.

    Raises:
        ValueError: an argument is no such thing, or does not fit the others; or no shard of the
            records is long enough for a batch.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.pretraining import PermutationBatches, write_token_records
    >>> from keras_xlnet.text import XLNetTokenizer
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("a cat sat\\non a mat\\n\\na dog ran\\n" * 50)
    >>> tokenizer = XLNetTokenizer.train(str(folder / "a.txt"), vocabulary_size=30)
    >>> records = write_token_records(folder / "a.txt", tokenizer, folder / "records", verbose=0)
    >>> batches = PermutationBatches(records, batch_size=2, sequence_length=32, num_predictions=6)
    >>> inputs, labels, sample_weight = next(iter(batches.dataset()))
    >>> for name in sorted(inputs):
    ...     print(name, inputs[name].shape, inputs[name].dtype.name)
    permutation_mask (2, 32, 32) int8
    reset_memory (2,) int8
    segment_ids (2, 32) int32
    target_positions (2, 6) int32
    token_ids (2, 32) int32
    >>> labels.shape, sample_weight.shape
    (TensorShape([2, 6]), TensorShape([2, 6]))

    Source: Yang et al. 2019 (XLNet), sections 2.3 to 2.5 and appendix A.4; `create_tfrecords` in
    the original's `data_utils.py`, which lays out all forward rows of a host before all backward
    ones on several devices.
    """

    def __init__(
        self,
        records,
        batch_size,
        sequence_length,
        num_predictions,
        *,
        reuse_length=None,
        permutation_length=None,
        unit="word",
        segment_pairs=True,
        bidirectional_data=False,
        num_replicas=1,
        num_hosts=1,
        host_index=0,
        seed=0,
    ):
        self.records = records
        self.batch_size = _at_least("batch_size", batch_size, 1)
        self.sequence_length = _at_least("sequence_length", sequence_length, 8)
        if reuse_length is None:
            reuse_length = sequence_length // 2
        self.reuse_length = _at_least("reuse_length", reuse_length, 1)
        self.num_predictions = _at_least("num_predictions", num_predictions, 2)
        self.segment_pairs = segment_pairs
        self.seed = _at_least("seed", seed, 0)
        self.first_step = 0
        _at_least("num_replicas", num_replicas, 1)
        _at_least("num_hosts", num_hosts, 1)
        _at_least("host_index", host_index, 0)
        self._layout = RowLayout(
            batch_size, bidirectional_data, num_replicas, num_hosts, host_index
        )
        num_special = NUM_SPECIAL_TOKENS if segment_pairs else NUM_SPECIAL_TOKENS - 1
        # Of A, or of A and B together.
        self._new_length = sequence_length - reuse_length - num_special
        if self._new_length < 2:
            raise ValueError(
                "reuse_length must leave room for two segments in "
                f"sequence_length={sequence_length}. Received: {reuse_length}"
            )
        tokenizer = records.tokenizer()
        self._special_ids = (tokenizer.sep_token_id, tokenizer.cls_token_id)
        self._targets = TargetChoice(
            num_predictions,
            (reuse_length, sequence_length - reuse_length),
            unit,
            word_start_table(tokenizer),
            self._special_ids,
            num_special,
        )
        self._generator = PermutationMaskGenerator(
            num_predictions,
            permutation_length=permutation_length,
            reuse_length=reuse_length,
            special_token_ids=self._special_ids,
        )
        self._order_draws = self._generator.num_draws(sequence_length)
        self._plan = StreamPlan(
            [shard["tokens"] for shard in records.shards],
            self._layout.num_streams,
            reuse_length + self._new_length,
            reuse_length,
            bidirectional_data,
            seed,
            records.directory,
        )
        self._warn_of_unused_shards()

    @property
    def steps_per_pass(self):
        """int: the batches in one pass over all shards."""
        return self._plan.steps_per_pass

    def dataset(self, first_step=None):
        """The batches from a step on, without end: pass `steps_per_epoch` to `fit`.

        With `num_hosts > 1` these are the rows of this host, as
        `strategy.distribute_datasets_from_function` wants them.

        Args:
            first_step: int, the number of the first batch. None for what the attribute
                `first_step` says when an iterator is made.

        Returns:
            A `tf.data.Dataset` of `(inputs, labels, sample_weight)`. `inputs` has `token_ids` and
            `segment_ids` `(batch, length)` int32, `permutation_mask` `(batch, length, length)`
            int8, `target_positions` `(batch, num_predictions)` int32, and `reset_memory`
            `(batch,)` int8, 1 where the row's stream starts with this batch. `labels`
            `(batch, num_predictions)` int32, `sample_weight` `(batch, num_predictions)` float32.
            In iteration, a damaged shard is a `tf.errors.InvalidArgumentError` that names it.

        Raises:
            ValueError: `first_step` is no such int.
        """
        if first_step is not None:
            _at_least("first_step", first_step, 0)

        def visits():
            return self._plan.visits(self.first_step if first_step is None else first_step)

        infinite = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
        return self._batches(visits).apply(infinite)

    def evaluation_dataset(self):
        """One pass over all shards, always the same: for records that are held out.

        Returns:
            A `tf.data.Dataset` of `steps_per_pass` batches as `dataset` gives them.
        """
        dataset = self._batches(lambda: self._plan.visits(0)).take(self.steps_per_pass)
        return dataset.apply(tf.data.experimental.assert_cardinality(self.steps_per_pass))

    def _warn_of_unused_shards(self):
        counts = [shard["tokens"] for shard in self.records.shards]
        unused = [counts[index] for index in self._plan.unused_shards]
        if unused:
            warnings.warn(
                f"{len(unused)} of the {len(counts)} shards are too short for batch_size="
                f"{self.batch_size} and not read: {sum(unused)} of {sum(counts)} tokens.",
                stacklevel=3,
            )

    def _batches(self, visits):
        streams = self._layout.streams
        begins = tf.TensorSpec((self._layout.num_directions, streams.stop - streams.start), "int64")
        dataset = tf.data.Dataset.from_generator(
            lambda: ((*visit[:-1], visit.begins[:, streams]) for visit in visits()),
            output_signature=(*[tf.TensorSpec((), "int64")] * 4, begins),
        )
        # One shard ahead: the next one is read while batches come out of this one.
        dataset = dataset.map(self._load).prefetch(1).flat_map(self._batches_of_visit)
        # Each worker of a strategy takes its part of every batch: streams stay where they are.
        options = tf.data.Options()
        policy = tf.data.experimental.AutoShardPolicy.DATA
        options.experimental_distribute.auto_shard_policy = policy
        return dataset.with_options(options).prefetch(tf.data.AUTOTUNE)

    def _load(self, step, shard, first, stop, begins):
        tokens, boundaries = tf.numpy_function(self._read, [shard], (tf.int32, tf.int64))
        tokens.set_shape((self._layout.num_directions, None))
        boundaries.set_shape((self._layout.num_directions, None))
        return step, first, stop, begins, tokens, boundaries

    def _read(self, index):
        """The tokens and boundaries of a shard, in each direction."""
        shard = self.records.read(index)
        if self._layout.num_directions == 1:
            return shard.tokens[np.newaxis], shard.boundaries[np.newaxis]
        mirrored = len(shard.tokens) - shard.boundaries[::-1]
        return np.stack([shard.tokens, shard.tokens[::-1]]), np.stack([shard.boundaries, mirrored])

    def _batches_of_visit(self, step, first, stop, begins, tokens, boundaries):
        def batch(position):
            token_ids, segment_ids = self._rows(
                step + position - first, begins + position * self.reuse_length, tokens, boundaries
            )
            return self._features(step + position - first, position == 0, token_ids, segment_ids)

        positions = tf.data.Dataset.range(first, stop)
        return positions.map(batch, num_parallel_calls=tf.data.AUTOTUNE)

    def _rows(self, step, begins, tokens, boundaries):
        # float32 has fewer numbers than a shard may have tokens.
        draws = self._layout.by_direction(self._draws(step, 3, "float64"))
        rows = []
        for direction in range(self._layout.num_directions):
            begin = begins[direction]
            a_length, b_begin = self._segments(boundaries[direction], begin, draws[direction])
            rows.append(
                segment_rows(
                    tokens[direction],
                    begin,
                    self.reuse_length,
                    a_length,
                    b_begin,
                    self.sequence_length,
                    self._special_ids,
                )
            )
        return [self._layout.by_row(tf.stack(parts)) for parts in zip(*rows, strict=True)]

    def _segments(self, boundaries, begin, draws):
        if not self.segment_pairs:
            return tf.fill(begin.shape, tf.constant(self._new_length, tf.int64)), begin
        a_begin = begin + self.reuse_length
        return split_segments(boundaries, a_begin, self._new_length, draws)[:2]

    def _features(self, step, is_start, token_ids, segment_ids):
        draws = self._draws(step, self._targets.num_draws + self._order_draws, "float32")
        target_draws, order_draws = tf.split(
            draws, [self._targets.num_draws, self._order_draws], axis=1
        )
        return permutation_features(
            self._generator,
            token_ids,
            segment_ids,
            self._targets(token_ids, self._layout.reverse, target_draws),
            tf.fill([self._layout.num_rows], is_start),
            order_draws,
        )

    def _draws(self, step, count, dtype):
        # Those of the whole batch first: rows do not depend on the number of hosts.
        shape = (self.batch_size, count)
        return uniform_draws(shape, self.seed, step, dtype)[self._layout.rows]


def _at_least(name, value, smallest):
    if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
        raise ValueError(f"{name} must be an int of at least {smallest}. Received: {value!r}")
    return value
