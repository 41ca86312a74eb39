"""The files that the original's `data_utils.py` writes: their names, checks and contents."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_xlnet.pretraining.record_metadata import read_json
from keras_xlnet.pretraining.tfrecord_files import count_records, read_records
from keras_xlnet.types import PathLike

_NAME = re.compile(
    r"record_info-(?P<split>\w+)-(?P<task>\d+)-(?P<pass_id>\d+)"
    r"\.bsz-(?P<batch_size>\d+)\.seqlen-(?P<sequence_length>\d+)(\.reuse-(?P<reuse_length>\d+))?"
    r"(?P<uncased>\.uncased)?\.(?P<direction>bi|uni)\.alpha-\d+\.beta-\d+"
    r"(\.fnp-(?P<num_predictions>\d+))?\.json"
)
_KEYS = ("input", "target", "seg_id", "is_masked")


class OriginalRecords(NamedTuple):
    """The settings in the names of `record_info` files, and the TFRecord files that they list."""

    batch_size: int
    sequence_length: int
    reuse_length: int
    num_predictions: int | None
    bidirectional_data: bool
    num_batches: int
    files: tuple[str, ...]


def open_original_records(record_info: PathLike) -> OriginalRecords:
    """Finds the records of the original and checks them without reading all of their contents.

    Args:
        record_info: See `read_original_records`.

    Returns:
        `OriginalRecords`.

    Raises:
        FileNotFoundError: If nothing is found, or a TFRecord file is missing.
        ValueError: If the files have different settings, or one of them is damaged.
    """
    paths = _find(os.fspath(record_info))
    names = [_parse_name(path) for path in paths]
    for path, name in zip(paths, names, strict=True):
        if name != names[0]:
            raise ValueError(
                "`record_info` must name records with equal batch size, sequence length, "
                f"direction and number of predictions. Received: {paths[0]!r} and {path!r}"
            )
    settings = names[0]
    checked = [
        _check_files(path, settings["batch_size"], settings["sequence_length"]) for path in paths
    ]
    return OriginalRecords(
        **settings,
        num_batches=sum(num_batches for num_batches, _ in checked),
        files=tuple(file for _, files in checked for file in files),
    )


def batches_of_records(files: Sequence[str], batch_size: int) -> Iterator[tuple[list[bytes], bool]]:
    """Yields lists of `batch_size` records, and whether each is the first batch of its file.

    Raises:
        ValueError: If a file is damaged.
    """
    for path in files:
        batch, is_first = [], True
        for record in read_records(path):
            batch.append(record)
            if len(batch) == batch_size:
                yield batch, is_first
                batch, is_first = [], False


def parse_original_records(records: tf.Tensor, sequence_length: int) -> dict[str, tf.Tensor]:
    """Parses a batch of records of the original, in the graph.

    Args:
        records: String tensor `(batch,)`.
        sequence_length: Int.

    Returns:
        Dict of `token_ids`, `segment_ids` and `next_tokens` (the original's `target`), int32
        `(batch, sequence_length)`; `target_mask`, bool `(batch, sequence_length)`; and `label`,
        int32 `(batch, 1)`, 1 where segment B follows segment A in the text.
    """
    feature = tf.io.FixedLenFeature([sequence_length], tf.int64)
    features = dict.fromkeys(_KEYS, feature) | {"label": tf.io.FixedLenFeature([1], tf.int64)}
    parsed = tf.io.parse_example(records, features)
    parsed = {name: tf.cast(value, tf.int32) for name, value in parsed.items()}
    return {
        "token_ids": parsed["input"],
        "segment_ids": parsed["seg_id"],
        "next_tokens": parsed["target"],
        "target_mask": tf.cast(parsed["is_masked"], tf.bool),
        "label": parsed["label"],
    }


def _find(record_info):
    if tf.io.gfile.isdir(record_info):
        record_info = os.path.join(record_info, "record_info-*.json")
    elif tf.io.gfile.exists(record_info):
        return [record_info]
    paths = sorted(tf.io.gfile.glob(record_info))
    if not paths:
        raise FileNotFoundError(
            f"`record_info` must match at least one file. Received: {record_info!r}"
        )
    return paths


def _parse_name(path):
    match = _NAME.fullmatch(os.path.basename(path))
    if not match:
        raise ValueError(
            "`record_info` must match files with the names that the original gives them, such as "
            "record_info-train-0-0.bsz-32.seqlen-512.reuse-256.bi.alpha-6.beta-1.fnp-85.json. "
            f"Received: {path!r}"
        )
    sequence_length = int(match["sequence_length"])
    return {
        "batch_size": int(match["batch_size"]),
        "sequence_length": sequence_length,
        "reuse_length": int(match["reuse_length"] or sequence_length // 2),
        "num_predictions": int(match["num_predictions"]) if match["num_predictions"] else None,
        "bidirectional_data": match["direction"] == "bi",
    }


def _check_files(path, batch_size, sequence_length):
    """Returns the number of batches and the TFRecord files that a `record_info` file lists."""
    info = read_json(path)
    if not isinstance(info.get("num_batch"), int) or not isinstance(info.get("filenames"), list):
        raise ValueError(f"{path!r} is damaged: it must contain `num_batch` and `filenames`.")
    # The listed names contain the directory in which the original ran.
    directory = os.path.dirname(path)
    files = [os.path.join(directory, os.path.basename(name)) for name in info["filenames"]]
    counts = [count_records(file) for file in files]
    if sum(counts) != info["num_batch"] * batch_size:
        raise ValueError(
            f"{path!r} lists {info['num_batch']} batches of {batch_size} records, but {files} "
            f"contain {sum(counts)} records."
        )
    for file, count in zip(files, counts, strict=True):
        if count % batch_size:
            raise ValueError(
                f"{file!r} must contain whole batches of {batch_size} records. Received: {count} "
                "records"
            )
        if count:
            _check_first_record(file, sequence_length)
    return info["num_batch"], files


def _check_first_record(path, sequence_length):
    record = next(read_records(path))
    try:
        feature = tf.train.Example.FromString(record).features.feature
    except Exception as error:  # DecodeError of protobuf is not public in TensorFlow.
        raise ValueError(f"The records of {path!r} are not `tf.train.Example` protos.") from error
    for key in _KEYS:
        length = len(feature[key].int64_list.value)
        if length != sequence_length:
            raise ValueError(
                f"The records of {path!r} must have {sequence_length} integers of {key!r}, as in "
                f"the name of the file. Received: {length}"
            )
