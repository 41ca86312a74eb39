"""`xlnet serve`: a process that serves, follows the directory, and stops when it is asked to."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

import xlnet_command
from benchmarks.load import free_port
from tests.server.small_models import save_half_plus


def xlnet(*arguments):
    return xlnet_command.run(xlnet_command.parse(["xlnet", *map(str, arguments)]))


def test_a_directory_without_models_is_refused(tmp_path, capsys):
    assert xlnet("serve", tmp_path / "none") == 1
    assert capsys.readouterr().err == f"xlnet: {tmp_path / 'none'} is not a directory\n"
    (tmp_path / "spam" / "1").mkdir(parents=True)
    assert xlnet("serve", tmp_path) == 1
    expected = "must hold SavedModels at NAME/VERSION, such as spam/1\n"
    assert capsys.readouterr().err.endswith(expected)
    (tmp_path / "spam" / "1" / "saved_model.pb").write_bytes(b"no model")
    assert xlnet("serve", tmp_path) == 1
    message = capsys.readouterr().err.splitlines()[-1]
    assert ". spam version 1: " in message


@pytest.mark.parametrize(
    "flag, value",
    [("--port", "0"), ("--timeout", "0"), ("--max_rows", "1.5"), ("--poll_interval", "nan")],
)
def test_flags_are_checked(flag, value, capsys):
    with pytest.raises(SystemExit):
        xlnet_command.parse(["xlnet", "serve", "models", flag, value])
    assert f"argument {flag}: must be a" in capsys.readouterr().err


@pytest.fixture
def started(tmp_path):
    """A process that serves a model on a port of its own, and the URL of the model."""
    save_half_plus(tmp_path / "half" / "1", 1.0)
    command = [sys.executable, "xlnet_command.py", "serve", str(tmp_path)]
    command.append(f"--port={free_port()}")
    # A request waits for two seconds: it is in flight when the signal comes.
    command += ["--batch_delay_ms=2000", "--poll_interval=0.1"]
    process = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = process.stdout.readline().strip()
    assert line.startswith("half at http://127.0.0.1:"), process.stderr.read()
    url = line.split()[-1]
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            fetch(f"{url}/healthz")
            break
        except OSError:  # It listens a moment after the line.
            time.sleep(0.05)
    yield process, f"{url}/v1/models/half"
    process.kill()
    process.communicate()


def fetch(url, body=None):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    data = None if body is None else json.dumps(body).encode()
    with opener.open(url, data, timeout=60) as response:
        return json.load(response)


def test_sigterm_lets_requests_finish(started, tmp_path):
    process, url = started
    end = time.monotonic() + 60
    save_half_plus(tmp_path / "copy", 2.0)
    shutil.move(tmp_path / "copy", tmp_path / "half" / "2")
    while time.monotonic() < end:
        (status, *_) = fetch(url)["model_version_status"]
        if (status["version"], status["state"]) == ("2", "AVAILABLE"):
            break
        time.sleep(0.05)
    answers = []
    body = {"instances": [4.0]}
    request = threading.Thread(target=lambda: answers.append(fetch(f"{url}:predict", body)))
    request.start()
    time.sleep(0.7)
    process.send_signal(signal.SIGTERM)
    request.join(60)
    assert answers == [{"predictions": [4.0]}]
    # uvicorn ends as the signal does.
    assert process.wait(60) == -signal.SIGTERM
    assert "Traceback" not in process.stderr.read()
