"""A server in a thread of this process, and requests to it."""

import contextlib
import json
import socket
import threading
import urllib.error
import urllib.request

import uvicorn

from keras_xlnet.server import ModelStore, create_app
from keras_xlnet.server.slow_connections import protocol_with_timeout


class Client:
    """Sends requests to one server."""

    def __init__(self, url):
        self.url = url
        # Without the proxy that the environment may name.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def open(self, path, data=None, method=None, headers=None):
        """Returns the response."""
        request = urllib.request.Request(self.url + path, data, headers or {}, method=method)
        return self._opener.open(request, timeout=60)

    def request(self, path, body=None, method=None, headers=None):
        """Returns the status and the bytes of the answer."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            with self.open(path, data, method, headers) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def get(self, path):
        return self._parsed(path)

    def post(self, path, body):
        return self._parsed(path, body)

    def predict(self, model, body):
        return self._parsed(f"/v1/models/{model}:predict", body)

    def _parsed(self, *arguments):
        status, content = self.request(*arguments)
        return status, json.loads(content)


@contextlib.contextmanager
def serve(directory, **options):
    """Serves a directory on a free local port; yields a `Client` and the `ModelStore`."""
    store = ModelStore(directory)
    store.refresh()
    app = create_app(store, **options)
    http = protocol_with_timeout(options.get("timeout", 60))
    config = uvicorn.Config(app, log_level="error", lifespan="on", http=http)
    server = uvicorn.Server(config)
    # With its protocol named: otherwise asyncio sends small parts of an answer 40 ms apart.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield Client(f"http://127.0.0.1:{listening.getsockname()[1]}"), store
        finally:
            server.should_exit = True
            thread.join(30)
