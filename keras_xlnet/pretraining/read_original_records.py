"""Batches from the TFRecord files that the original's data_utils.py wrote."""

import itertools

import numpy as np
import tensorflow as tf

from keras_xlnet.layers import PermutationMaskGenerator
from keras_xlnet.pretraining.original_records import (
    batches_of_records,
    open_original_records,
    parse_original_records,
)
from keras_xlnet.pretraining.permutation_features import permutation_features, uniform_draws


def read_original_records(
    record_info, num_predictions=None, permutation_length=None, num_passes=1, seed=0
):
    """Reads records that the original's `data_utils.py` wrote, as batches for `model.fit`.

    Segments and targets are those in the records; the factorization orders are drawn here, new
    ones in every pass. Batch size, sequence length, reuse length and number of predictions are in
    the names of the files.

    Args:
        record_info: path of a `record_info-*.json`, a glob pattern of them, or the directory with
            all of them.
        num_predictions: int, number of targets a row, and padded to if a row has fewer. None for
            the number in the names, which must be given where they have none (`fnp-`): there
            targets of a row beyond that many stay ordinary tokens.
        permutation_length: int, the tokens that one permutation orders, the original's
            `perm_size`. None for as many as are reused.
        num_passes: int, how often to read the files, each time in another order if there are
            several. None for ever.
        seed: int, decides the factorization orders and those of the files.

    Returns:
        A `tf.data.Dataset` of `(inputs, labels, sample_weight)` as `PermutationBatches` gives
        them, batches in the order in which memory goes on; `reset_memory` is 1 in the first
        batch of each file.

    Raises:
        FileNotFoundError: there are no records, or a file of them is missing.
        ValueError: an argument does not fit the records; a file is damaged, or not named as the
            original names it; the records were made with different settings.
        tf.errors.InvalidArgumentError: in iteration, a file has a damaged record; it is named.

    Example:

    >>> from keras_xlnet.pretraining import read_original_records
    >>> dataset = read_original_records("tests/golden/pretrain_data/bi/tfrecords")
    >>> inputs, labels, sample_weight = next(iter(dataset))
    >>> inputs["token_ids"].shape, inputs["permutation_mask"].shape, labels.shape
    (TensorShape([4, 32]), TensorShape([4, 32, 32]), TensorShape([4, 6]))

    Source: `get_input_fn` and `get_dataset` in the original's `data_utils.py`.
    """
    records = open_original_records(record_info)
    num_predictions = _number_of_predictions(num_predictions, records)
    generator = PermutationMaskGenerator(
        num_predictions,
        permutation_length=permutation_length,
        reuse_length=records.reuse_length,
    )
    num_draws = generator.num_draws(records.sequence_length)

    def batch(serialized, is_first, step):
        parsed = parse_original_records(serialized, records.sequence_length)
        return permutation_features(
            generator,
            parsed["token_ids"],
            parsed["segment_ids"],
            parsed["target_mask"],
            tf.fill([records.batch_size], is_first),
            uniform_draws((records.batch_size, num_draws), seed, step),
        )

    dataset = tf.data.Dataset.from_generator(
        lambda: _batches(records, num_passes, seed),
        output_signature=(
            tf.TensorSpec((records.batch_size,), tf.string),
            tf.TensorSpec((), tf.bool),
            tf.TensorSpec((), tf.int64),
        ),
    )
    cardinality = tf.data.INFINITE_CARDINALITY
    if num_passes is not None:
        cardinality = records.num_batches * num_passes
    dataset = dataset.map(batch, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(cardinality))
    return dataset.prefetch(tf.data.AUTOTUNE)


def _batches(records, num_passes, seed):
    step = itertools.count()
    for index in itertools.count() if num_passes is None else range(num_passes):
        order = np.random.default_rng([seed, index]).permutation(len(records.files))
        files = [records.files[position] for position in order]
        for batch, is_first in batches_of_records(files, records.batch_size):
            yield batch, is_first, next(step)


def _number_of_predictions(given, records):
    in_names = records.num_predictions
    if given is None and in_names is None:
        raise ValueError(
            "num_predictions must be given for records without a fixed number of them (no `fnp-` "
            "in their names). Received: None"
        )
    if given is not None and in_names is not None and given < in_names:
        raise ValueError(
            f"num_predictions must be at least the {in_names} of the records. Received: {given}"
        )
    return in_names if given is None else given
