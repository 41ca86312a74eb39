"""The requests that TF Serving runs when it loads a model."""

import itertools
import math

import tensorflow as tf

# TF Serving does not load a model with more (`kMaxNumRecords` in saved_model_warmup_util.h).
_MAX_REQUESTS = 1000


def warmup_requests(texts, batch_size=None):
    """Predict requests to `serving_default`.

    Args:
        texts: List of str or bytes.
        batch_size: Int, texts a request; the last request is filled up from the first texts.
            `None` is one.

    Returns:
        A list of `PredictionLog` protos. They do not name the model, which need not have a name
        yet; TF Serving runs them on the model that they lie in.

    Raises:
        ImportError: If tensorflow-serving-api is not installed.
        ValueError: If `texts` are not as above, or too many.

    Example:

    >>> from keras_xlnet.serving.warmup_requests import warmup_requests
    >>> requests = warmup_requests(["a", "b", "c"], batch_size=2)
    >>> [list(r.predict_log.request.inputs["text"].string_val) for r in requests]
    [[b'a', b'b'], [b'c', b'a']]

    Source: `saved_model_warmup.md` and `saved_model_warmup_util.cc` of TF Serving.
    """
    texts = _check_texts(texts)
    size = batch_size or 1
    count = math.ceil(len(texts) / size)
    if count > _MAX_REQUESTS:
        raise ValueError(
            f"`warmup_texts` must make at most {_MAX_REQUESTS} requests of {size} texts. "
            f"Received: {len(texts)} texts"
        )
    rest = itertools.cycle(texts)
    return [_request(list(itertools.islice(rest, size))) for _ in range(count)]


def write_warmup_requests(requests, saved_model):
    """Writes requests to where TF Serving looks for them, and reads them back.

    Args:
        requests: List of `PredictionLog` protos.
        saved_model: `pathlib.Path` of the SavedModel.

    Raises:
        OSError: If what was written is not what is read.
    """
    path = saved_model / "assets.extra" / "tf_serving_warmup_requests"
    path.parent.mkdir()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for request in requests:
            writer.write(request.SerializeToString())
    records = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    # A request that cannot be read keeps TF Serving from loading the model.
    if [type(requests[0]).FromString(record) for record in records] != requests:
        raise OSError(f"The warm-up requests in {path} are not those that were written")


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
    expected = "`warmup_texts` must be a list of str or bytes, not empty"
    if isinstance(texts, (str, bytes)):
        raise ValueError(f"{expected}. Received: {texts!r}")
    texts = list(texts)
    wrong = [text for text in texts if not isinstance(text, (str, bytes))]
    if not texts or wrong:
        raise ValueError(f"{expected}. Received: {wrong[0]!r} in it" if wrong else expected)
    return texts
