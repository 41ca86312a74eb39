import contextlib
import functools
import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest

from keras_xlnet.presets import local_directory

NAMES = (("config.json", "model.weights.h5"), ("tokenizer.json", "assets/spiece.model", "*.bin"))


def fetch(location):
    return local_directory(location, *NAMES)


# === Directories ===


def test_directories_are_taken_as_they_are(tmp_path):
    assert fetch(tmp_path) == fetch(str(tmp_path)) == tmp_path


def test_no_directory(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"no directory {tmp_path / 'none'}$"):
        fetch(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="on the Hugging Face Hub .* 'hf://owner/name'"):
        fetch("owner/name")


@pytest.mark.parametrize(
    "location",
    [
        "hf://name",
        "hf://owner/name/more",
        "hf://owner/name@",
        "https://huggingface.co/owner",
        "https://huggingface.co/owner/name/blob/main/config.json",
        "gs://bucket/preset",
        "file:///etc",
        "ftp://host/preset",
        "https://",
        "https://host/preset?key=1",
    ],
)
def test_other_locations_are_refused(location):
    with pytest.raises(ValueError, match="`location` must be a directory, 'hf://owner/name'"):
        fetch(location)


# === The Hub ===


@pytest.fixture
def hub(monkeypatch):
    return pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")


@pytest.mark.parametrize(
    "location, repository, revision",
    [
        ("hf://owner/na.me-1", "owner/na.me-1", None),
        ("hf://owner/name@v1.0", "owner/name", "v1.0"),
        ("hf://owner/name@refs/pr/3", "owner/name", "refs/pr/3"),
        ("https://huggingface.co/owner/name", "owner/name", None),
        ("https://huggingface.co/owner/name/", "owner/name", None),
        ("https://huggingface.co/owner/name/tree/v1.0", "owner/name", "v1.0"),
        ("https://huggingface.co/owner/name/resolve/main", "owner/name", "main"),
    ],
)
def test_the_hub_is_asked_for_these_files_only(
    hub, monkeypatch, tmp_path, location, repository, revision
):
    asked = []

    def snapshot_download(name, **kwargs):
        asked.append((name, kwargs))
        return str(tmp_path)

    monkeypatch.setattr(hub, "snapshot_download", snapshot_download)
    assert fetch(location) == tmp_path
    patterns = [*NAMES[0], *NAMES[1]]
    assert asked == [(repository, {"revision": revision, "allow_patterns": patterns})]


def test_without_huggingface_hub(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r'pip install "xlnet-keras\[hub\]"'):
        fetch("hf://owner/name")


def test_without_a_network_a_snapshot_from_before_is_used(tmp_path):
    """The real huggingface_hub, offline."""
    pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    code = (
        "import sys; from keras_xlnet.presets import local_directory\n"
        "try: print(local_directory(sys.argv[1], ['config.json'], ['a*']))\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_CACHE": str(tmp_path),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }

    def ask(location):
        result = subprocess.run(
            [sys.executable, "-c", code, location], env=environment, capture_output=True, text=True
        )
        return result.stdout.strip().splitlines()

    (repository := tmp_path / "models--owner--name" / "refs").mkdir(parents=True)
    (repository / "main").write_text("a" * 40)
    (snapshot := repository.parent / "snapshots" / ("a" * 40)).mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    assert ask("hf://owner/name")[-1] == str(snapshot)
    error = ask("hf://owner/other")
    assert error[0].startswith("ConnectionError hf://owner/other cannot be downloaded, and")
    assert "no complete copy" in error[0] and "HF_HUB_OFFLINE" in " ".join(error)


def test_errors_of_the_hub_say_what_is_missing(hub, monkeypatch):
    errors = hub.errors
    response = type("Response", (), {"headers": {}, "request": None, "status_code": 404})()
    for error, kind, message in (
        (errors.RepositoryNotFoundError("x", response=response), FileNotFoundError, "hf auth"),
        (errors.GatedRepoError("x", response=response), FileNotFoundError, "hf auth login"),
        (errors.RevisionNotFoundError("x", response=response), FileNotFoundError, "no such rev"),
        (errors.LocalEntryNotFoundError("x"), ConnectionError, "no complete copy"),
        (TimeoutError("slow"), ConnectionError, "TimeoutError: slow"),
    ):

        def snapshot_download(*_, error=error, **__):
            raise error

        monkeypatch.setattr(hub, "snapshot_download", snapshot_download)
        with pytest.raises(kind, match=f"hf://owner/name@v1.*{message}"):
            fetch("hf://owner/name@v1")


# === Web servers ===


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
    (folder / "model.weights.h5").write_bytes(b"weights 1")
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
    (folder / "model.weights.h5").write_bytes(f"weights {version}".encode())
    date = time.time() - 1000 * version
    os.utime(folder / "model.weights.h5", (date, date))


def weights(directory):
    return (directory / "model.weights.h5").read_bytes()


def test_files_are_downloaded_once(server):
    directory = fetch(server.url + "/")
    names = sorted(str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file())
    assert names == ["assets/spiece.model", "config.json", "model.weights.h5"]
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
    (folder / "model.weights.h5").unlink()
    with pytest.raises(FileNotFoundError, match="preset/model.weights.h5 is missing .*404"):
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
