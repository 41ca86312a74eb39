"""Directories, the Hugging Face Hub and invalid locations. Web servers: test_web.py."""

import os
import subprocess
import sys

import pytest

from keras_xlnet.preset_files import local_directory

NAMES = (("config.json", "model.safetensors"), ("tokenizer.json", "assets/spiece.model", "*.bin"))


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
    with pytest.raises(ImportError, match=r'pip install "\.\[hub\]"'):
        fetch("hf://owner/name")


def test_without_a_network_a_snapshot_from_before_is_used(tmp_path):
    """The real huggingface_hub, offline."""
    pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    code = (
        "from keras_xlnet.preset_files import local_directory\n"
        "print(local_directory('hf://owner/name', ['config.json'], ['a*']))\n"
        "try: local_directory('hf://owner/other', ['config.json'], ['a*'])\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_CACHE": str(tmp_path),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }

    (repository := tmp_path / "models--owner--name" / "refs").mkdir(parents=True)
    (repository / "main").write_text("a" * 40)
    (snapshot := repository.parent / "snapshots" / ("a" * 40)).mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    # `huggingface_hub` reads its environment when it is imported.
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    found, *error = result.stdout.strip().splitlines()
    assert found == str(snapshot)
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
