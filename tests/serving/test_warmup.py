import os
import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.serving.warmup import make_warmup_requests, write_warmup_requests

prediction_log_pb2 = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")


def test_requests_are_in_the_saved_model_and_run(spam):
    from tests.serving.stand_in_server import StandInServer

    path = spam.directory / "assets.extra" / "tf_serving_warmup_requests"
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    logs = [prediction_log_pb2.PredictionLog.FromString(record) for record in records]
    assert [log.WhichOneof("log_type") for log in logs] == ["predict_log"] * len(spam.texts)
    server = StandInServer("spam", spam.directory)
    responses = [server.predict(log.predict_log.request) for log in logs]
    rows = [tf.make_ndarray(response.outputs["probabilities"]) for response in responses]
    np.testing.assert_allclose(np.concatenate(rows), spam.probabilities, atol=1e-6)


def make_requests(texts, batch_size=None):
    return make_warmup_requests(texts, [tf.TensorSpec((None,), tf.string, "text")], batch_size)


def texts_of(requests):
    for request in requests:
        assert request.predict_log.request.model_spec.signature_name == "serving_default"
    return [list(r.predict_log.request.inputs["text"].string_val) for r in requests]


def test_one_text_per_request():
    texts = ["", "\u597d", b"\xff\x00"]
    assert texts_of(make_requests(texts)) == [[b""], ["\u597d".encode()], [b"\xff\x00"]]


def test_static_batches_are_completed():
    assert texts_of(make_requests(["a", "b", "c"], 2)) == [[b"a", b"b"], [b"c", b"a"]]
    assert texts_of(make_requests(["a"], 3)) == [[b"a"] * 3]
    assert texts_of(make_requests(["\u597d", b"\xff"], 2)) == [["\u597d".encode(), b"\xff"]]


def test_no_more_requests_than_tf_serving_accepts():
    assert len(make_requests(["a"] * 1000)) == 1000
    assert len(make_requests(["a"] * 1001, 2)) == 501
    with pytest.raises(ValueError, match="into 1000 requests of 1 rows. Received: 1001 rows"):
        make_requests(["a"] * 1001)


@pytest.mark.parametrize("texts", ["a", b"a", [], ["a", 1], [None], [["a"]]])
def test_other_values_than_texts_are_refused(texts):
    with pytest.raises(ValueError, match="`warmup` must have a non-empty list of str or bytes"):
        make_requests(texts)


def test_error_without_tensorflow_serving_api(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tensorflow_serving")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorflow_serving", None)
    with pytest.raises(ImportError, match=r"'tensorflow_serving'.*\.\[serving\]"):
        make_requests(["a"])


def test_requests_that_cannot_be_read_back_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(tf.io.TFRecordWriter, "write", lambda self, record: None)
    with pytest.raises(OSError, match="does not contain the warm-up requests that were written"):
        write_warmup_requests(make_requests(["a"]), tmp_path)
    assert os.listdir(tmp_path) == ["assets.extra"]
