"""Sends 20,000 requests with memory to `xlnet serve`, and prints whether anything grows.

    python research/compatibility/long_serving.py

A small Transformer-XL reads one document in segments. Each request carries the memory of the answer
before it. Every 1,000 requests the memory of the process and the median latency are printed. At the
end the log-probabilities of the first segments are compared with those of the same segments after
20,000 others.
"""

import argparse
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from keras_xlnet.models import TransformerXLLanguageModel
from keras_xlnet.serving import export
from keras_xlnet.tokenizers import VocabularyTokenizer

_ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(_ROOT))
from benchmarks.load import free_port, resident  # noqa: E402

_WORDS = "the cat dog sat ran on under a mat tree and then it slept".split()
_SEGMENT, _MEAN = 12, 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=20_000)
    number = parser.parse_args().requests
    with tempfile.TemporaryDirectory() as folder:
        export(new_model(), pathlib.Path(folder) / "reader" / "1")
        port = free_port()
        command = [sys.executable, _ROOT / "xlnet_command.py", "serve", folder, f"--port={port}"]
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
            try:
                read(Client(port), process, number)
            finally:
                process.terminate()


def new_model():
    tokenizer = VocabularyTokenizer.train(_WORDS)
    return TransformerXLLanguageModel(
        tokenizer.vocabulary_size(), 2, 2, 32, 64, tokenizer=tokenizer, memory_length=16, seed=0
    )


def read(client, process, number):
    """Reads a random text, and at its end its first segments once more."""
    draw = np.random.default_rng(0)
    first = [" ".join(draw.choice(_WORDS, _SEGMENT)) for _ in range(20)]
    before = client.read(first, "")[0]
    memory, times = "", []
    for i in range(1, number + 1):
        start = time.perf_counter()
        _, memory = client.read([" ".join(draw.choice(_WORDS, _SEGMENT))], memory)
        times.append(time.perf_counter() - start)
        if i % _MEAN == 0:
            median = 1000 * np.median(times)
            line = f"{i} requests: {resident(process):.1f} MiB, {median:.2f} ms"
            print(f"{line}, {len(memory)} characters of memory", flush=True)
            times = []
    difference = np.abs(np.array(client.read(first, "")[0]) - before).max()
    print(f"difference of the first segments: {difference}")


class Client:
    """A client of `xlnet serve` at a port of this machine."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{self.url}/healthz")
                return
            except OSError:
                time.sleep(0.2)
        raise TimeoutError("`xlnet serve` did not start")

    def read(self, segments, memory):
        """Returns the log-probabilities of segments in a row, and the memory after them."""
        scores = []
        for segment in segments:
            row = {"text": segment, "memory": {"b64": memory}}
            body = {"signature_name": "serving_segment", "instances": [row]}
            request = urllib.request.Request(
                f"{self.url}/v1/models/reader:predict", json.dumps(body).encode()
            )
            with urllib.request.urlopen(request) as response:
                found = json.load(response)["predictions"][0]
            memory = found.pop("memory_bytes")["b64"]
            base64.b64decode(memory, validate=True)
            scores.append(found)
        return [value for found in scores for value in numbers(found)], memory


def numbers(found):
    """Yields all numbers of nested lists and dicts."""
    if isinstance(found, dict):
        found = [found[name] for name in sorted(found)]
    if isinstance(found, list):
        for one in found:
            yield from numbers(one)
    elif isinstance(found, float):
        yield found


if __name__ == "__main__":
    main()
