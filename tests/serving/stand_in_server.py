"""A test server with the gRPC and REST interfaces of TF Serving, for one SavedModel.

It uses the gRPC stubs of TF Serving, but has no versions, no batching and another loader.
"""

import base64
import contextlib
import http.server
import json
import re
import threading
from concurrent import futures

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc


class StandInServer(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Serves a SavedModel under a name, with the error messages of TF Serving."""

    def __init__(self, name, directory):
        self.name = name
        self.model = tf.saved_model.load(directory)

    def signature(self, name):
        try:
            return self.model.signatures[name or "serving_default"]
        except KeyError:
            raise ValueError(f'Serving signature key "{name}" not found.') from None

    def predict(self, request):
        """Returns the `PredictResponse` to a `PredictRequest`."""
        inputs = {key: tf.constant(tf.make_ndarray(p)) for key, p in request.inputs.items()}
        outputs = self.signature(request.model_spec.signature_name)(**inputs)
        response = predict_pb2.PredictResponse()
        for key, value in outputs.items():
            response.outputs[key].CopyFrom(tf.make_tensor_proto(value.numpy()))
        return response

    def Predict(self, request, context):  # noqa: N802, the name in the service
        if request.model_spec.name != self.name:
            message = f"Servable not found for request: Latest({request.model_spec.name})"
            context.abort(grpc.StatusCode.NOT_FOUND, message)
        try:
            return self.predict(request)
        except (TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    def predict_json(self, body):
        """Returns the JSON object for a `:predict` request."""
        signature = self.signature(body.get("signature_name"))
        specs = signature.structured_input_signature[1]
        if ("instances" in body) == ("inputs" in body):
            raise ValueError("Missing 'inputs' or 'instances' key")
        if "inputs" in body:
            columns = body["inputs"]
            if not isinstance(columns, dict):
                columns = {next(iter(specs)): columns}
            outputs = self._run(signature, specs, columns)
            return {"outputs": next(iter(outputs.values())) if len(outputs) == 1 else outputs}
        rows = body["instances"]
        if len(specs) == 1:
            (key,) = specs
            rows = [row if isinstance(row, dict) and key in row else {key: row} for row in rows]
        outputs = self._run(signature, specs, {key: [row[key] for row in rows] for key in specs})
        if len(outputs) == 1:
            return {"predictions": next(iter(outputs.values()))}
        rows = zip(*outputs.values(), strict=True)
        return {"predictions": [dict(zip(outputs, row, strict=True)) for row in rows]}

    def _run(self, signature, specs, columns):
        inputs = {
            key: tf.constant([_decoded(value) for value in columns[key]], spec.dtype)
            for key, spec in specs.items()
        }
        outputs = {key: value.numpy() for key, value in signature(**inputs).items()}
        return {key: _texts(v) if v.dtype == object else v.tolist() for key, v in outputs.items()}


def _decoded(value):
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else value


def _texts(values):
    return np.vectorize(bytes.decode, otypes=[object])(values).tolist()


class _RestHandler(http.server.BaseHTTPRequestHandler):
    stand_in = None

    def do_POST(self):  # noqa: N802, the name in http.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        name = re.fullmatch(r"/v1/models/([^/:]+)(?:/versions/\d+)?:predict", self.path)
        if name is None:
            return self._answer(404, {"error": f"Malformed request: POST {self.path}"})
        if name[1] != self.stand_in.name:
            message = f"Servable not found for request: Latest({name[1]})"
            return self._answer(404, {"error": message})
        try:
            return self._answer(200, self.stand_in.predict_json(json.loads(body)))
        except (KeyError, TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
            return self._answer(400, {"error": str(error)})

    def _answer(self, status, content):
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serve_grpc(stand_in):
    """Serves gRPC on a free local port; yields "host:port"."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(stand_in, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


@contextlib.contextmanager
def serve_rest(stand_in):
    """Serves REST on a free local port; yields the URL."""
    handler = type("Handler", (_RestHandler,), {"stand_in": stand_in})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
