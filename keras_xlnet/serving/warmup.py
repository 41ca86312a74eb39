"""Warm-up requests, which TF Serving runs when it loads a model."""

import itertools
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

# TF Serving refuses to load a model with more (`kMaxNumRecords` in saved_model_warmup_util.h).
_MAX_REQUESTS = 1000


def make_warmup_requests(texts: Sequence[str | bytes], batch_size: int | None = None) -> list[Any]:
    """Returns prediction requests to the signature `serving_default`.

    Args:
        texts: List of strings or bytes.
        batch_size: Int, number of texts per request. The last request is completed with the first
            texts. `None` for one text per request.

    Returns:
        A list of `PredictionLog` protos. They contain no name of a model: TF Serving runs them on
        the model in whose directory they are.

    Raises:
        ImportError: If tensorflow-serving-api is not installed.
        ValueError: If `texts` is invalid or makes too many requests.

    Example:

    >>> from keras_xlnet.serving.warmup import make_warmup_requests
    >>> requests = make_warmup_requests(["a", "b", "c"], batch_size=2)
    >>> [list(r.predict_log.request.inputs["text"].string_val) for r in requests]
    [[b'a', b'b'], [b'c', b'a']]

    Source: `saved_model_warmup.md` and `saved_model_warmup_util.cc` of TF Serving.
    """
    texts = _check_texts(texts)
    size = batch_size or 1
    count = math.ceil(len(texts) / size)
    if count > _MAX_REQUESTS:
        raise ValueError(
            f"`warmup_texts` must fit into {_MAX_REQUESTS} requests of {size} texts. "
            f"Received: {len(texts)} texts"
        )
    repeated = itertools.cycle(texts)
    return [_request(list(itertools.islice(repeated, size))) for _ in range(count)]


def write_warmup_requests(requests: Sequence[Any], saved_model: pathlib.Path) -> None:
    """Writes requests to the directory of a SavedModel and verifies them by reading them back.

    Args:
        requests: List of `PredictionLog` protos.
        saved_model: `pathlib.Path` of the SavedModel.

    Raises:
        OSError: If the file does not contain the requests.
    """
    path = saved_model / "assets.extra" / "tf_serving_warmup_requests"
    path.parent.mkdir()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for request in requests:
            writer.write(request.SerializeToString())
    records = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    # TF Serving does not load a model if a request cannot be read.
    if [type(requests[0]).FromString(record) for record in records] != requests:
        raise OSError(f"{path} does not contain the warm-up requests that were written")


def _request(texts):
    predict_pb2, prediction_log_pb2 = _protos()
    request = predict_pb2.PredictRequest()
    request.model_spec.signature_name = "serving_default"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(texts, tf.string))
    return prediction_log_pb2.PredictionLog(
        predict_log=prediction_log_pb2.PredictLog(request=request)
    )


def _protos():
    try:
        from tensorflow_serving.apis import predict_pb2, prediction_log_pb2
    except ImportError as error:
        raise ImportError(
            "`warmup_texts` needs tensorflow-serving-api, which is not installed: "
            'pip install "xlnet-keras[serving]"'
        ) from error
    return predict_pb2, prediction_log_pb2


def _check_texts(texts):
    is_text = isinstance(texts, (str, bytes))
    texts = texts if is_text else list(texts)
    if is_text or not texts or not all(isinstance(text, (str, bytes)) for text in texts):
        raise ValueError(
            "`warmup_texts` must be a non-empty list of str or bytes. Received: "
            f"warmup_texts={texts!r}"
        )
    return texts
