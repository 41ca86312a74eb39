"""Warm-up requests, which TF Serving runs when it loads a model."""

import itertools
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_xlnet.lazy_modules import requires_extra

# TF Serving refuses to load a model with more (`kMaxNumRecords` in saved_model_warmup_util.h).
_MAX_REQUESTS = 1000


def make_warmup_requests(
    warmup: Sequence[str | bytes] | dict[str, Any],
    inputs: Sequence[tf.TensorSpec],
    batch_size: int | None = None,
    signature_name: str = "serving_default",
) -> list[Any]:
    """Returns prediction requests to a signature.

    Args:
        warmup: Dict of lists, a column for each input, or a list for a single input. Elements are
            strings or bytes, or lists of these.
        inputs: List of `tf.TensorSpec`, the inputs of the signature.
        batch_size: Int, number of rows per request. The last request is filled up with the first
            rows. `None` for one row per request.
        signature_name: String.

    Returns:
        A list of `PredictionLog` protos. They contain no model name: TF Serving runs them on
        the model of the directory that contains them.

    Raises:
        ImportError: If tensorflow-serving-api is not installed.
        ValueError: If `warmup` is invalid or makes too many requests.

    Example:

    >>> import tensorflow as tf
    >>> from keras_xlnet.serving.warmup import make_warmup_requests
    >>> spec = tf.TensorSpec((None,), tf.string, "text")
    >>> requests = make_warmup_requests(["a", "b", "c"], [spec], batch_size=2)
    >>> [list(r.predict_log.request.inputs["text"].string_val) for r in requests]
    [[b'a', b'b'], [b'c', b'a']]

    Source: `saved_model_warmup.md` and `saved_model_warmup_util.cc` of TF Serving.
    """
    columns = _columns(warmup, {spec.name: spec.shape.rank for spec in inputs})
    (num_rows,) = {len(column) for column in columns.values()}
    size = batch_size or 1
    count = math.ceil(num_rows / size)
    if count > _MAX_REQUESTS:
        raise ValueError(
            f"`warmup` must fit into {_MAX_REQUESTS} requests of {size} rows. "
            f"Received: {num_rows} rows"
        )
    repeated = {name: itertools.cycle(column) for name, column in columns.items()}
    return [
        _request(
            {name: list(itertools.islice(rows, size)) for name, rows in repeated.items()},
            signature_name,
        )
        for _ in range(count)
    ]


def write_warmup_requests(requests: Sequence[Any], saved_model: pathlib.Path) -> None:
    """Writes requests to the directory of a SavedModel and verifies them by reading them back.

    Args:
        requests: List of `PredictionLog` protos.
        saved_model: `pathlib.Path` of the SavedModel.

    Raises:
        OSError: If the file does not contain the requests.
    """
    path = saved_model / "assets.extra" / "tf_serving_warmup_requests"
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for request in requests:
            writer.write(request.SerializeToString())
    records = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    # TF Serving does not load a model if a request cannot be read.
    if [type(requests[0]).FromString(record) for record in records] != requests:
        raise OSError(f"{path} does not contain the warm-up requests that were written")


def _request(columns, signature_name):
    predict_pb2, prediction_log_pb2 = _protos()
    request = predict_pb2.PredictRequest()
    request.model_spec.signature_name = signature_name
    for name, rows in columns.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(rows, tf.string))
    return prediction_log_pb2.PredictionLog(
        predict_log=prediction_log_pb2.PredictLog(request=request)
    )


def _protos():
    with requires_extra("serving", "`warmup`"):
        from tensorflow_serving.apis import predict_pb2, prediction_log_pb2
    return predict_pb2, prediction_log_pb2


def _columns(warmup, ranks):
    """A dict of lists of one length. `ranks` are the ranks of the inputs, by name."""
    if not isinstance(warmup, dict) and len(ranks) == 1:
        warmup = dict.fromkeys(ranks, warmup)
    columns = warmup if isinstance(warmup, dict) else {}
    columns = {name: x if isinstance(x, (str, bytes)) else list(x) for name, x in columns.items()}
    is_valid = set(columns) == set(ranks) and all(
        column and _are_texts(column, ranks[name]) for name, column in columns.items()
    )
    if not is_valid or len(set(map(len, columns.values()))) > 1:
        raise ValueError(
            f"`warmup` must have a non-empty list of str or bytes for {', '.join(ranks)}, of equal "
            f"lengths. Received: warmup={warmup!r}"
        )
    return columns


def _are_texts(x, rank):
    """Whether `x` are nested lists of texts, of this rank."""
    if rank == 0:
        return isinstance(x, (str, bytes))
    return isinstance(x, list) and all(_are_texts(item, rank - 1) for item in x)
