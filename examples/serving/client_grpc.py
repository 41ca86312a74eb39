"""Classifies texts with TF Serving over gRPC.

    pip install ".[serving]"
    python examples/serving/client_grpc.py "you won a prize" "lunch at noon?"

prints one JSON object per text, with the text and the outputs of the model. Takes some seconds,
mainly to import TensorFlow, which the protos of tensorflow-serving-api need.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("server", "localhost:8500", "Host and gRPC port of TF Serving.")
flags.DEFINE_string("model", "spam", "Name of the model.")
flags.DEFINE_float("timeout", 10.0, "Seconds to wait for an answer.", lower_bound=0)


def classify(texts, server, model, timeout):
    """Returns a dict of outputs for each text."""
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = "serving_default"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(texts, tf.string))
    with grpc.insecure_channel(server) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        try:
            response = stub.Predict(request, timeout=timeout)
        except grpc.RpcError as error:
            raise ConnectionError(_message(error, server)) from error
    outputs = {name: tf.make_ndarray(proto) for name, proto in response.outputs.items()}
    return [
        {name: _plain(values[row]) for name, values in outputs.items()} for row in range(len(texts))
    ]


def main(argv):
    texts = argv[1:]
    if not texts:
        return "pass at least one text"
    try:
        rows = classify(texts, FLAGS.server, FLAGS.model, FLAGS.timeout)
    except ImportError as error:
        return f'{error}: pip install ".[serving]"'
    except ConnectionError as error:
        return str(error)
    for text, outputs in zip(texts, rows, strict=True):
        print(json.dumps({"text": text, **outputs}, ensure_ascii=False))
    return None


def _message(error, server):
    details = " ".join(error.details().split())
    if error.code().name in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
        return f"cannot reach {server}: {details}"
    return f"{server} refused the request: {error.code().name}, {details}"


def _plain(value):
    """Converts a row of a tensor to a value for JSON."""
    return value.decode() if isinstance(value, bytes) else value.tolist()


if __name__ == "__main__":
    sys.exit(app.run(main))
