"""Limits of a server, and what is there for operators."""

import contextlib
import gzip
import http.client
import json
import shutil
import socket
import time
import urllib.parse

import pytest

from keras_xlnet.server.served_version import ServedVersion
from tests.server.running_server import serve

BODY = b'{"instances": [1.0]}'


def test_rows_and_bytes(models):
    with serve(models, max_rows=3, max_body_bytes=100) as (client, _):
        assert client.predict("half_plus_three", {"instances": [1.0] * 3})[0] == 200
        assert client.predict("half_plus_three", {"instances": [1.0] * 4}) == (
            400,
            {"error": "A request may have 3 rows. Received: 4"},
        )
        too_long = 413, {"error": "A body may have 100 bytes"}
        # urllib may still be sending when it is refused.
        assert raw_request(client, [b"x" * 101], {"Content-Length": "101"}) == too_long
        chunks = [b"40\r\n" + b"x" * 64 + b"\r\n"] * 2
        assert raw_request(client, chunks, {"Transfer-Encoding": "chunked"}) == too_long
        assert client.predict("half_plus_three", {"instances": [1.0]})[0] == 200


def raw_request(client, parts, headers):
    """Status and answer of a request whose body is sent as it is."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(client.url).netloc, timeout=60)
    connection.putrequest("POST", "/v1/models/half_plus_three:predict")
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    for part in parts:
        connection.send(part)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, json.loads(content)


@pytest.mark.parametrize(
    "encoding, body, status",
    [
        ("gzip", gzip.compress(BODY, mtime=0), 200),
        ("GZIP", gzip.compress(BODY[:5], mtime=0) + gzip.compress(BODY[5:], mtime=0), 200),
        ("identity", BODY, 200),
        ("gzip", BODY, 400),
        ("gzip", gzip.compress(BODY, mtime=0)[:-3], 400),
        ("gzip", b"", 400),
        ("br", BODY, 415),
        ("gzip, gzip", gzip.compress(gzip.compress(BODY, mtime=0), mtime=0), 415),
        # More than 4 MiB of 5 kB.
        ("gzip", gzip.compress(BODY + b" " * 2**22, mtime=0), 413),
    ],
)
def test_encodings_of_bodies(client, encoding, body, status):
    path, headers = "/v1/models/half_plus_three:predict", {"Content-Encoding": encoding}
    found, content = client.request(path, body, headers=headers)
    assert found == status
    assert [*json.loads(content)] == ["predictions" if status == 200 else "error"]


def received(connection):
    """What the server sends until it closes the connection."""
    connection.settimeout(30)
    return b"".join(iter(lambda: connection.recv(4096), b""))


@pytest.mark.parametrize("first", [b"", b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"])
@pytest.mark.parametrize("part", [b"", b"GET /healthz HTTP/1.1\r\nX: "])
def test_connections_without_headers_are_closed(models, first, part):
    with serve(models, timeout=0.3) as (client, _):
        address = urllib.parse.urlsplit(client.url)
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(first)
            begin = time.monotonic()
            answer = b""
            while first and not answer.endswith(b"}"):
                answer += connection.recv(4096)
            # One byte at a time is no progress.
            with contextlib.suppress(OSError):
                while part and time.monotonic() < begin + 10:
                    connection.sendall(part[:1])
                    part = part[1:] or b"x"
                    time.sleep(0.02)
            with contextlib.suppress(ConnectionError):
                assert received(connection) == b""
            # Idle after an answer, it is uvicorn that closes it: after five seconds.
            assert time.monotonic() < begin + 9


def test_time_of_the_body_and_of_the_answer(models, monkeypatch):
    run = ServedVersion.run

    def run_slowly(self, *arguments):
        time.sleep(1)
        return run(self, *arguments)

    monkeypatch.setattr(ServedVersion, "run", run_slowly)
    with serve(models, timeout=0.2) as (client, _):
        assert client.predict("half_plus_three", {"instances": [1.0]}) == (
            504,
            {"error": "The answer took more than 0.2 s"},
        )
        status, answer = raw_request(client, [b"{"], {"Content-Length": "2"})
        assert (status, answer) == (408, {"error": "The body did not arrive in 0.2 s"})


def test_an_error_of_the_server_is_one_line_too(models, monkeypatch):
    def fail(*arguments):
        raise ZeroDivisionError("details that are not for clients")

    monkeypatch.setattr(ServedVersion, "run", fail)
    with serve(models) as (client, _):
        assert client.predict("half_plus_three", {"instances": [1.0]}) == (
            500,
            {"error": "The model failed: ZeroDivisionError"},
        )


def test_metrics_count_requests(models):
    with serve(models, batch_delay=0) as (client, _):
        client.predict("half_plus_three", {"instances": [1.0, 2.0]})
        client.predict("half_plus_three", {"instances": ["a"]})
        client.predict("none", {"instances": ["a"]})
        status, content = client.request("/metrics")
    lines = content.decode().splitlines()
    assert status == 200
    assert 'xlnet_requests_total{model="half_plus_three",status="200"} 1.0' in lines
    assert 'xlnet_requests_total{model="half_plus_three",status="400"} 1.0' in lines
    # Clients cannot make labels.
    assert 'xlnet_requests_total{model="",status="404"} 1.0' in lines
    assert 'xlnet_request_seconds_count{model="half_plus_three"} 2.0' in lines
    assert 'xlnet_batch_rows_sum{model="half_plus_three"} 2.0' in lines
    assert 'xlnet_model_version{model="half_plus_three"} 123.0' in lines
    assert "xlnet_failed_versions 0.0" in lines


def test_health_and_reload(models, tmp_path):
    with serve(tmp_path, poll_interval=0.05) as (client, _):
        assert client.get("/healthz") == (503, {"error": "No model is loaded"})
        shutil.copytree(models / "half_plus_three", tmp_path / "half")
        wait_until(lambda: client.get("/healthz") == (200, {"status": "ok"}))
        assert client.get("/v1/models")[1]["models"] == ["half"]
        assert client.predict("half", {"instances": [1.0]}) == (200, {"predictions": [3.5]})
        shutil.rmtree(tmp_path / "half")
        wait_until(lambda: client.get("/v1/models")[1]["models"] == [])


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("data", [b"\x00\xff" * 50, b"GET\r\n\r\n", b"POST / HTTP/1.1\r\n"])
def test_garbage_does_not_stop_the_server(client, data):
    address = urllib.parse.urlsplit(client.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(data)
    assert client.get("/healthz")[0] == 200
