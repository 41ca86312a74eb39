"""Tests a server under load: valid and malformed requests, new versions, and a killed process.

    python -m benchmarks.load --minutes 10

Starts `xlnet serve` on a port of this machine, with a small classifier in two versions with known
answers. 8 clients send texts of mixed lengths, some of 1 MB, malformed requests, bytes that are not
HTTP, and requests whose connection they close. Meanwhile a new version appears every few seconds,
and after a third of the time the process is killed and started again. Prints a JSON object:

- `wrong`: answers with an unexpected status, or from no version that was served at the time;
- `crashes`: unexpected ends of the process;
- `rss_mb`: memory of the process after two thirds of the time, and at the end;
- `p50_ms`, `p99_ms`: latencies of texts under 1 kB.

It takes a minute more than `--minutes`: the models are exported first.
"""

import argparse
import collections
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from benchmarks.malformed_requests import malformed_request, random_text

ROOT = pathlib.Path(__file__).parents[1]
NUM_CLIENTS, TOLERANCE = 8, 1e-4
COUNTED = "answers long refused garbage disconnects versions kills down wrong crashes".split()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="length of the load [1]")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(Load(pathlib.Path(folder), arguments.minutes * 60).run()))


class Load:
    """One run.

    Args:
        folder: `pathlib.Path`, an empty directory.
        seconds: Float, the length of the load.
        seed: Int.
    """

    def __init__(self, folder, seconds, seed=0):
        self.folder, self.seconds, self.seed = folder, seconds, seed
        self.counts, self.milliseconds, self.examples = collections.Counter(), [], []
        self.lock, self.is_over = threading.Lock(), threading.Event()
        # While the process restarts, clients get no answer.
        self.is_down = threading.Event()
        self.port, self.process = free_port(), None
        self.texts, self.expected = export_models(folder, seed)
        self.models = folder / "models"
        shutil.copytree(folder / "exported" / "0", self.models / "load" / "1")
        #: Which of the two models may answer.
        self.current = {0}

    def run(self):
        """Returns the results."""
        self.start()
        clients = [threading.Thread(target=self.client, args=(i,)) for i in range(NUM_CLIENTS)]
        for thread in clients:
            thread.start()
        rss = self.change_versions()
        self.is_over.set()
        for thread in clients:
            thread.join()
        rss.append(resident(self.process))
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(90)
        p50, p99 = np.percentile(self.milliseconds or [0], [50, 99]).round(1).tolist()
        return {
            **{name: self.counts[name] for name in COUNTED},
            "rss_mb": [round(x) for x in rss],
            "p50_ms": p50,
            "p99_ms": p99,
            "examples_of_wrong": self.examples[:5],
        }

    # === The process ===

    def start(self):
        command = [sys.executable, str(ROOT / "xlnet_command.py"), "serve", str(self.models)]
        command += [f"--port={self.port}", "--poll_interval=0.2"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with open(self.folder / "log.txt", "ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        if not self.waits_for("/healthz", 180):
            raise RuntimeError((self.folder / "log.txt").read_text(encoding="utf-8"))

    def waits_for(self, path, seconds, content=b""):
        """Returns whether a path is served with a content within the given seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                status, answer = self.request("GET", path)
                if status == 200 and content in answer:
                    return True
            time.sleep(0.1)
        return False

    def change_versions(self):
        """Adds versions and kills the process until the time is over. Returns the memory."""
        begin, number, rss = time.monotonic(), 1, []
        while (share := (time.monotonic() - begin) / self.seconds) < 1:
            time.sleep(max(4.0, self.seconds / 20))
            if self.process.poll() is not None:
                self.count("crashes")
                self.restart()
            if share > 1 / 3 and not self.counts["kills"]:
                self.count("kills")
                self.restart()
            elif share > 2 / 3 and not rss:
                rss.append(resident(self.process))
            number += 1
            self.add_version(number)
        return rss or [resident(self.process)]

    def restart(self):
        self.is_down.set()
        self.process.kill()
        self.process.wait()
        self.start()
        self.is_down.clear()

    def add_version(self, number):
        """Copies the other model to a new version, and waits until it is served."""
        other = number % 2 ^ 1
        self.current = {0, 1}
        shutil.copytree(self.folder / "exported" / str(other), self.folder / "copy")
        (self.folder / "copy").rename(self.models / "load" / str(number))
        if not self.waits_for(f"/v1/models/load/versions/{number}", 60, b"AVAILABLE"):
            self.wrong(f"version {number} is not served after 60 s")
        self.current = {other}
        self.count("versions")
        # The oldest is removed, as a tool that keeps two would.
        shutil.rmtree(self.models / "load" / str(number - 2), ignore_errors=True)

    # === Clients ===

    def client(self, index):
        rng = np.random.default_rng([self.seed, index])
        actions = [self.ask, self.malformed, self.long_text, self.garbage, self.disconnect]
        while not self.is_over.is_set():
            action = actions[rng.choice(5, p=[0.8, 0.12, 0.01, 0.03, 0.04])]
            was_down = self.is_down.is_set()
            try:
                action(rng)
            except (OSError, http.client.HTTPException) as error:
                time.sleep(0.05)
                if was_down or self.is_down.is_set():
                    self.count("down")
                elif self.process.poll() is None:
                    self.wrong(f"{action.__name__}: {error!r}")

    def ask(self, rng):
        indices = rng.integers(0, len(self.texts), rng.integers(1, 5))
        may_answer = set(self.current)
        begin = time.perf_counter()
        status, content = self.post([self.texts[i] for i in indices])
        took = 1000 * (time.perf_counter() - begin)
        may_answer |= self.current
        if status != 200:
            return self.wrong(f"ask: {status} {content[:200]}")
        found = np.array([row["probabilities"] for row in json.loads(content)["predictions"]])
        close = [np.abs(found - self.expected[i][indices]).max() < TOLERANCE for i in may_answer]
        if not any(close):
            return self.wrong(f"ask: {found.tolist()} of {may_answer}")
        with self.lock:
            self.counts["answers"] += 1
            if sum(len(self.texts[i]) for i in indices) < 1000:
                self.milliseconds.append(took)

    def malformed(self, rng):
        status, content = self.request(*malformed_request(rng, "load"))
        if 400 <= status < 500 and [*json.loads(content)] == ["error"]:
            return self.count("refused")
        self.wrong(f"malformed: {status} {content[:200]}")

    def long_text(self, rng):
        text = " ".join(["word" * int(rng.integers(1, 4))] * 200_000)[: 10**6]
        status, content = self.post([text])
        return self.count("long") if status == 200 else self.wrong(f"1 MB: {status} {content[:99]}")

    def garbage(self, rng):
        with self.connected() as connection, contextlib.suppress(ConnectionError):
            connection.sendall(rng.bytes(int(rng.integers(1, 2000))) + b"\r\n\r\n")
            connection.recv(1000)
        self.count("garbage")

    def disconnect(self, rng):
        body = json.dumps({"instances": self.texts[:4]}).encode()
        head = f"POST /v1/models/load:predict HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}"
        data = f"{head}\r\n\r\n".encode() + body
        with self.connected() as connection:
            connection.sendall(data[: rng.integers(1, len(data) + 1)])
        self.count("disconnects")

    def connected(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def post(self, texts):
        body = json.dumps({"instances": texts}).encode()
        return self.request("POST", "/v1/models/load:predict", body)

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with contextlib.closing(connection):
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read()

    def count(self, name):
        with self.lock:
            self.counts[name] += 1

    def wrong(self, description):
        self.count("wrong")
        self.examples.append(description)


def free_port():
    """Returns a free port of this machine."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def resident(process):
    """Returns the memory of a process in MiB."""
    text = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def export_models(folder, seed):
    """Exports two classifiers; returns texts, and for each model the probabilities."""
    import keras

    from keras_xlnet.models import XLNetTextClassifier
    from keras_xlnet.server.served_version import ServedVersion
    from keras_xlnet.serving import export

    rng = np.random.default_rng(seed)
    texts = [" ".join(random_text(rng) for _ in range(rng.integers(1, 30))) for _ in range(64)]
    expected = []
    for i in range(2):
        keras.utils.set_random_seed(seed + i)
        model = XLNetTextClassifier.from_preset("xlnet_small_en", num_classes=2, sequence_length=64)
        # Different enough weights that the answers of the two models differ.
        (kernel,) = [w for w in model.weights if w.path.endswith("logits/kernel")]
        kernel.assign(rng.normal(0, 3, kernel.shape))
        # The first request to a graph takes a second.
        directory = export(model, folder / "exported" / str(i), warmup=["a text", texts[0]])
        inputs = {"text": np.array([text.encode() for text in texts], object)}
        version = ServedVersion("load", i, pathlib.Path(directory))
        expected.append(version.run("serving_default", inputs)["probabilities"])
    # Texts whose answers differ between the models.
    differ = np.abs(expected[0] - expected[1]).max(axis=1) > 10 * TOLERANCE
    return [texts[i] for i in np.flatnonzero(differ)], [x[differ] for x in expected]


if __name__ == "__main__":
    main()
