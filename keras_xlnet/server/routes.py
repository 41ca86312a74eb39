"""The routes of the server."""

import asyncio
import contextlib
import functools
import gzip
import importlib.resources
import io
import logging
import time
import zlib
from collections.abc import AsyncIterator
from typing import Any

import prometheus_client
from google.protobuf import any_pb2, json_format
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from tensorflow_serving.apis import get_model_metadata_pb2

from keras_xlnet.server.batcher import Batcher
from keras_xlnet.server.json_tensors import format_response, parse_json, parse_request
from keras_xlnet.server.metrics import Metrics
from keras_xlnet.server.model_store import ModelStore
from keras_xlnet.server.request_error import RequestError
from keras_xlnet.server.text_apis import OPENAI, TEXT_APIS, version_of

_LOG = logging.getLogger(__name__)
_DISCONNECTED = 499
_GZIP = ("gzip", "x-gzip")
# The page loads nothing from elsewhere, and no other site may show it.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; frame-ancestors 'none'"
}


class _ModelName(Convertor[str]):
    """The name of a model in a path, without the verb, so that `GET ...:predict` is refused."""

    regex = "[^/]+(?<!:predict)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


class _Version(Convertor[int]):
    """A version in a path: `int` of Starlette takes more digits than Python converts."""

    regex = "[0-9]{1,19}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("model_name", _ModelName())
register_url_convertor("model_version", _Version())


def create_app(
    store: ModelStore,
    *,
    batch_delay: float = 0.002,
    max_batch_rows: int = 32,
    num_threads: int = 2,
    max_rows: int = 1024,
    max_body_bytes: int = 4 * 2**20,
    timeout: float = 60.0,
    poll_interval: float = 1.0,
) -> Starlette:
    """Returns an ASGI application that serves the models of a directory.

    Args:
        store: A `ModelStore`.
        batch_delay: Float, seconds that a request waits for others that are read with it.
        max_batch_rows: Int, rows that are read together. A request with more rows is its own batch.
        num_threads: Int, groups of requests that are read at the same time.
        max_rows: Int, rows of a request.
        max_body_bytes: Int, bytes of the body of a request.
        timeout: Float, seconds that a client may take to send a body, and that it waits for its
            answer. TensorFlow is not interrupted: a thread ends what it has begun.
        poll_interval: Float, seconds between two looks at the directory.

    Example:

    >>> import tempfile
    >>> from keras_xlnet.server import ModelStore, create_app
    >>> app = create_app(ModelStore(tempfile.mkdtemp()))
    >>> [route.path for route in app.routes][:3]
    ['/', '/healthz', '/metrics']
    """
    server = _Server(store, max_rows, max_body_bytes, timeout)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        server.batcher = Batcher(batch_delay, max_batch_rows, num_threads, server.observe_batch)
        polls = asyncio.create_task(_poll(store, poll_interval))
        yield
        polls.cancel()
        server.batcher.close()

    model = "/v1/models/{name:model_name}"
    version = model + "/versions/{number:model_version}"
    routes = [
        Route("/", _page),
        Route("/healthz", server.health),
        Route("/metrics", server.show_metrics),
        Route("/v1/models", server.list_models),
        *(Route(path, server.answer_texts, methods=["POST"]) for path in TEXT_APIS),
    ]
    for path in (model, version):
        routes.append(Route(f"{path}:predict", server.predict, methods=["POST"]))
        routes.append(Route(f"{path}/metadata", server.metadata))
        routes.append(Route(f"{path}/classes", server.classes))
        routes.append(Route(path, server.status))
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={
            RequestError: _request_error,
            HTTPException: _http_error,
            Exception: _internal_error,
        },
    )


def _counted(route):
    """Decorates a route of `_Server`: counts its requests, with their status and time."""

    @functools.wraps(route)
    async def counted(self, request):
        begin, status = time.perf_counter(), 500
        # Routes set names of models that are there: clients cannot make labels.
        request.state.model = ""
        try:
            answer = await route(self, request)
            status = 200
            return answer
        except RequestError as error:
            status = error.status
            raise
        except ClientDisconnect:
            status = _DISCONNECTED
            return Response(status_code=_DISCONNECTED)
        finally:
            label = request.state.model
            self.metrics.requests.labels(label, status).inc()
            if label:
                self.metrics.seconds.labels(label).observe(time.perf_counter() - begin)

    return counted


