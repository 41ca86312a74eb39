"""Reads TFRecord files, with errors that name the file."""

import os
import struct
from collections.abc import Iterator

import tensorflow as tf

from keras_xlnet.types import PathLike

# The format of a record: uint64 length, its uint32 checksum, the data, their uint32 checksum.
_HEADER = struct.Struct("<QI")
_FOOTER_BYTES = 4
_RECORDS_PER_READ = 64


def count_records(path: PathLike) -> int:
    """Counts the records of a TFRecord file without reading their contents.

    Args:
        path: String, path of an uncompressed TFRecord file.

    Returns:
        Int.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file ends inside a record, or is not a TFRecord file.
    """
    if not tf.io.gfile.exists(path):
        raise FileNotFoundError(f"The record file {path!r} does not exist.")
    size, offset, count = tf.io.gfile.stat(path).length, 0, 0
    with tf.io.gfile.GFile(path, "rb") as file:
        while offset < size:
            file.seek(offset)
            header = file.read(_HEADER.size)
            if len(header) == _HEADER.size:
                offset += _HEADER.size + _HEADER.unpack(header)[0] + _FOOTER_BYTES
            if len(header) < _HEADER.size or offset > size:
                raise ValueError(
                    f"The record file {path!r} is truncated or not a TFRecord file: it has {size} "
                    f"bytes and ends inside record {count}."
                )
            count += 1
    return count


def read_records(path: PathLike) -> Iterator[bytes]:
    """Reads the records of a TFRecord file in order and verifies their checksums.

    Args:
        path: Path of an uncompressed TFRecord file.

    Yields:
        Bytes, a record.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file is damaged.
    """
    path = os.fspath(path)
    try:
        # In batches: a step of the iterator takes longer than reading a record.
        for records in tf.data.TFRecordDataset(path).batch(_RECORDS_PER_READ).as_numpy_iterator():
            yield from records
    except tf.errors.NotFoundError as error:
        raise FileNotFoundError(f"The record file {path!r} does not exist.") from error
    except tf.errors.DataLossError as error:
        raise ValueError(f"The record file {path!r} is damaged: {error.message}") from error
