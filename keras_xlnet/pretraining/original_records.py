"""Batches from the TFRecord files that the original's `data_utils.py` wrote."""

import itertools

import numpy as np
import tensorflow as tf

from keras_xlnet.compat.generated_dataset import generated_dataset
from keras_xlnet.compat.prefetched import prefetched
from keras_xlnet.layers import PermutationMaskGenerator
from keras_xlnet.models.keeps_memory import record_reading
from keras_xlnet.pretraining.batch_assembly import assemble_batch
from keras_xlnet.pretraining.original_record_files import (
    batches_of_records,
    open_original_records,
    parse_original_records,
)
from keras_xlnet.pretraining.tf_data_ops import uniform_draws
from keras_xlnet.types import PathLike


def read_original_records(
    record_info: PathLike,
    num_predictions: int | None = None,
    permutation_length: int | None = None,
    num_passes: int | None = 1,
    seed: int = 0,
) -> tf.data.Dataset:
    """Reads TFRecord files that the original's `data_utils.py` wrote, as batches for `model.fit`.

    Segments and targets come from the records. The factorization orders are drawn here, new ones
    in every pass. Batch size, sequence length, reuse length and number of predictions are part of
    the file names.

    Args:
        record_info: Path of a `record_info-*.json` file, a glob pattern for several of them, or
            their directory.
        num_predictions: Int, number of targets per row. Rows with fewer targets are padded. `None`
            for the number in the file names. If the names contain none (no `fnp-`), it must be
            given, and further targets of a row become ordinary tokens.
        permutation_length: Int, length of the blocks that are permuted, the original's
            `perm_size`. `None` for the reuse length.
        num_passes: Int, the number of passes over the files, each in another order. `None` to
            repeat endlessly.
        seed: Int, seed of the factorization orders and of the order of the files.

    Returns:
        A `tf.data.Dataset` of `(inputs, labels, sample_weight)` as `PermutationBatches` returns
        them. Memory continues from batch to batch; `reset_memory` is 1 in the first batch of each
        file. `fit` compares reuse length and direction with the backbone, as for
        `PermutationBatches`.

    Raises:
        FileNotFoundError: If no records are found, or a TFRecord file is missing.
        ValueError: If an argument does not fit the records, a file is damaged or does not have a
            name of the original, or the files have different settings.
        tf.errors.InvalidArgumentError: During iteration, if a record is damaged. The message names
            the file.

    Example:

    >>> from keras_xlnet.pretraining import read_original_records
    >>> dataset = read_original_records("tests/golden/pretrain_data/bi/tfrecords")
    >>> inputs, labels, sample_weight = next(iter(dataset))
    >>> inputs["token_ids"].shape, inputs["permutation_mask"].shape, labels.shape
    (TensorShape([4, 32]), TensorShape([4, 32, 32]), TensorShape([4, 6]))

    Source: `get_input_fn` and `get_dataset` in the original's `data_utils.py`.
    """
    records = open_original_records(record_info)
    num_predictions = _check_num_predictions(num_predictions, records)
    generator = PermutationMaskGenerator(
        num_predictions,
        permutation_length=permutation_length,
        reuse_length=records.reuse_length,
    )
    num_draws = generator.num_draws(records.sequence_length)

    def make_batch(serialized, is_first, step):
        parsed = parse_original_records(serialized, records.sequence_length)
        return assemble_batch(
            generator,
            parsed["token_ids"],
            parsed["segment_ids"],
            parsed["target_mask"],
            tf.fill([records.batch_size], is_first),
            uniform_draws((records.batch_size, num_draws), seed, step),
        )

    dataset = generated_dataset(
        lambda: _serialized_batches(records, num_passes, seed),
        (
            tf.TensorSpec((records.batch_size,), tf.string),
            tf.TensorSpec((), tf.bool),
            tf.TensorSpec((), tf.int64),
        ),
    )
    cardinality = tf.data.INFINITE_CARDINALITY
    if num_passes is not None:
        cardinality = records.num_batches * num_passes
    dataset = dataset.map(make_batch, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(cardinality))
    dataset = prefetched(dataset)
    return record_reading(dataset, records.reuse_length, records.bidirectional_data)


def _serialized_batches(records, num_passes, seed):
    """Yields batches of serialized records, whether each is the first of its file, and its step."""
    step = itertools.count()
    for index in itertools.count() if num_passes is None else range(num_passes):
        order = np.random.default_rng([seed, index]).permutation(len(records.files))
        files = [records.files[position] for position in order]
        for batch, is_first in batches_of_records(files, records.batch_size):
            yield batch, is_first, next(step)


def _check_num_predictions(num_predictions, records):
    if num_predictions is None and records.num_predictions is None:
        raise ValueError(
            "`num_predictions` must be given for records whose names do not contain it (no "
            "`fnp-`). Received: num_predictions=None"
        )
    if num_predictions is None:
        return records.num_predictions
    if records.num_predictions is not None and num_predictions < records.num_predictions:
        raise ValueError(
            f"`num_predictions` must be at least {records.num_predictions}, the number of the "
            f"records. Received: num_predictions={num_predictions}"
        )
    return num_predictions