class _Server:
    """The functions of the routes, and what they share."""

    batcher: Batcher

    def __init__(self, store, max_rows, max_body_bytes, timeout):
        self.store = store
        self.max_rows = max_rows
        self.max_body_bytes = max_body_bytes
        self.timeout = timeout
        self.metrics = Metrics()

    @_counted
    async def predict(self, request: Request) -> Response:
        """`POST /v1/models/NAME[/versions/N]:predict`"""
        version = self.store.get(*_name_and_number(request))
        request.state.model = version.name
        body = await self._body(request)
        parsed = await run_in_threadpool(parse_request, body, version.row_specs)
        rows = max((len(x) for x in parsed.inputs.values() if x.ndim), default=0)
        self._check_rows(rows)
        outputs = await self._run(version, parsed.signature_name, parsed.inputs)
        content = await run_in_threadpool(format_response, outputs, parsed.is_row_format)
        return Response(content, media_type="application/json")

    @_counted
    async def answer_texts(self, request: Request) -> Response:
        """`POST /v1/embeddings` of OpenAI, and `/embed`, `/rerank` and `/predict` of TEI."""
        fields = await run_in_threadpool(parse_json, await self._body(request))
        path = request.url.path
        # Requests of TEI name no model: the query of the URL can.
        fields = {"model": request.query_params.get("model"), **fields}
        version = version_of(path, fields, self.store)
        request.state.model = version.name
        parsed = await run_in_threadpool(TEXT_APIS[path][1], fields, version)
        self._check_rows(parsed.num_texts)
        outputs = await asyncio.gather(*(self._run(version, *run) for run in parsed.runs))
        return await run_in_threadpool(lambda: JSONResponse(parsed.answer(outputs)))

    async def _body(self, request):
        try:
            body = await asyncio.wait_for(self._read_body(request), self.timeout)
        except asyncio.TimeoutError:
            raise RequestError(f"The body did not arrive in {self.timeout:g} s", 408) from None
        # In threads, so that a long request does not hold up the others.
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        return await run_in_threadpool(_decoded, body, encoding, self.max_body_bytes)

    def _check_rows(self, rows):
        if rows > self.max_rows:
            raise RequestError(f"A request may have {self.max_rows} rows. Received: {rows}")

    async def _run(self, version, signature_name, inputs):
        run = self.batcher.run(version, signature_name, inputs)
        try:
            return await asyncio.wait_for(run, self.timeout)
        except asyncio.TimeoutError:
            raise RequestError(f"The answer took more than {self.timeout:g} s", 504) from None

    async def _read_body(self, request):
        body = bytearray()
        async for part in request.stream():
            body += part
            _check_size(body, self.max_body_bytes)
        return bytes(body)

    async def status(self, request: Request) -> Response:
        """`GET /v1/models/NAME[/versions/N]`"""
        return _proto_response(self.store.status(*_name_and_number(request)))

    async def metadata(self, request: Request) -> Response:
        """`GET /v1/models/NAME[/versions/N]/metadata`"""
        version = self.store.get(*_name_and_number(request))
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.name = version.name
        response.model_spec.version.value = version.number
        signatures = get_model_metadata_pb2.SignatureDefMap()
        for name, definition in version.signature_defs.items():
            signatures.signature_def[name].CopyFrom(definition)
        packed = any_pb2.Any()
        packed.Pack(signatures)
        response.metadata["signature_def"].CopyFrom(packed)
        return _proto_response(response)

    async def classes(self, request: Request) -> Response:
        """`GET /v1/models/NAME[/versions/N]/classes`, which TF Serving does not have: the names."""
        version = self.store.get(*_name_and_number(request))
        return JSONResponse({"class_names": version.class_names})

    async def list_models(self, request: Request) -> Response:
        """`GET /v1/models` of OpenAI, which TF Serving does not have. The page reads the names."""
        names = self.store.names
        models = [
            {"id": n, "object": "model", "created": self.store.get(n).created, "owned_by": "xlnet"}
            for n in names
        ]
        return JSONResponse({"models": names, "object": "list", "data": models})

    async def health(self, request: Request) -> Response:
        """`GET /healthz`: 200 if there is a model to ask."""
        if not self.store.names:
            raise RequestError("No model is loaded", 503)
        return JSONResponse({"status": "ok"})

    async def show_metrics(self, request: Request) -> Response:
        """`GET /metrics`, for Prometheus."""
        self.metrics.version.clear()
        for name in self.store.names:
            self.metrics.version.labels(name).set(self.store.get(name).number)
        self.metrics.failed_versions.set(len(self.store.failures))
        return Response(self.metrics.text(), media_type=prometheus_client.CONTENT_TYPE_LATEST)

    def observe_batch(self, version: Any, num_rows: int) -> None:
        self.metrics.batch_rows.labels(version.name).observe(num_rows)


def _check_size(body, most):
    if len(body) > most:
        raise RequestError(f"A body may have {most} bytes", 413)


def _decoded(body, encoding, most):
    """The body without its `Content-Encoding`."""
    if encoding in ("", "identity"):
        return body
    if encoding not in _GZIP:
        raise RequestError(
            f"Content-Encoding must be gzip or identity. Received: {encoding[:60]!a}", 415
        )
    try:
        decoded = gzip.GzipFile(fileobj=io.BytesIO(body)).read(most + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise RequestError(f"The body is not gzip: {error}") from None
    _check_size(decoded, most)
    return decoded


async def _poll(store, interval):
    while True:
        await asyncio.sleep(interval)
        try:
            await run_in_threadpool(store.refresh)
        except OSError as error:  # A directory that is renamed meanwhile, or a network's.
            _LOG.error("%s cannot be read: %s", store.directory, error)


def _name_and_number(request):
    return request.path_params["name"], request.path_params.get("number")


def _proto_response(message):
    fields = json_format.MessageToJson(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return Response(fields, media_type="application/json")


async def _page(request):
    page = importlib.resources.files("keras_xlnet.server") / "page.html"
    return HTMLResponse(page.read_text(encoding="utf-8"), headers=_PAGE_HEADERS)


# === Errors: one line each ===


async def _request_error(request, error):
    return _error_response(request, str(error), error.status)


async def _http_error(request, error):
    message = f"{error.detail}: {request.method} {request.url.path[:200]!a}"
    return _error_response(request, message, error.status_code, error.headers)


async def _internal_error(request, error):
    return _error_response(request, f"The model failed: {type(error).__name__}", 500)


def _error_response(request, message, status, headers=None):
    error: Any = message
    if request.url.path == OPENAI:  # OpenAI's form.
        kind = "invalid_request_error" if status < 500 else "server_error"
        code = "model_not_found" if status == 404 else None
        error = {"message": message, "type": kind, "param": None, "code": code}
    return JSONResponse({"error": error}, status, headers)
