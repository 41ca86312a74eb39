"""Each malformed request is refused with one plain line, and the server goes on."""

import http.client
import json
import urllib.parse

import numpy as np
import pytest

from benchmarks.malformed_requests import FAULTS, malformed_request


def check_refused(client, count, seed):
    """The numbers of answers by HTTP status."""
    rng = np.random.default_rng(seed)
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(client.url).netloc, timeout=60)
    found = {}
    for _ in range(count):
        method, path, body = malformed_request(rng, "texts")
        connection.request(method, path, body)
        response = connection.getresponse()
        content = response.read()
        given = (method, path[:80], body[:200], response.status, content[:200])
        assert 400 <= response.status < 500, given
        answer = json.loads(content)
        assert [*answer] == ["error"] and isinstance(answer["error"], str), given
        assert answer["error"] and len(answer["error"]) < 500 and answer["error"].isprintable(), (
            given
        )
        found[response.status] = found.get(response.status, 0) + 1
    connection.close()
    assert client.predict("texts", {"instances": ["a"]})[1]["predictions"][0]["label"] == "a"
    return found


def test_300_malformed_requests(client):
    assert set(check_refused(client, 300, seed=0)) == {400, 404, 405}
    assert len(FAULTS) == 16


@pytest.mark.slow
def test_10000_malformed_requests(client):
    assert set(check_refused(client, 10_000, seed=1)) == {400, 404, 405}
