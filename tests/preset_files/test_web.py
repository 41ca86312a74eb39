"""Folders of a web server that changes, breaks off or does not answer."""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import threading
import time

import pytest

from keras_xlnet.preset_files import local_directory

NAMES = (("config.json", "model.safetensors"), ("tokenizer.json", "assets/spiece.model", "*.bin"))


def fetch(location):
    return local_directory(location, *NAMES)


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a directory, with the faults that a test puts into `server.faults`."""

    def do_HEAD(self):  # noqa: N802
        self.answer(super().do_HEAD)

    def do_GET(self):  # noqa: N802
        self.server.fetched.append(self.path)
        self.answer(super().do_GET)

    def answer(self, answer):
        fault = self.server.faults.get(self.command) or self.server.faults.get(self.path)
        if isinstance(fault, int):
            self.send_error(fault)
        elif fault == "truncate" and self.command == "GET":
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b"x" * 10)
        else:
            if callable(fault):
                fault()
            answer()

    def send_header(self, keyword, value):
        if keyword != "Last-Modified" or "no versions" not in self.server.faults:
            super().send_header(keyword, value)

    def log_message(self, *_):
        pass


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "served" / "preset"
    (folder / "assets").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"version": 1}))
    (folder / "model.safetensors").write_bytes(b"weights 1")
    (folder / "assets" / "spiece.model").write_bytes(b"pieces")
    return folder


@pytest.fixture
def server(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    handler = functools.partial(Handler, directory=str(folder.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.faults, server.fetched = {}, []
        server.url = f"http://127.0.0.1:{server.server_port}/preset"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        server.stop = lambda: (server.shutdown(), server.server_close(), thread.join())
        yield server
        with contextlib.suppress(OSError):
            server.stop()


def change(folder, version):
    """Another version of a file, with the same length and another date."""
    (folder / "model.safetensors").write_bytes(f"weights {version}".encode())
    date = time.time() - 1000 * version
    os.utime(folder / "model.safetensors", (date, date))


def weights(directory):
    return (directory / "model.safetensors").read_bytes()


def test_files_are_downloaded_once(server):
    directory = fetch(server.url + "/")
    names = sorted(str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file())
    assert names == ["assets/spiece.model", "config.json", "model.safetensors"]
    assert weights(directory) == b"weights 1"
    server.fetched.clear()
    assert fetch(server.url) == directory
    assert server.fetched == []


def test_a_change_of_one_file_downloads_all_of_them(server, folder):
    first = fetch(server.url)
    server.fetched.clear()
    change(folder, 2)
    second = fetch(server.url)
    assert weights(second) == b"weights 2"
    assert len(server.fetched) == 3
    assert not first.exists() or first == second


def test_without_versions_all_is_downloaded_each_time(server, folder):
    server.faults["no versions"] = True
    assert weights(fetch(server.url)) == b"weights 1"
    change(folder, 2)
    directory = fetch(server.url)
    assert weights(directory) == b"weights 2"
    assert len(list(directory.parent.iterdir())) == 1


def test_a_server_that_knows_no_head(server):
    server.faults["HEAD"] = 501
    assert weights(fetch(server.url)) == b"weights 1"


def test_what_is_required_and_missing_is_named(server, folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="preset/model.safetensors is missing .*404"):
        fetch(server.url)
    assert not pathlib.Path(os.environ["KERAS_HOME"]).exists()


@pytest.mark.parametrize("fault", ["truncate", 500, 403])
def test_a_download_that_breaks_off_leaves_nothing(server, fault):
    server.faults["GET"] = fault
    with pytest.raises(ConnectionError, match="preset/config.json cannot be downloaded"):
        fetch(server.url)
    files = pathlib.Path(os.environ["KERAS_HOME"]).rglob("*")
    assert [path for path in files if path.is_file()] == []
    server.faults.clear()
    assert weights(fetch(server.url)) == b"weights 1"


def test_a_change_while_it_is_downloaded_is_noticed(server, folder):
    # The last of the files is fetched when the weights already are.
    server.faults["/preset/assets/spiece.model"] = lambda: (
        change(folder, 2) if "/preset/assets/spiece.model" in server.fetched else None
    )
    with pytest.raises(ConnectionError, match="changed while it was downloaded"):
        fetch(server.url)
    server.faults.clear()
    assert weights(fetch(server.url)) == b"weights 2"


@pytest.mark.parametrize("how", ["gone", "busy"])
def test_a_server_that_does_not_answer_leaves_the_last_copy(server, how):
    url = server.url
    directory = fetch(url)
    if how == "gone":
        server.stop()
    else:
        server.faults["HEAD"] = 503
    with pytest.warns(UserWarning, match=f"does not answer .* The copy in {directory} is used"):
        assert fetch(url) == directory
    with pytest.raises(ConnectionError, match="config.json does not answer .* no copy of it in"):
        fetch(url + "/other")
