"""TFRecord files with errors that name the file."""

import os
import struct

import tensorflow as tf

# TensorFlow's format: uint64 length, its uint32 checksum, the data, their uint32 checksum.
_HEADER = struct.Struct("<QI")
_FOOTER_BYTES = 4
_RECORDS_A_READ = 64


def count_records(path):
    """Counts the records of a TFRecord file by their lengths, without reading their contents.

    Args:
        path: str, a TFRecord file, not compressed.

    Returns:
        int.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file ends inside a record, or is no TFRecord file.
    """
    if not tf.io.gfile.exists(path):
        raise FileNotFoundError(f"There is no record file at {path!r}.")
    size, offset, count = tf.io.gfile.stat(path).length, 0, 0
    with tf.io.gfile.GFile(path, "rb") as file:
        while offset < size:
            file.seek(offset)
            header = file.read(_HEADER.size)
            if len(header) == _HEADER.size:
                offset += _HEADER.size + _HEADER.unpack(header)[0] + _FOOTER_BYTES
            if len(header) < _HEADER.size or offset > size:
                raise ValueError(
                    f"The record file {path!r} is truncated or no TFRecord file: it has {size} "
                    f"bytes, and record {count} does not end there."
                )
            count += 1
    return count


def read_records(path):
    """Reads the records of a TFRecord file one after the other and checks their checksums.

    Args:
        path: str, a TFRecord file, not compressed.

    Yields:
        bytes: a record.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged.
    """
    path = os.fspath(path)
    try:
        # Many at a time: an iterator costs more than the records do.
        for records in tf.data.TFRecordDataset(path).batch(_RECORDS_A_READ).as_numpy_iterator():
            yield from records
    except tf.errors.NotFoundError as error:
        raise FileNotFoundError(f"There is no record file at {path!r}.") from error
    except tf.errors.DataLossError as error:
        raise ValueError(f"The record file {path!r} is damaged: {error.message}") from error
