"""Batches for permutation language modeling from token records."""

import os
import warnings

import numpy as np
import tensorflow as tf

from keras_xlnet.arguments import check_int
from keras_xlnet.compat.generated_dataset import generated_dataset
from keras_xlnet.compat.prefetched import prefetched
from keras_xlnet.layers import PermutationMaskGenerator
from keras_xlnet.models.keeps_memory import record_reading
from keras_xlnet.pretraining.batch_assembly import assemble_batch
from keras_xlnet.pretraining.reading_schedule import ReadingSchedule
from keras_xlnet.pretraining.row_order import RowOrder
from keras_xlnet.pretraining.segment_pairs import (
    NUM_SPECIAL_TOKENS,
    pack_rows,
    sample_segment_pairs,
)
from keras_xlnet.pretraining.target_sampler import TargetSampler, word_start_table
from keras_xlnet.pretraining.tf_data_ops import uniform_draws
from keras_xlnet.pretraining.token_records import TokenRecords
from keras_xlnet.registration import refuse_unknown_arguments
from keras_xlnet.types import PathLike


@refuse_unknown_arguments
class PermutationBatches:
    """Makes batches for permutation language modeling from token records.

    A shard of the records is cut into contiguous parts, one for each row of a batch. A row
    consists of `reuse_length` tokens of its part, which the memory of the next batch contains, and
    then `[A, <sep>, B, <sep>, <cls>]`, where segment A continues the text. The same row of the
    next batch begins `reuse_length` tokens later in the part. Segments, targets, factorization
    orders and the order of the shards are sampled again in every pass.

    Each batch depends only on `seed` and its number. `dataset(first_step=n)` continues with batch
    n immediately, wherever the previous run stopped.

    `fit` and `evaluate` of `XLNetPermutationLM` refuse these datasets if the backbone has another
    `bidirectional_data` or, with a stateful memory, another `reuse_length`. Datasets derived from
    these, for example with `take` or `distribute_datasets_from_function`, are not checked.

    Args:
        records: `TokenRecords`, or the path of their directory.
        batch_size: Int, number of rows over all replicas and hosts.
        sequence_length: Int, number of tokens in a row.
        num_predictions: Int, number of targets in a row: half of them (rounded up) among the
            reused tokens, the others in A and B.
        reuse_length: Int, number of reused tokens. `None` for half of the sequence.
        permutation_length: Int, length of the blocks that are permuted. It must divide both parts
            of a row. `None` for the length of the shorter part.
        unit: String, the unit of the spans of targets: `"word"`, `"piece"`, or `"token"` for single
            tokens; see `keras_xlnet.layers.SpanMaskSampler`.
        segment_pairs: Bool. If `False`, rows have one segment: reused tokens, A, `<sep>`, `<cls>`.
        bidirectional_data: Bool, whether half of the rows are read backward. On each replica, the
            first half of the rows reads parts of a shard forward, and the second half reads the
            same parts backward, still with `<sep>` and `<cls>` at the end of the row.
        reset_at_documents: Bool, whether the memory of a row is reset if a document has ended in
            the preceding tokens. This needs records with `end_of_document=True`, the default. By
            default, memory is carried over from text to text, as in the original.
        num_replicas: Int, number of replicas over all hosts.
        num_hosts: Int, number of hosts. Each host makes the rows of its own replicas.
        host_index: Int, the index of this host.
        seed: Int, 0 or above.

    Attributes:
        first_step: Int, the number of the first batch of datasets that were created with
            `dataset()`. It is read when an iterator is created; `ResumeBatches` sets it.

    Raises:
        ValueError: If an argument is invalid or does not fit the others, or if no shard of the
            records is long enough for a batch.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.pretraining import PermutationBatches, write_token_records
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
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
    the original's `data_utils.py`, which on several devices puts all forward rows of a host before
    all backward rows.
    """

    def __init__(
        self,
        records: TokenRecords | PathLike,
        batch_size: int,
        sequence_length: int,
        num_predictions: int,
        *,
        reuse_length: int | None = None,
        permutation_length: int | None = None,
        unit: str = "word",
        segment_pairs: bool = True,
        bidirectional_data: bool = False,
        reset_at_documents: bool = False,
        num_replicas: int = 1,
        num_hosts: int = 1,
        host_index: int = 0,
        seed: int = 0,
    ) -> None:
        self.records = records = _opened(records)
        self.batch_size = check_int("batch_size", batch_size, 1)
        self.sequence_length = check_int("sequence_length", sequence_length, 8)
        if reuse_length is None:
            reuse_length = sequence_length // 2
        self.reuse_length = check_int("reuse_length", reuse_length, 1)
        self.num_predictions = check_int("num_predictions", num_predictions, 2)
        self.segment_pairs = segment_pairs
        self.bidirectional_data = bidirectional_data
        self.reset_at_documents = reset_at_documents
        self.seed = check_int("seed", seed, 0)
        self.first_step = 0
        check_int("num_replicas", num_replicas, 1)
        check_int("num_hosts", num_hosts, 1)
        check_int("host_index", host_index, 0)
        self._rows = RowOrder(batch_size, bidirectional_data, num_replicas, num_hosts, host_index)
        num_special = NUM_SPECIAL_TOKENS if segment_pairs else NUM_SPECIAL_TOKENS - 1
        # The number of tokens of A, or of A and B together.
        self._segments_length = sequence_length - reuse_length - num_special
        if self._segments_length < 2:
            raise ValueError(
                "`reuse_length` must leave room for two segments in "
                f"sequence_length={sequence_length}. Received: reuse_length={reuse_length}"
            )
        tokenizer = records.tokenizer()
        self._special_ids = (tokenizer.sep_token_id, tokenizer.cls_token_id)
        self._document_end = tokenizer.eod_token_id
        self._sample_targets = TargetSampler(
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
        self._num_order_draws = self._generator.num_draws(sequence_length)
        self._schedule = ReadingSchedule(
            [shard["tokens"] for shard in records.shards],
            self._rows.num_parts,
            reuse_length + self._segments_length,
            reuse_length,
            bidirectional_data,
            seed,
            records.directory,
        )
        self._warn_of_unused_shards()

    @property
    def steps_per_pass(self) -> int:
        """Int, the number of batches in one pass over all shards."""
        return self._schedule.steps_per_pass

    def dataset(self, first_step: int | None = None) -> tf.data.Dataset:
        """Returns the batches from a step on, endlessly: pass `steps_per_epoch` to `fit`.

        With `num_hosts > 1` these are the rows of this host, as
        `strategy.distribute_datasets_from_function` expects them.

        Args:
            first_step: Int, the number of the first batch. `None` for the value that the attribute
                `first_step` has when an iterator is created.

        Returns:
            A `tf.data.Dataset` of `(inputs, labels, sample_weight)`. `inputs` is a dict of
            `token_ids` and `segment_ids`, int32 `(batch, length)`; `permutation_mask`, int8
            `(batch, length, length)`; `target_positions`, int32 `(batch, num_predictions)`; and
            `reset_memory`, int8 `(batch,)`, 1 where the memory of a row is reset. `labels` is int32
            `(batch, num_predictions)`, `sample_weight` is float32 `(batch, num_predictions)`. If a
            shard is damaged, iteration raises `tf.errors.InvalidArgumentError` with its path.

        Raises:
            ValueError: If `first_step` is not an int of at least 0.
        """
        if first_step is not None:
            check_int("first_step", first_step, 0)

        def shard_steps():
            return self._schedule.shard_steps(self.first_step if first_step is None else first_step)

        return self._batches(shard_steps, tf.data.INFINITE_CARDINALITY)

    def evaluation_dataset(self) -> tf.data.Dataset:
        """Returns one pass over all shards, always with the same batches, for held-out records.

        Returns:
            A `tf.data.Dataset` of `steps_per_pass` batches as `dataset` returns them.
        """
        return self._batches(lambda: self._schedule.shard_steps(0), self.steps_per_pass)

    def _warn_of_unused_shards(self):
        counts = [shard["tokens"] for shard in self.records.shards]
        unused = [counts[index] for index in self._schedule.unused_shards]
        if unused:
            warnings.warn(
                f"{len(unused)} of the {len(counts)} shards are too short for batch_size="
                f"{self.batch_size} and are not read: {sum(unused)} of {sum(counts)} tokens.",
                stacklevel=3,
            )

    def _batches(self, shard_steps, count):
        parts = self._rows.parts
        begins = tf.TensorSpec((self._rows.num_directions, parts.stop - parts.start), "int64")
        dataset = generated_dataset(
            lambda: ((*steps[:-1], steps.begins[:, parts]) for steps in shard_steps()),
            (*[tf.TensorSpec((), "int64")] * 4, begins),
        )
        # The next shard is read while batches are made from the current one.
        dataset = dataset.map(self._load_shard).prefetch(1).flat_map(self._batches_of_shard)
        # Each worker of a strategy takes its rows of every batch, so that rows continue their
        # parts from batch to batch.
        options = tf.data.Options()
        policy = tf.data.experimental.AutoShardPolicy.DATA
        options.experimental_distribute.auto_shard_policy = policy
        dataset = prefetched(dataset.with_options(options)).take(count)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
        return record_reading(dataset, self.reuse_length, self.bidirectional_data)

    def _load_shard(self, step, shard, first, stop, begins):
        tokens, boundaries = tf.numpy_function(self._read_shard, [shard], (tf.int32, tf.int64))
        tokens.set_shape((self._rows.num_directions, None))
        boundaries.set_shape((self._rows.num_directions, None))
        return step, first, stop, begins, tokens, boundaries

    def _read_shard(self, index):
        """Returns tokens and boundaries of a shard, each with one row per direction."""
        shard = self.records.read(index)
        if self._rows.num_directions == 1:
            return shard.tokens[np.newaxis], shard.boundaries[np.newaxis]
        backward_boundaries = len(shard.tokens) - shard.boundaries[::-1]
        return (
            np.stack([shard.tokens, shard.tokens[::-1]]),
            np.stack([shard.boundaries, backward_boundaries]),
        )

    def _batches_of_shard(self, step, first, stop, begins, tokens, boundaries):
        def make_batch(position):
            number = step + position - first
            begin = begins + position * self.reuse_length
            token_ids, segment_ids = self._token_and_segment_ids(number, begin, tokens, boundaries)
            resets_memory = tf.fill([self._rows.num_rows], position == 0)
            if self.reset_at_documents:
                resets_memory |= self._follow_document_end(begin, tokens)
            return self._assemble(number, resets_memory, token_ids, segment_ids)

        positions = tf.data.Dataset.range(first, stop)
        return positions.map(make_batch, num_parallel_calls=tf.data.AUTOTUNE)

    def _token_and_segment_ids(self, step, begins, tokens, boundaries):
        # In float64: float32 has fewer values than a shard can have tokens.
        draws = self._rows.by_direction(self._draws(step, 3, "float64"))
        ids = []
        for direction in range(self._rows.num_directions):
            begin = begins[direction]
            a_length, b_begin = self._segments(boundaries[direction], begin, draws[direction])
            ids.append(
                pack_rows(
                    tokens[direction],
                    begin,
                    self.reuse_length,
                    a_length,
                    b_begin,
                    self.sequence_length,
                    self._special_ids,
                )
            )
        return [self._rows.by_row(tf.stack(directions)) for directions in zip(*ids, strict=True)]

    def _follow_document_end(self, begins, tokens):
        """Whether a document ends in the tokens that the last batch added to the memory."""
        offsets = tf.range(-self.reuse_length, 0, dtype=begins.dtype)
        positions = tf.maximum(begins[..., tf.newaxis] + offsets, 0)
        remembered = tf.gather(tokens, positions, batch_dims=1)
        ends = tf.reduce_any(remembered == self._document_end, axis=-1, keepdims=True)
        return self._rows.by_row(ends)[:, 0]

    def _segments(self, boundaries, begin, draws):
        if not self.segment_pairs:
            return tf.fill(begin.shape, tf.constant(self._segments_length, tf.int64)), begin
        a_begin = begin + self.reuse_length
        return sample_segment_pairs(boundaries, a_begin, self._segments_length, draws)[:2]

    def _assemble(self, step, resets_memory, token_ids, segment_ids):
        num_draws = (self._sample_targets.num_draws, self._num_order_draws)
        draws = self._draws(step, sum(num_draws), "float32")
        target_draws, order_draws = tf.split(draws, num_draws, axis=1)
        return assemble_batch(
            self._generator,
            token_ids,
            segment_ids,
            self._sample_targets(token_ids, self._rows.reverse, target_draws),
            resets_memory,
            order_draws,
        )

    def _draws(self, step, count, dtype):
        # Drawn for the whole batch and then sliced, so that a row does not depend on the number
        # of hosts.
        shape = (self.batch_size, count)
        return uniform_draws(shape, self.seed, step, dtype)[self._rows.rows]


def _opened(records):
    if isinstance(records, (str, os.PathLike)):
        return TokenRecords(records)
    if not hasattr(records, "shards"):
        raise ValueError(
            "`records` must be the `TokenRecords` that `write_token_records` returns, or the path "
            f"of their directory. Received: records={records!r}"
        )
    return records
