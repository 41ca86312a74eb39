"""The example clients against a test server with the PredictionService stubs of TF Serving."""

import base64
import json
import os
import pathlib
import socket
import subprocess
import sys
import urllib.request

import numpy as np
import pytest
import tensorflow as tf
from absl import app

grpc = pytest.importorskip("grpc")
pytest.importorskip("tensorflow_serving")

from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc  # noqa: E402

from tests.serving.conftest import PAIRS  # noqa: E402
from tests.serving.stand_in_server import StandInServer, serve_grpc, serve_rest  # noqa: E402

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "serving"
sys.path.insert(0, str(EXAMPLES))
import client_grpc  # noqa: E402

# Without bytes that are invalid in a command line.
TEXTS = ["win a free prize now", "see you at lunch", "", "r\u00e9sum\u00e9 \u4f60\u597d"]


@pytest.fixture(scope="module")
def stand_in(spam):
    return StandInServer("spam", spam.directory)


@pytest.fixture(scope="module")
def grpc_server(stand_in):
    with serve_grpc(stand_in) as address:
        yield address


@pytest.fixture(scope="module")
def rest_server(stand_in):
    with serve_rest(stand_in) as url:
        yield url


@pytest.fixture
def closed_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def start(script, *arguments):
    environment = {**os.environ, "no_proxy": "127.0.0.1", "PYTHONUTF8": "1"}
    return subprocess.Popen(
        [sys.executable, str(EXAMPLES / script), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def finish(process):
    output, errors = process.communicate(timeout=120)
    return process.returncode, output, errors


def check_answers(output, spam):
    rows = [json.loads(line) for line in output.splitlines()]
    assert [row["text"] for row in rows] == TEXTS
    expected = spam.model.predict(TEXTS, verbose=0)
    np.testing.assert_allclose([row["probabilities"] for row in rows], expected, atol=1e-6)
    names = spam.model.class_names
    assert [row["label"] for row in rows] == [
        names[int(p >= spam.threshold)] for p in expected[:, 1]
    ]


def grpc_error(capfd, *arguments):
    """What the client exits with, in this process: the import of TensorFlow takes seconds."""
    with pytest.raises(SystemExit) as end:
        app.run(client_grpc.main, ["client_grpc.py", *arguments, "a"])
    assert capfd.readouterr().out == ""
    # Python prints a string, and exits with 1.
    assert isinstance(end.value.code, str) and end.value.code.count("\n") == 0
    return end.value.code


def test_grpc_client(grpc_server, closed_port, spam, capfd):
    code, output, errors = finish(start("client_grpc.py", f"--server={grpc_server}", *TEXTS))
    assert code == 0, errors
    check_answers(output, spam)
    assert grpc_error(capfd, f"--server={grpc_server}", "--model=ham") == (
        f"{grpc_server} refused the request: NOT_FOUND, Servable not found for request: Latest(ham)"
    )
    assert grpc_error(capfd, f"--server=127.0.0.1:{closed_port}").startswith(
        f"cannot reach 127.0.0.1:{closed_port}: "
    )


def test_rest_client(rest_server, spam):
    code, output, errors = finish(start("client_rest.py", f"--server={rest_server}/", *TEXTS))
    assert (code, errors) == (0, "")
    check_answers(output, spam)


def rest_error(*arguments):
    code, output, errors = finish(start("client_rest.py", *arguments, "a"))
    assert (code, output) == (1, "") and len(errors.splitlines()) == 1
    return errors


def test_rest_client_prints_errors_in_one_line(rest_server, closed_port):
    assert rest_error(f"--server=http://127.0.0.1:{closed_port}").startswith(
        f"cannot reach http://127.0.0.1:{closed_port}: [Errno"
    )
    assert rest_error(f"--server={rest_server}", "--model=ham") == (
        f"{rest_server} refused the request: HTTP 404, "
        "Servable not found for request: Latest(ham)\n"
    )
    assert "is not TF Serving, or --server is not a URL" in rest_error("--server=localhost")


def predict(address, signature, **inputs):
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = "spam", signature
    for name, value in inputs.items():
        dtype = tf.string if isinstance(value, list) else None
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value, dtype))
    with grpc.insecure_channel(address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        outputs = stub.Predict(request, timeout=60).outputs
    return tf.make_ndarray(outputs["probabilities"])


def test_every_signature_over_grpc(grpc_server, spam, preprocessor):
    features = {k: v.numpy() for k, v in preprocessor(TEXTS).items()}
    expected = spam.model.predict(TEXTS, verbose=0)
    actual = predict(grpc_server, "serving_tokens", **features)
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    expected = spam.model.predict((spam.texts, PAIRS), verbose=0)
    actual = predict(grpc_server, "serving_pair", text=spam.texts, pair=PAIRS)
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    with pytest.raises(grpc.RpcError, match="INVALID_ARGUMENT"):
        predict(grpc_server, "serving_pair", text=["a", "b"], pair=["c"])


def post(server, body):
    request = urllib.request.Request(f"{server}/v1/models/spam/versions/1:predict")
    request.data = json.dumps(body).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return json.load(opener.open(request, timeout=60))


def test_rows_and_columns_over_rest(rest_server, spam):
    encoded = [
        t if isinstance(t, str) else {"b64": base64.b64encode(t).decode()} for t in spam.texts
    ]
    rows = post(rest_server, {"instances": [{"text": text} for text in encoded]})["predictions"]
    columns = post(rest_server, {"inputs": {"text": encoded}})["outputs"]
    assert [row["label"] for row in rows] == columns["label"] == spam.labels
    assert [row["probabilities"] for row in rows] == columns["probabilities"]
    np.testing.assert_allclose(columns["probabilities"], spam.probabilities, atol=1e-6)
    pair = {"signature_name": "serving_pair", "instances": [{"text": "a", "pair": "b"}]}
    expected = spam.model.predict((["a"], ["b"]), verbose=0)[0]
    (row,) = post(rest_server, pair)["predictions"]
    np.testing.assert_allclose(row["probabilities"], expected, atol=1e-6)
