"""Presets on the Hugging Face Hub, there and back, through the real huggingface_hub."""

import sys

import numpy as np
import pytest

import keras_xlnet
from keras_xlnet.models import XLNetBackbone, XLNetTextRegressor
from tests.preset_files.hub_server import serving


@pytest.fixture
def hub(monkeypatch, tmp_path):
    pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    from huggingface_hub import constants, hf_api

    with serving() as server:
        # These are read from the environment when huggingface_hub is imported.
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(hf_api.api, "endpoint", server.url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)  # As a developer may have set it.
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        yield server


@pytest.fixture
def preset(tmp_path):
    backbone = XLNetBackbone(40, 1, 2, 16, 32, seed=4)
    backbone.save_to_preset(tmp_path / "tiny", card={"license": "apache-2.0"})
    (tmp_path / "tiny" / "notes.txt").write_text("mine")
    (tmp_path / "tiny" / ".env").write_text("secret")
    return tmp_path / "tiny"


def test_there_and_back(hub, preset):
    url = keras_xlnet.upload_preset("hf://owner/tiny", preset, private=True)
    assert url.startswith(f"{hub.url}/owner/tiny/commit/")
    files = hub.files["owner/tiny"]
    assert sorted(files) == ["README.md", "config.json", "model.safetensors"]
    assert files["model.safetensors"] == (preset / "model.safetensors").read_bytes()
    created = next(body for path, body in hub.requests if path == "/api/repos/create")
    assert b'"private"' in created

    expected, loaded = (XLNetBackbone.from_preset(x) for x in (preset, "hf://owner/tiny"))
    for ours, theirs in zip(expected.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_again_replaces_the_files(hub, preset):
    keras_xlnet.upload_preset("hf://owner/tiny", preset)
    XLNetTextRegressor(XLNetBackbone(40, 2, 2, 16, 32)).save_to_preset(preset)
    keras_xlnet.upload_preset("hf://owner/tiny@main", preset, message="Larger")
    assert hub.files["owner/tiny"]["config.json"] == (preset / "config.json").read_bytes()
    commit = [body for path, body in hub.requests if "/commit/" in path][-1]
    assert b'"Larger"' in commit


def test_a_refusal_is_said(hub, preset):
    hub.refuses = "no write access"
    with pytest.raises(ConnectionError, match="(?s)hf://owner/tiny: .*cannot be uploaded"):
        keras_xlnet.upload_preset("hf://owner/tiny", preset)
    assert not hub.files


@pytest.mark.parametrize("location", ["owner/name", "hf://name", "https://x.y/z", 3, "hf://a/b/c"])
def test_other_locations_are_refused(location, preset):
    with pytest.raises(ValueError, match="`location` must be 'hf://owner/name'"):
        keras_xlnet.upload_preset(location, preset)


def test_what_is_not_a_preset_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"config\.json is missing"):
        keras_xlnet.upload_preset("hf://owner/name", tmp_path)


def test_without_huggingface_hub(monkeypatch, preset):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[hub\]"'):
        keras_xlnet.upload_preset("hf://owner/name", preset)
