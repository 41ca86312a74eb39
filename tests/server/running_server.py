"""A server in a thread of this process, and requests to it."""

import contextlib
import json
import socket
import threading
import urllib.error
import urllib.request

import uvicorn

from keras_xlnet.server import ModelStore, create_app


class Client:
    """Sends requests to one server."""

    def __init__(self, url):
        self.url = url
        # Without the proxy that the environment may name.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def request(self, path, body=None, method=None):
        """Returns the status and the bytes of the answer."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        try:
            with self._opener.open(request, timeout=60) as response:
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
    server = uvicorn.Server(
        uvicorn.Config(create_app(store, **options), log_level="error", lifespan="on")
    )
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
