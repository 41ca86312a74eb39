"""Requests that arrive together are read together, and get what they would get alone."""

import asyncio
import concurrent.futures
import threading

import numpy as np
import pytest

from keras_xlnet.server import batcher
from keras_xlnet.server.batcher import Batcher
from keras_xlnet.server.request_error import RequestError
from keras_xlnet.server.served_version import ServedVersion


@pytest.fixture(scope="module")
def texts(models):
    return ServedVersion("texts", 1, models / "texts" / "1")


@pytest.fixture(scope="module")
def half(models):
    return ServedVersion("half", 123, models / "half_plus_three" / "00000123")


def strings(*values):
    return {"text": np.array(values, object)}


def run(version, requests, **options):
    """Results or exceptions of requests that arrive together, and the sizes of the batches."""
    sizes = []

    async def run_all():
        batcher = Batcher(observe=lambda _, num_rows: sizes.append(num_rows), **options)
        try:
            runs = [batcher.run(version, name, inputs) for name, inputs in requests]
            return await asyncio.wait_for(asyncio.gather(*runs, return_exceptions=True), 60)
        finally:
            batcher.close()

    return asyncio.run(run_all()), sizes


def test_each_gets_its_rows(texts, rng):
    requests = [
        strings(*(f"text {i} {j}".encode() for j in range(rng.integers(0, 4)))) for i in range(9)
    ]
    results, sizes = run(texts, [("serving_default", x) for x in requests], delay=0.05)
    total = sum(len(x["text"]) for x in requests)
    assert sizes == [total]
    for request, result in zip(requests, results, strict=True):
        assert result["label"].tolist() == request["text"].tolist()
        assert result["size"].tolist() == [len(text) for text in request["text"]]
        # The model counted all rows that it read together.
        assert result["rows"].tolist() == [total] * len(request["text"])


def test_a_full_batch_does_not_wait(texts):
    requests = [("serving_default", strings(b"a", b"b"))] * 4
    # `run` waits for 60 s.
    results, sizes = run(texts, requests, delay=300, max_rows=4, num_threads=1)
    assert sizes == [4, 4]
    assert [x["rows"].tolist() for x in results] == [[4, 4]] * 4


def test_requests_that_arrive_while_the_threads_are_busy_are_read_together(texts, monkeypatch):
    sizes, is_free, run_now = [], threading.Event(), texts.run

    def run_when_free(*args, **kwargs):
        assert is_free.wait(60)
        return run_now(*args, **kwargs)

    async def run_all():
        batcher = Batcher(0, 32, 1, lambda _, num_rows: sizes.append(num_rows))

        async def start():
            run = asyncio.create_task(batcher.run(texts, "serving_default", strings(b"a")))
            await asyncio.sleep(0.01)
            return run

        runs = [await start() for _ in range(6)]
        is_free.set()
        await asyncio.gather(*runs)
        batcher.close()

    monkeypatch.setattr(texts, "run", run_when_free)
    asyncio.run(run_all())
    assert sizes == [1, 5]


def test_groups(texts):
    choices = np.array([[b"a", b"bb"]], object)
    requests = [
        ("serving_default", strings(b"a")),
        ("choices", {**strings(b"a"), "choices": choices}),
        ("choices", {**strings(b"b"), "choices": choices}),
        # Other numbers of choices cannot be in the same array.
        ("choices", {**strings(b"c"), "choices": choices[:, :1]}),
        # The number of words is that of the longest text: read alone.
        ("split", strings(b"a b c")),
        ("split", strings(b"a")),
    ]
    results, sizes = run(texts, requests, delay=0.05)
    assert sorted(sizes) == [1, 1, 1, 1, 2]
    assert [x["scores"].tolist() for x in results[1:4]] == [[[1, 2]], [[1, 2]], [[1]]]
    assert [x["words"].shape for x in results[4:]] == [(1, 3), (1, 1)]


def test_a_static_batch_size_is_filled(texts):
    requests = [
        ("static", strings(b"a")),
        ("static", strings(b"bb", b"ccc")),
        ("static", strings()),
        ("static", strings(b"a", b"bb", b"ccc", b"dd", b"e")),
    ]
    results, sizes = run(texts, requests, delay=0.05)
    assert results[0]["length"].tolist() == [1]
    assert results[1]["length"].tolist() == [2, 3]
    assert isinstance(results[2], RequestError)
    assert "static takes the same number of rows of each input, at least one" in str(results[2])
    assert results[3]["length"].tolist() == [1, 2, 3, 2, 1]


def test_parts_of_a_request_are_padded_to_the_longest():
    class Version:
        """Words of two texts, as many as the longest text has."""

        def run(self, _, inputs):
            words = [text.split() for text in inputs["text"]]
            most = max(map(len, words))
            found = np.array([row + [b""] * (most - len(row)) for row in words], object)
            return {"words": found, "places": np.ones((2, most), "int32")}

    inputs = strings(b"a", b"b c", b"d e f", b"g", b"h")
    outputs = batcher._run_rows(Version(), "words", inputs, 2)
    assert outputs["words"].tolist()[1:3] == [[b"b", b"c", b""], [b"d", b"e", b"f"]]
    assert outputs["places"].tolist() == [[1, 1, 0], [1, 1, 0], [1] * 3, [1] * 3, [1, 0, 0]]


def test_only_the_request_that_is_refused_fails(half):
    requests = [("serving_default", {"x": np.float32(x)}) for x in ([1, 2], [-1], [3])]
    results, sizes = run(half, requests, delay=0.05)
    assert results[0]["y"].tolist() == [3.5, 4]
    assert isinstance(results[1], RequestError)
    assert results[2]["y"].tolist() == [4.5]
    assert sizes == [4, 2, 1, 1]


def test_concurrent_requests_over_http(client):
    texts = [f"text {i} " * (i % 7) for i in range(60)]
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda t: client.predict("texts", {"instances": [t]}), texts))
    assert [status for status, _ in answers] == [200] * 60
    assert [answer["predictions"][0]["label"] for _, answer in answers] == texts
